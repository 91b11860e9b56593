/** Settings become the broker NATS, and what is taken in from it. Loaded only where NATS_URL is set. */
import type { Engine, Publication, Received } from '@redrive/engine';
import { carriedContext as carry, nats, type NatsBroker, natsExtraOf } from '@redrive/engine/nats';
import type { Observers } from './observe/index.ts';
import { maxDeliveriesReader } from './scheduler/max-deliveries-reader.ts';
import { oversizedMessage } from './scheduler/oversized.ts';
import { OVERSIZED_QUEUE } from './scheduler/queues.ts';
import { retryReader } from './scheduler/retry-reader.ts';
import type { Settings } from './settings/settings.ts';

const RETRY_STREAM = 'REDRIVE_RETRIES';
export const DEAD_LETTER_STREAM = 'REDRIVE_DEAD_LETTERS';
const OVERSIZED_STREAM = 'REDRIVE_OVERSIZED';

/** How a connection is made: also for `redrive doctor`. */
export function natsConnection(settings: Settings) {
  const { natsUrl, natsToken, natsCredsFile, natsTlsCaFile, natsTlsCertFile } = settings;
  const { natsTlsKeyFile } = settings;
  const tls = {
    ...(natsTlsCaFile === undefined ? {} : { caFile: natsTlsCaFile }),
    ...(natsTlsCertFile === undefined ? {} : { certFile: natsTlsCertFile }),
    ...(natsTlsKeyFile === undefined ? {} : { keyFile: natsTlsKeyFile }),
  };
  return {
    url: natsUrl ?? [],
    ...(natsToken === undefined ? {} : { token: natsToken }),
    ...(natsCredsFile === undefined ? {} : { credsFile: natsCredsFile }),
    ...(Object.keys(tls).length > 0 ? { tls } : {}),
  };
}

export function natsBroker(settings: Settings, name: string, observers: Observers): NatsBroker {
  const { natsRetrySubject, natsDeadLetterStreams, natsReplicas: replicas } = settings;
  const intake = { retention: 'workqueue', replicas } as const;
  const advisories = natsDeadLetterStreams.map(
    (stream) => `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.*`,
  );
  return nats({
    ...natsConnection(settings),
    streams: [
      { name: RETRY_STREAM, subjects: [natsRetrySubject], ...intake },
      ...(advisories.length > 0
        ? [{ name: DEAD_LETTER_STREAM, subjects: advisories, ...intake }]
        : []),
      // Most servers never see such a message.
      { name: OVERSIZED_STREAM, subjects: [OVERSIZED_QUEUE], replicas, onDemand: true },
    ],
    name,
    log: observers.hooks.log,
  });
}

/** What the readers of all sources have. */
interface Reading {
  reviewQueue?: string;
  defaultMaxRetries: number;
}

export function consumeNats(
  settings: Settings,
  broker: NatsBroker,
  engine: Engine,
  observers: Observers,
  { defaultMaxRetries, ...review }: Reading,
): void {
  const { natsRetrySubject, natsDeadLetterStreams, maxPayloadBytes, unclassifiedAs } = settings;
  const reading = { ...review, maxPayloadBytes, carry, nowMs: () => Date.now() };
  const consume = (source: string, read: ReturnType<typeof retryReader>) =>
    engine.consume(observers.source({ broker, source, read, oversized: oversized(source) }));
  const retries = {
    ...reading,
    kind: 'nats',
    source: natsRetrySubject,
    defaultMaxRetries,
  } as const;
  consume(natsRetrySubject, retryReader(retries));
  if (natsDeadLetterStreams.length === 0) return;
  const source = DEAD_LETTER_STREAM;
  const dead = { ...reading, source, unclassifiedAs, ownSubject: natsRetrySubject };
  consume(source, maxDeliveriesReader(dead));
}

/** As of other brokers, with the subject that it came from. */
function oversized(source: string): (received: Received) => Publication {
  const publicationOf = oversizedMessage({ source, carry, isDeadLetter: false });
  return (received) => {
    const publication = publicationOf(received);
    const { subject, maxDeliveries } = natsExtraOf(received) ?? {};
    if (!maxDeliveries || subject === undefined) return publication;
    return { ...publication, headers: { ...publication.headers, 'x-original-queue': subject } };
  };
}

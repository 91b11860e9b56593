/** Destinations as the wire writes them: a URL, `queue:NAME`, `nats:SUBJECT`, `kafka:TOPIC`, or `{ kind, address }`. */
import type { Destination } from '@redrive/engine';
import type { WireFault } from './faults.ts';

type ReadDestination = { destination: Destination } | { fault: WireFault };

const brokerKinds: readonly string[] = ['queue', 'nats', 'kafka'];

/** What was meant. Whether one may go there is for the engine to say. */
export function readDestination(
  given: string | Destination,
  where: Pick<WireFault, 'in' | 'path'> = { in: 'body', path: '/destination' },
): ReadDestination {
  const meant = typeof given === 'string' ? fromText(given) : given;
  if (!meant) {
    return refused('A URL, queue:NAME, nats:SUBJECT, kafka:TOPIC, or { kind, address } is needed.');
  }
  if (brokerKinds.includes(meant.kind)) {
    return { destination: { kind: meant.kind, address: meant.address } };
  }
  if (meant.kind !== 'http') {
    return refused(
      `Nothing is delivered to a '${meant.kind}': give a URL, queue:NAME, nats:SUBJECT, or kafka:TOPIC.`,
    );
  }
  const url = URL.parse(meant.address);
  if (!url) return refused('It is not a URL.');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return refused('A URL begins with http: or https:.');
  }
  if (url.username || url.password) {
    return refused('A URL must not carry credentials, which would be stored: name a secret.');
  }
  return { destination: { kind: 'http', address: url.href } };

  function refused(message: string): ReadDestination {
    return { fault: { ...where, code: 'NO_DESTINATION', message } };
  }
}

/** What is wrong with a destination, whatever it is. Of what is none at all the schema speaks. */
export function destinationFaults(given: unknown): WireFault[] {
  const { kind, address } = Object(given) as Partial<Record<string, unknown>>;
  const isPair = typeof kind === 'string' && typeof address === 'string';
  if (typeof given !== 'string' && !isPair) return [];
  const read = readDestination(given as string | Destination);
  return 'fault' in read ? [read.fault] : [];
}

function fromText(text: string): Destination | undefined {
  if (/^https?:/i.test(text)) return { kind: 'http', address: text };
  const [, kind, address] = /^([a-z][a-z0-9_-]{0,31}):(?!\/\/)(.+)$/s.exec(text) ?? [];
  if (kind === undefined || address === undefined) return undefined;
  return { kind, address };
}

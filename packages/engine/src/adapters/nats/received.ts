/** Messages of a stream as the engine gets them. Pure. */
import type { MsgHdrs } from '@nats-io/transport-node';
import type { Received } from '../../ports/broker.ts';
import type { MaxDeliveries, NatsExtra } from './carry.ts';
import { readText } from './headers.ts';

/** What the subject for answers says of a delivery. */
interface DeliveryFacts {
  stream: string;
  sequence: number;
  deliveries: number;
  storedAtMs: number;
}

/** `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<time>.<pending>[.<random>]` */
export function deliveryFacts(reply: string | undefined): DeliveryFacts | undefined {
  const tokens = reply?.split('.') ?? [];
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK') return undefined;
  const at = tokens.length === 9 ? 2 : 4;
  const [stream, , deliveries, sequence, , time] = tokens.slice(at);
  const facts = {
    stream: stream ?? '',
    sequence: Number(sequence),
    deliveries: Number(deliveries),
    storedAtMs: Math.floor(Number(time) / 1e6),
  };
  return Number.isSafeInteger(facts.sequence) ? facts : undefined;
}

interface Parts {
  tag: unknown;
  subject: string;
  payload: Uint8Array;
  headers: MsgHdrs | undefined;
  stream: string;
  sequence: number;
  storedAtMs: number;
  redelivered: boolean;
  maxDeliveries?: MaxDeliveries;
}

export function receivedOf(parts: Parts): Received {
  const { tag, payload, redelivered, subject, stream, sequence, storedAtMs } = parts;
  const { headers, several, contentType } = headersOf(parts.headers);
  const nats: NatsExtra = {
    subject,
    stream,
    sequence,
    storedAtMs,
    ...(several.length > 0 ? { headers: Object.fromEntries(several) } : {}),
    ...(parts.maxDeliveries ? { maxDeliveries: parts.maxDeliveries } : {}),
  };
  return {
    tag,
    payload,
    headers,
    redelivered,
    ...(contentType === undefined ? {} : { contentType }),
    extra: { nats },
  };
}

/** The first value of each, and all values of those that have several. Anybody may have written anything into them. */
function headersOf(given: MsgHdrs | undefined) {
  const single: [string, string][] = [];
  const several: [string, string[]][] = [];
  let contentType: string | undefined;
  for (const [written, values] of given ?? []) {
    const name = readText(written);
    const texts = values.map(readText);
    const [first = ''] = texts;
    if (contentType === undefined && /^content-type$/i.test(name)) contentType = first;
    single.push([name, first]);
    if (texts.length > 1) several.push([name, texts]);
  }
  return { headers: Object.fromEntries(single), several, contentType };
}

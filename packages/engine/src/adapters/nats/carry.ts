/** What of a message of NATS travels with its task. Pure. */
import { isOurs } from '../../broker/own-headers.ts';
import type { TaskContext } from '../../model/task.ts';
import type { Publication, Received } from '../../ports/broker.ts';
import { headerBytes, isOfServer } from './headers.ts';

/** A consumer gave a message up after so many deliveries. */
export interface MaxDeliveries {
  stream: string;
  consumer: string;
  sequence: number;
  deliveries: number;
  /** The stream does not hold the message any more, so the payload is that of the advisory. */
  isGone?: true;
}

/** In `Received.extra.nats`. */
export interface NatsExtra {
  subject: string;
  stream: string;
  sequence: number;
  /** When the stream took it, in ms since the epoch. */
  storedAtMs: number;
  /** Headers with several values. */
  headers?: Readonly<Record<string, readonly string[]>>;
  /** It is a dead letter: everything but this is that of the message which was given up. */
  maxDeliveries?: MaxDeliveries;
}

/** In `context.extra.nats`: what a context has no other place for. */
export interface CarriedNats {
  headers: Readonly<Record<string, readonly string[]>>;
}

export interface Carried {
  context: TaskContext;
  /** What the headers that are carried take on the wire. */
  headerBytes: number;
}

export function natsExtraOf({ extra }: Received): NatsExtra | undefined {
  return extra?.['nats'] as NatsExtra | undefined;
}

/** What a message of NATS leaves to its task. */
export function carriedContext(received: Received): Carried {
  const several = natsExtraOf(received)?.headers ?? {};
  const headers: [string, string][] = [];
  const lists: [string, readonly string[]][] = [];
  let bytes = 0;
  for (const [name, value] of Object.entries(received.headers)) {
    if (isOfServer(name) || isOurs(name) || /^content-type$/i.test(name)) continue;
    const values = Object.hasOwn(several, name) ? several[name]! : [String(value)];
    for (const one of values) bytes += headerBytes(name, one);
    if (values.length > 1) lists.push([name, values]);
    else headers.push([name, values[0]!]);
  }
  const { contentType } = received;
  const context: TaskContext = {
    ...(headers.length > 0 ? { headers: Object.fromEntries(headers) } : {}),
    ...(contentType === undefined ? {} : { contentType }),
    ...(lists.length > 0 ? { extra: { nats: { headers: Object.fromEntries(lists) } } } : {}),
  };
  return { context, headerBytes: bytes };
}

/** Headers with several values for a message that goes out. They may have been edited, so anything can be there. */
export function listsOf({ extra }: Publication): [string, readonly unknown[]][] {
  const { headers } = Object(extra?.['nats']) as { headers?: unknown };
  return Object.entries(Object(headers) as Record<string, unknown>).map(([name, values]) => [
    name,
    [values].flat(),
  ]);
}

import type { Received, TaskContext } from '@redrive/engine';
import { type Headers, textOf, traceparentOf } from './headers.ts';

/** What goes on with a message, as the adapter of its broker keeps it, and what of its headers is too odd for that. */
export type Carry = (received: Received) => {
  context: TaskContext;
  headerBytes: number;
  lost?: readonly string[];
};

/** Where it was published first, as far as that is known. */
export interface FirstPublish {
  exchange?: string;
  routingKey?: string;
}

interface CarriedOn {
  context: TaskContext;
  /** The headers are more than can be sent again. */
  isTooLarge: boolean;
}

/** What goes on with a message that is sent again. */
export function carriedOn(received: Received, carry: Carry, first: FirstPublish): CarriedOn {
  const { context, headerBytes, lost = [] } = carry(received);
  const { headers: given, extra, ...rest } = context;
  const headers: Record<string, string> = { ...given };
  let bytes = headerBytes + OUR_BYTES - takeTexts(headers, received.headers);
  for (const [name, value] of [
    ['x-original-exchange', first.exchange],
    ['x-original-routing-key', first.routingKey],
  ] as const) {
    if (value === undefined) continue;
    // Ours give way before theirs.
    const size = sizeOf(name, value);
    if (bytes + size > MAX_HEADER_BYTES) continue;
    headers[name] = value;
    bytes += size;
  }
  const traceparent = traceparentOf(received.headers);
  const all: TaskContext = {
    ...rest,
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...(extra ? { extra: withoutTexts(extra) } : {}),
    ...(traceparent ? { traceparent } : {}),
  };
  return {
    context: clean(all) as TaskContext,
    isTooLarge: bytes > MAX_HEADER_BYTES || lost.length > 0,
  };
}

/** Everything that came with a message that cannot be understood: for whoever looks at it. */
export function carriedWhole(received: Received, carry: Carry): TaskContext {
  return clean(carry(received).context) as TaskContext;
}

/** What the headers say of its first publish. An empty name is that of the default exchange. */
export function firstPublishOf(headers: Headers): FirstPublish {
  const exchange = headers['x-original-exchange'];
  const routingKey = textOf(headers['x-original-routing-key']);
  return {
    ...(typeof exchange === 'string' ? { exchange } : {}),
    ...(routingKey === undefined ? {} : { routingKey }),
  };
}

const MAX_HEADER_BYTES = 32 * 1024;
/** The least that ours take: count, mark, id, body and generation, without the error. */
const OUR_BYTES = 512;

function sizeOf(name: string, text: string): number {
  return 6 + Buffer.byteLength(name) + Buffer.byteLength(text);
}

/**
 * They tell of the failure, and are no part of what was published. Sent again they would speak for the next failure too,
 * and a long one would be too much for the headers.
 */
const failureTexts = ['x-exception-stacktrace', 'x-death-reason'] as const;

/** Takes them out, and says how many bytes less that is. */
function takeTexts(headers: Record<string, string>, received: Headers): number {
  let bytes = 0;
  for (const name of failureTexts) {
    const text = textOf(received[name]);
    if (text !== undefined) bytes += sizeOf(name, text);
    delete headers[name];
  }
  return bytes;
}

type Extra = NonNullable<TaskContext['extra']>;

/** Those that came as something else than a text stand with the rest that AMQP has. */
function withoutTexts(extra: Extra): Extra {
  const amqp = Object(extra['amqp']) as { headers?: unknown };
  const headers = Object(amqp.headers) as Record<string, unknown>;
  if (!failureTexts.some((name) => name in headers)) return extra;
  const rest = { ...headers };
  for (const name of failureTexts) delete rest[name];
  return { ...extra, amqp: { ...amqp, headers: rest } };
}

/** Deeper than what an adapter keeps, and less deep than what ends a stack. */
const MAX_DEPTH = 300;

/** Without what no database takes: an item that cannot be stored would come again for ever. */
function clean(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return value.toWellFormed().replaceAll('\0', '\uFFFD');
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH) return null;
  if (Array.isArray(value)) return value.map((one) => clean(one, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [clean(name) as string, clean(one, depth + 1)]),
  );
}

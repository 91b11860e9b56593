import type { Publication, Received } from '@redrive/engine';
import type { Carry } from './carried.ts';
import { deathsOf, originOf } from './deaths.ts';
import { textOf } from './headers.ts';
import { OVERSIZED_QUEUE } from './queues.ts';

interface OversizedOptions {
  /** The queue that it came from. */
  source: string;
  carry: Carry;
  /** It is the message itself that died, not a message about a failure. */
  isDeadLetter: boolean;
}

/** A message that is too large to be stored, as it goes to `redrive.oversized`. Pure. */
export function oversizedMessage({ source, carry, isDeadLetter }: OversizedOptions) {
  return (received: Received): Publication => {
    const { payload, headers } = received;
    const { context, lost = [] } = carry(received);
    const { headers: carried, contentType, extra } = context;
    return {
      address: OVERSIZED_QUEUE,
      payload,
      headers: {
        ...carried,
        ...ownHeaders(headers),
        ...(isDeadLetter ? originHeaders(headers) : {}),
        'x-redrive-source': source,
        'x-redrive-reason': `The message has ${payload.length} bytes, and Redrive stores at most 16777216.`,
        ...(lost.length > 0 ? { 'x-redrive-lost-headers': lost.join(', ').slice(0, 1024) } : {}),
      },
      ...(contentType === undefined ? {} : { contentType }),
      ...(extra ? { extra } : {}),
    };
  };
}

/** A republish writes these anew. Here they say as they stand what became of the message so far. */
const own = [
  'x-retry-count',
  'x-retry-scheduler',
  'x-message-id',
  'x-original-error',
  'x-original-queue',
  'x-original-exchange',
  'x-original-routing-key',
  'x-redrive-generation',
  'x-redrive-body',
];

function ownHeaders(headers: Received['headers']): Record<string, string | number> {
  return Object.fromEntries(
    own.flatMap((name) => {
      const value = headers[name];
      const kept = typeof value === 'number' ? value : textOf(value);
      return kept === undefined ? [] : [[name, kept]];
    }),
  );
}

/** What `x-death` says of its queue: the broker would take that header for a history of its own, so it is not carried. */
function originHeaders(headers: Received['headers']): Record<string, string> {
  const origin = originOf(headers, deathsOf(headers));
  if (!origin) return {};
  const { queue, reason, exchange, routingKey } = origin;
  return {
    'x-original-queue': queue,
    ...(reason === undefined ? {} : { 'x-redrive-death-reason': reason }),
    ...(exchange === undefined ? {} : { 'x-original-exchange': exchange }),
    ...(routingKey === undefined ? {} : { 'x-original-routing-key': routingKey }),
  };
}

/** Which items of the inbox are meant: the same options for a list and for a bulk job. */
import type { Reason } from '@redrive/engine';
import type { Query } from '../client.ts';
import type { OptionTable } from '../command.ts';
import { readTime, usageError } from '../inputs.ts';

/** All that there are: the compiler misses none. */
const reasons: Readonly<Record<Reason, true>> = {
  EXHAUSTED: true,
  PERMANENT: true,
  EXPIRED: true,
  GAVE_UP: true,
  WORKER_LOST: true,
  UNROUTABLE: true,
  UNREADABLE: true,
  TOO_LARGE: true,
  TOO_FAR: true,
  HEADERS_TOO_LARGE: true,
  RETRY_AFTER_TOO_LONG: true,
  TOO_MANY_UNCOUNTED: true,
  INVALID_PAYLOAD: true,
  CAME_BACK: true,
  EVALUATION_FAILED: true,
  DEAD_TOKEN: true,
  CONFIGURATION: true,
};

export const selection = {
  reason: { kind: 'choice', of: Object.keys(reasons), summary: 'Why it is there.' },
  lane: {
    kind: 'text',
    value: 'lane',
    summary: 'Where it was to go: queue:orders, https://api.example.com.',
  },
  queue: { kind: 'text', value: 'name', summary: 'The same, for a queue.' },
  group: {
    kind: 'text',
    value: 'fingerprint',
    summary: 'Of one cause; see redrive review groups.',
  },
  class: {
    kind: 'choice',
    of: ['transient', 'business', 'technical', 'unknown'],
    summary: 'What kind of failure it was.',
  },
  text: { kind: 'text', value: 'text', summary: 'In the error, in capitals or not.' },
  from: { kind: 'text', value: 'time', summary: 'Last seen then or later: 2030-01-31T12:00:00Z.' },
  to: { kind: 'text', value: 'time', summary: 'Last seen before then.' },
  since: { kind: 'duration', value: 'time', summary: 'Last seen within this time.' },
  key: { kind: 'text', value: 'text', summary: 'Of this ordering key.' },
  message: { kind: 'text', value: 'uuid', summary: 'Of this message.' },
} as const satisfies OptionTable;

export interface Selected {
  reason: string | undefined;
  lane: string | undefined;
  queue: string | undefined;
  group: string | undefined;
  class: string | undefined;
  text: string | undefined;
  from: string | undefined;
  to: string | undefined;
  since: number | undefined;
  key: string | undefined;
  message: string | undefined;
}

/** By the names of the API; what was not given is left out. */
export function filterOf(options: Selected, nowMs: number): Query {
  const { from, since } = options;
  if (from !== undefined && since !== undefined) throw usageError('Either --from or --since.');
  const filter = {
    reason: options.reason,
    lane: options.lane,
    queue: options.queue,
    group: options.group,
    class: options.class,
    text: options.text,
    from: since === undefined ? readTime('--from', from) : new Date(nowMs - since).toISOString(),
    to: readTime('--to', options.to),
    key: options.key,
    message_id: options.message,
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

import type { NewOutboxMessage } from '../../ports/schedule.ts';
import type { AttemptRecord } from '../../task.ts';
import type { Column } from './batch.ts';
import type { Names } from './names.ts';
import { NOW } from './times.ts';
import { agoMs, countOf } from './bounds.ts';
import { kept } from './rows.ts';

/** Parts of statements that write what never worked. Each takes its columns from a table or a part by that name. */

/** One row for every execution that failed. */
export function writeRecords(names: Names, from: string): string {
  return `INSERT INTO ${names.attempts} (task_id, generation, attempt, at, duration_ms, failure, answer)
    SELECT id, generation, record_attempt, ${NOW}, record_duration, record_failure, record_answer
    FROM ${from} WHERE record_attempt IS NOT NULL`;
}

/**
 * An open item for every task that failed, in the order of `place`. Should one have an item, it is one more occurrence,
 * in the group where it is.
 */
export function openItems(names: Names, from: string, place: string): string {
  return `INSERT INTO ${names.inbox} AS item (task_id, message_id, kind, address, lane, reason, fingerprint, attempt,
      max_attempts, generation, failure, job, ordering_key, first_seen, last_seen)
    SELECT id, message_id, kind, address, lane, reason, fingerprint, attempt,
      max_retries + 1, generation, item_failure, job, ordering_key, ${NOW}, ${NOW}
    FROM ${from} WHERE reason IS NOT NULL ORDER BY ${place}
    ON CONFLICT (task_id) WHERE state = 'open' AND task_id IS NOT NULL
    DO UPDATE SET reason = excluded.reason, ${onceMore}`;
}

/** What an item takes from being met again. */
export const onceMore = `failure = excluded.failure, occurrences = item.occurrences + 1, last_seen = excluded.last_seen`;

/** An outbox message for each that has one, in the order of `place`, with the id of what it tells of: it can be erased. */
export function sendAll(names: Names, from: string, place: string): string {
  return `INSERT INTO ${names.outbox} (kind, address, payload, headers, message_id, visible_at)
    SELECT outbox_kind, outbox_address, outbox_payload, outbox_headers, message_id, ${NOW}
    FROM ${from} WHERE outbox_kind IS NOT NULL ORDER BY ${place}`;
}

export function recordColumns(records: readonly (AttemptRecord | undefined)[]): Column[] {
  return [
    {
      name: 'record_attempt',
      type: 'int4',
      values: records.map((one) => one && countOf(one.attempt)),
    },
    {
      name: 'record_duration',
      type: 'float8',
      values: records.map((one) => agoMs(one?.durationMs)),
    },
    {
      name: 'record_failure',
      type: 'json',
      values: records.map((one) => one && JSON.stringify(one.failure)),
    },
    { name: 'record_answer', type: 'text', values: records.map((one) => kept(one?.answer)) },
  ];
}

export function outboxColumns(messages: readonly (NewOutboxMessage | undefined)[]): Column[] {
  return [
    { name: 'outbox_kind', type: 'text', values: messages.map((one) => one?.destination.kind) },
    {
      name: 'outbox_address',
      type: 'text',
      values: messages.map((one) => one?.destination.address),
    },
    { name: 'outbox_payload', type: 'bytea', values: messages.map((one) => one?.payload) },
    {
      name: 'outbox_headers',
      type: 'json',
      values: messages.map((one) => one && JSON.stringify(one.headers)),
    },
  ];
}

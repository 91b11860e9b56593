import type { NewOutboxMessage } from '../../../ports/schedule.ts';
import type { AttemptRecord } from '../../../model/task.ts';
import { type Column, few } from '../batch.ts';
import type { Names } from '../names.ts';
import { openColumns, openValues } from './open-schema.ts';
import { NOW } from '../times.ts';
import { agoMs, countOf } from '../bounds.ts';
import { kept } from '../rows.ts';

/** Parts of statements that write what never worked. Each takes its columns from a table or a part by that name. */

/** One row for every execution that failed. */
export function writeRecords(names: Names, from: string): string {
  return `INSERT INTO ${names.attempts} (task_id, generation, attempt, at, duration_ms, failure, answer)
    SELECT id, generation, record_attempt, ${NOW}, record_duration, record_failure, record_answer
    FROM ${from} WHERE record_attempt IS NOT NULL`;
}

/**
 * Parts of a statement: an open item for every task that failed, in the order of `place`. Should one have an open item, as
 * after a hand in the database, it is one more occurrence of that.
 */
export function openItems(names: Names, from: string, place: string): string {
  const failed = `SELECT failed.*, open.item FROM ${from} AS failed LEFT JOIN LATERAL (
      SELECT id AS item FROM ${names.open} AS open WHERE open.task_id = failed.id OFFSET 0
    ) AS open ON true WHERE reason IS NOT NULL`;
  const item = `INSERT INTO ${names.inbox} AS item (task_id, message_id, kind, address, lane, reason, fingerprint, attempt,
      max_attempts, generation, failure, job, ordering_key, first_seen, last_seen)
    SELECT id, message_id, kind, address, lane, reason, fingerprint, attempt,
      max_retries + 1, generation, item_failure, job, ordering_key, ${NOW}, ${NOW}
    FROM gave_up WHERE item IS NULL ORDER BY ${place}`;
  const known = few('(SELECT * FROM gave_up WHERE item IS NOT NULL)', 'item');
  return `gave_up AS MATERIALIZED (${failed}), ${openNew(names, item)},
    again AS (
      UPDATE ${names.inbox} AS item SET ${ONCE_MORE} FROM (${known}) AS t WHERE item.id = ANY (ARRAY[t.item])
    )`;
}

/**
 * An open item for every message without a task, or one more occurrence of the one that it has. Where somebody else opens
 * one at the same time it fails, since that is there once, and has to look again. It answers how many open items it knew,
 * and which of them it has written: they are locked now, but who had the lock before may have closed them.
 */
export function appendText(names: Names, source: string): string {
  const item = `INSERT INTO ${names.inbox} AS item (message_id, kind, address, lane, reason, fingerprint, attempt,
      max_attempts, generation, failure, context, payload, first_seen, last_seen)
    SELECT message_id, 'source', source, 'source:' || source, reason, fingerprint, 0, 0, 0, failure, context,
      payload, ${NOW}, ${NOW} FROM known WHERE item IS NULL ORDER BY n`;
  return `WITH u AS MATERIALIZED (${source}), sent AS (${sendAll(names, 'u', 'n')}),
    known AS MATERIALIZED (
      SELECT u.*, open.item FROM u LEFT JOIN LATERAL (
        SELECT id AS item FROM ${names.open} AS open WHERE open.raw_id = u.message_id OFFSET 0
      ) AS open ON true ORDER BY n
    ),
    ${openNew(names, item)},
    again AS (
      UPDATE ${names.inbox} AS item SET ${ONCE_MORE}
      FROM (${few('(SELECT * FROM known WHERE item IS NOT NULL)', 'n')}) AS t WHERE item.id = ANY (ARRAY[t.item])
      RETURNING item.id
    )
    SELECT (SELECT count(*) FROM known WHERE item IS NOT NULL), (SELECT json_agg(id) FROM again)`;
}

/** Parts of a statement: what `insert` adds to the inbox, and that it is open. */
function openNew(names: Names, insert: string): string {
  return `item AS (${insert} RETURNING ${returned}),
    opened AS (INSERT INTO ${names.open} (${openColumns}) SELECT ${openValues} FROM item)`;
}

const returned =
  'item.id, item.task_id, item.message_id, item.generation, item.edit, item.reason, item.lane, item.fingerprint, item.ordering_key';

/** What an item takes from being met again. */
export const ONCE_MORE = `occurrences = item.occurrences + 1, last_seen = ${NOW}`;

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

import type { Lease, Settlement } from '../../../ports/schedule.ts';
import { type Column, few, type Params, rowsOf } from '../batch.ts';
import {
  openItems,
  outboxColumns,
  recordColumns,
  sendAll,
  writeRecords,
} from '../inbox/inbox-text.ts';
import { failureJson } from '../inbox/item-rows.ts';
import type { Names } from '../names.ts';
import { failureColumns, listOf, numberOf, type Row } from '../rows.ts';
import { later, msOf, NOW } from '../times.ts';
import { boundedMs, countOf } from '../bounds.ts';

/**
 * What to do about a row that somebody else has locked. `wait`: for a moment, in the order of ids, as everybody does;
 * then the statement fails. `pass over`: leave it out. That costs a lock more for every row.
 */
export type OnLocked = 'wait' | 'pass over';

export const LOCK_TIMEOUT_MS = 50;

/**
 * A statement that does to a batch what `settle` of the moves does to one task. The ids are sorted, and each is there once.
 * It answers one row, whose columns `settledBatch` reads.
 *
 * What was cancelled or arrived meanwhile is read from `q`, the row as it is when it is written: not from what was
 * selected before, which another connection may have changed since.
 */
export function settleText(
  names: Names,
  batch: readonly Settlement[],
  /** In what order they were given: items and messages are written in that order. */
  places: readonly number[],
  locked: OnLocked,
  params: Params,
): string {
  const isFinal = batch.every(({ to }) => to !== 'pending' && to !== 'failed');
  const failed = batch.filter(({ to }) => to === 'failed');
  const records = batch.map((by) => ('record' in by ? by.record : undefined));
  const hasRecords = records.some((record) => record !== undefined);
  const hasOutbox = failed.some((by) => 'outbox' in by && by.outbox);
  const source = rowsOf(
    [
      ...leaseColumns(batch),
      { name: 'goal', type: 'text', values: batch.map(({ to }) => to) },
      ...(isFinal ? [] : outcomeColumns(batch)),
      ...(isFinal ? [] : recordColumns(records)),
      ...(failed.length > 0 ? itemColumns(batch, places) : []),
    ],
    params,
  );
  // All that the other parts need comes from here: a join of two batches may be planned as a loop in a loop.
  const returned = [
    'u.n, u.goal, q.id, q.status, q.arrived, q.lane, q.visible_at, q.generation, q.attempt',
    ...(hasRecords
      ? ['u.record_attempt, u.record_duration, u.record_failure, u.record_answer']
      : []),
    ...(failed.length > 0
      ? [
          'q.message_id, q.kind, coalesce(q.address, q.original_queue) AS address, q.max_retries',
          'q.job, q.ordering_key',
        ]
      : []),
    ...(failed.length > 0 ? ['u.place, u.reason, u.fingerprint, u.item_failure'] : []),
    ...(hasOutbox ? ['u.outbox_kind, u.outbox_address, u.outbox_payload, u.outbox_headers'] : []),
  ];
  const [rows, held] =
    locked === 'pass over' ? [heldRows(names, source), 'true'] : [`held AS (${source})`, isHeld];
  const parts = [
    rows,
    `settled AS (
      UPDATE ${names.queue} AS q SET ${isFinal ? finalValues : anyValues}
      FROM (${few('held', 'n')}) AS u WHERE q.id = ANY (ARRAY[u.id]) AND ${held} RETURNING ${returned.join(', ')}
    )`,
  ];
  if (hasRecords) parts.push(`record AS (${writeRecords(names, 'settled')})`);
  const gaveUp = `(SELECT * FROM settled WHERE status = 'failed')`;
  if (failed.length > 0) parts.push(openItems(names, gaveUp, 'place'));
  if (hasOutbox) parts.push(`sent AS (${sendAll(names, `${gaveUp} AS failed`, 'place')})`);
  return `WITH ${parts.join(', ')}
    SELECT json_agg(n) FILTER (WHERE status = goal AND NOT (arrived AND status = 'pending')) AS settled,
      json_agg(n) FILTER (WHERE arrived AND status = 'pending') AS rearmed,
      json_agg(n) FILTER (WHERE status = 'cancelled' AND goal <> 'cancelled') AS cancelled,
      json_agg(DISTINCT lane) FILTER (WHERE status = 'pending') AS waiting_lanes,
      ${msOf(`min(visible_at) FILTER (WHERE status = 'pending') - ${NOW}`)} AS visible_in_ms
    FROM settled`;
}

/** What `settleText` did to a batch, whose settlements are numbered from 1. Those in no list were not held any more. */
export interface SettledBatch {
  /** Settled as was asked for. */
  settled: number[];
  /** A failure that had arrived meanwhile made the task pending again. */
  rearmed: number[];
  /** An operator had cancelled the task meanwhile. */
  cancelled: number[];
  /** The lanes in which a task waits again, and in how many ms the first of these tasks is visible. */
  waitingLanes: string[];
  visibleInMs: number;
}

export function settledBatch([settled, rearmed, cancelled, lanes, visibleInMs]: Row): SettledBatch {
  return {
    settled: listOf<number>(settled),
    rearmed: listOf<number>(rearmed),
    cancelled: listOf<number>(cancelled),
    waitingLanes: listOf<string>(lanes),
    visibleInMs: visibleInMs === null ? 0 : numberOf(visibleInMs),
  };
}

/** Answers the number of each lease that is still held, and whether something has arrived. */
export function renewText(
  names: Names,
  leases: readonly Lease[],
  leaseMs: number,
  params: Params,
): string {
  const source = rowsOf(leaseColumns(leases), params);
  return `WITH ${heldRows(names, source)}
    UPDATE ${names.queue} AS q SET visible_at = ${later(`${params.add(boundedMs(leaseMs))}::float8`)}
    FROM (${few('held', 'n')}) AS u WHERE q.id = ANY (ARRAY[u.id]) RETURNING u.n, q.arrived`;
}

/**
 * An array of one, here and wherever a batch meets the table: a plain `=` could be planned as a hash join over the
 * whole table, and before the first ANALYZE it is. The setting is for this statement alone.
 */
const isHeld = `q.lease = ANY (ARRAY[u.lease]) AND q.status = 'pending'
  AND (SELECT set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true)) IS NOT NULL`;

/** `held`: what of the batch is still held and not locked by somebody else, locked one by one in the batch's order. */
function heldRows(names: Names, source: string): string {
  return `held AS MATERIALIZED (
    SELECT u.* FROM (${source}) AS u CROSS JOIN LATERAL (
      SELECT FROM ${names.queue} AS q
      WHERE q.id = u.id AND q.lease = u.lease AND q.status = 'pending' FOR UPDATE SKIP LOCKED
    ) AS q
  )`;
}

const isCancelled = `(u.goal = 'cancelled' OR q.cancelling AND (q.arrived OR u.goal IN ('pending', 'failed')))`;
const isRearmed = `(q.arrived AND u.goal <> 'cancelled' AND NOT q.cancelling)`;
/** A row settled as it was asked for. */
const isAsAsked = (goals: string) => `u.goal IN (${goals}) AND NOT q.arrived AND NOT q.cancelling`;
const status = `CASE WHEN ${isCancelled} THEN 'cancelled' WHEN q.arrived THEN 'pending' ELSE u.goal END`;

/** `arrived` stays: together with the status it says what was met, and without a lease it means nothing. */
const finalValues = `
  status = ${status},
  visible_at = CASE WHEN ${isRearmed} THEN q.next_retry_at ELSE q.visible_at END,
  finished_at = CASE WHEN ${isRearmed} THEN NULL ELSE ${NOW} END,
  verdict = CASE WHEN ${isRearmed} THEN q.verdict END,
  retry_count = CASE WHEN u.goal = 'retried' AND NOT q.arrived THEN q.attempt ELSE q.retry_count END,
  lease = NULL, claims = 0, cancelling = false`;

const waits = isAsAsked(`'pending'`);
const isOver = `(${isCancelled} OR u.goal <> 'pending' AND NOT q.arrived)`;
const attempt = `CASE WHEN ${isAsAsked(`'pending', 'failed'`)} THEN u.attempt ELSE q.attempt END`;
const isNews = `u.failure IS NOT NULL AND ${isAsAsked(`'pending', 'failed'`)}`;
/** A release keeps the due time; anything else has a delay. */
const dueAt = `CASE WHEN ${waits} AND u.delay_ms IS NOT NULL THEN ${later('u.delay_ms')} ELSE q.next_retry_at END`;

const anyValues = `
  status = ${status},
  attempt = ${attempt},
  retry_count = CASE WHEN u.goal = 'retried' AND NOT q.arrived THEN q.attempt
    WHEN ${isAsAsked(`'pending', 'failed'`)} THEN greatest(u.attempt - 1, 0) ELSE q.retry_count END,
  uncounted = CASE WHEN ${waits} THEN u.uncounted ELSE q.uncounted END,
  claims = CASE WHEN ${waits} THEN u.claims ELSE 0 END,
  delay_ms = CASE WHEN ${waits} THEN coalesce(u.delay_ms, q.delay_ms) ELSE q.delay_ms END,
  next_retry_at = ${dueAt},
  visible_at = CASE WHEN ${isOver} THEN q.visible_at ELSE ${dueAt} END,
  first_at = CASE WHEN ${waits} THEN
    coalesce(q.first_at, ${NOW} - u.record_duration * INTERVAL '1 millisecond') ELSE q.first_at END,
  finished_at = CASE WHEN ${isOver} THEN ${NOW} END,
  verdict = CASE WHEN ${isOver} THEN NULL ELSE q.verdict END,
  error_reason = CASE WHEN ${isNews} THEN u.message ELSE q.error_reason END,
  failure = CASE WHEN ${isNews} THEN u.failure ELSE q.failure END,
  lease = NULL, cancelling = false`;

function leaseColumns(leases: readonly Lease[]): Column[] {
  return [
    { name: 'id', type: 'int8', values: leases.map(({ id }) => id) },
    { name: 'lease', type: 'int8', values: leases.map(({ lease }) => lease), isKey: true },
  ];
}

function outcomeColumns(batch: readonly Settlement[]): Column[] {
  const failures = batch.map((by) => {
    if (by.to === 'failed') return failureColumns(by.item.failure);
    return failureColumns(by.to === 'pending' ? by.record?.failure : undefined);
  });
  const ofPending = <T>(get: (by: Extract<Settlement, { to: 'pending' }>) => T) =>
    batch.map((by) => (by.to === 'pending' ? get(by) : undefined));
  return [
    {
      name: 'attempt',
      type: 'int4',
      values: batch.map((by) => ('attempt' in by ? countOf(by.attempt) : undefined)),
    },
    { name: 'uncounted', type: 'int4', values: ofPending(({ uncounted }) => uncounted) },
    { name: 'claims', type: 'int4', values: ofPending(({ claims }) => claims) },
    {
      name: 'delay_ms',
      type: 'float8',
      values: ofPending(({ reschedule, delayMs }) => (reschedule ? boundedMs(delayMs) : undefined)),
    },
    { name: 'message', type: 'text', values: failures.map(({ message }) => message) },
    { name: 'failure', type: 'json', values: failures.map(({ rest }) => rest) },
  ];
}

function itemColumns(batch: readonly Settlement[], places: readonly number[]): Column[] {
  const failed = batch.map((by) => (by.to === 'failed' ? by : undefined));
  return [
    { name: 'place', type: 'int4', values: places },
    { name: 'reason', type: 'text', values: failed.map((by) => by?.item.reason) },
    { name: 'fingerprint', type: 'text', values: failed.map((by) => by?.item.fingerprint) },
    {
      name: 'item_failure',
      type: 'json',
      values: failed.map((by) => by && failureJson(by.item.failure)),
    },
    ...outboxColumns(failed.map((by) => by?.outbox)),
  ];
}

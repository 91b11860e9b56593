import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Clock } from 'redrive';
import type { Census } from '../../ports/store.ts';
import type { Reason } from '../../model/task.ts';
import { due, lost } from './schedule/agenda.ts';
import { standsInLine } from './schema/version-3.ts';

/** How long the event loop stands still for one step, and how many rows may pass before a look at the clock. */
const STEP_MS = 4;
const ROWS_BETWEEN_LOOKS = 16;

/** Counts in steps, by indexes that hold only what waits and what is open. */
export function* census(db: DatabaseSync, clock: Clock): Generator<undefined, Census> {
  const nowMs = clock.now();
  let pending = 0;
  let firstMs = Infinity;
  const open: Census['open'] = {};
  const walk = walker(db, clock);

  yield* walk(`SELECT 1 ${due} AND look(visible_at)`, (visibleAtMs) => {
    pending += 1;
    firstMs = Math.min(firstMs, visibleAtMs as number);
  });
  yield* walk(`SELECT 1 ${lost} AND look(visible_at, lease)`, (visibleAtMs, lease) => {
    pending += 1;
    const isWaiting = lease === null || (visibleAtMs as number) <= nowMs;
    if (isWaiting) firstMs = Math.min(firstMs, visibleAtMs as number);
  });
  yield* walk(`${inLine} AND look(${isBlocked})`, (blocked) => {
    if (blocked === 1) pending += 1;
  });
  yield* walk('SELECT 1 FROM redrive_open WHERE look(reason)', (text) => {
    const reason = text as Reason;
    open[reason] = (open[reason] ?? 0) + 1;
  });
  return { pending, open, ...(firstMs === Infinity ? {} : { oldestDueInMs: firstMs - nowMs }) };
}

/**
 * Only those who stand in a line can be blocked: pending, or failed. The index does not say which, and their rows lie far
 * apart; but who has an open item has failed, and that is in an index too.
 */
const inLine = `SELECT 1 FROM retry_queue INDEXED BY retry_queue_line WHERE ${standsInLine}`;
const isBlocked = `CASE blocked WHEN 1 THEN NOT EXISTS (
  SELECT 1 FROM redrive_open INDEXED BY redrive_open_task WHERE task_id = retry_queue.id
) END`;

/** `look` in the text of a query calls back for every row. The query has a result only where it is time to pause. */
function walker(db: DatabaseSync, clock: Clock) {
  let rows = 0;
  let endMs = clock.monotonic() + STEP_MS;
  const isTime = () => rows++ % ROWS_BETWEEN_LOOKS === 0 && clock.monotonic() >= endMs;

  return function* walk(
    sql: string,
    look: (...values: SQLOutputValue[]) => void,
  ): Generator<undefined, void> {
    db.function('look', { varargs: true }, (...values: SQLOutputValue[]) => {
      look(...values);
      return isTime() ? 1 : 0;
    });
    for (const _ of db.prepare(sql).iterate()) {
      yield;
      endMs = clock.monotonic() + STEP_MS;
    }
  };
}

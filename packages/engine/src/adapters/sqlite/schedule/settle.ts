import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { release } from '../../../model/judge.ts';
import { settle } from '../../../model/moves.ts';
import type { Lease, Renewed, Settled, Settlement } from '../../../ports/schedule.ts';
import { lost } from './agenda.ts';
import type { Changer } from './change.ts';
import { prepareRows, type Row } from '../connection.ts';
import type { InboxTable } from '../inbox/inbox.ts';
import type { Aftermath } from './lines.ts';
import { failureColumns, taskColumns, taskOf } from '../rows.ts';

/** Held under this token, and nothing came in between: what the short statements below may settle. */
const held = `id = ?1 AND lease = ?2 AND status = 'pending' AND arrived = 0`;
const over = `lease = NULL, claims = 0, cancelling = 0, verdict = NULL, finished_at = ?3`;

/** Ends and prolongs leases. The usual outcomes are one statement each; `settle` of the moves decides the rest. */
export class Settler {
  readonly #changer: Changer;
  readonly #inbox: InboxTable;
  readonly #done: StatementSync;
  readonly #retried: StatementSync;
  readonly #pending: StatementSync;
  readonly #renew: StatementSync;
  readonly #leased: StatementSync;

  constructor(db: DatabaseSync, changer: Changer, inbox: InboxTable) {
    this.#changer = changer;
    this.#inbox = inbox;
    this.#done = db.prepare(`UPDATE retry_queue SET status = 'done', ${over} WHERE ${held}`);
    this.#retried = db.prepare(
      `UPDATE retry_queue SET status = 'retried', retry_count = attempt, ${over} WHERE ${held}`,
    );
    this.#pending = prepareRows(
      db,
      `UPDATE retry_queue SET lease = NULL, attempt = ?3, retry_count = max(?3 - 1, 0), uncounted = ?4, claims = ?5,
         next_retry_at = coalesce(?6, next_retry_at), visible_at = coalesce(?6, next_retry_at),
         delay_ms = iif(?6 IS NULL, delay_ms, ?7),
         error_reason = iif(?9 IS NULL, error_reason, ?8), failure = coalesce(?9, failure),
         first_at = coalesce(first_at, ?10)
       WHERE ${held} AND cancelling = 0
       RETURNING lane, visible_at, generation, blocked`,
    );
    this.#renew = prepareRows(
      db,
      `UPDATE retry_queue SET visible_at = ?3 WHERE id = ?1 AND lease = ?2 AND status = 'pending' RETURNING arrived`,
    );
    // Claimed, or in delivery with an arrival, which has set its claims to none, or expired before its turn.
    this.#leased = prepareRows(
      db,
      `SELECT ${taskColumns} ${lost} AND lease = ?1
       UNION ALL
       SELECT ${taskColumns} FROM retry_queue INDEXED BY retry_queue_arrived
       WHERE arrived = 1 AND lease = ?1 AND claims = 0 AND blocked = 0
       UNION ALL
       SELECT ${taskColumns} FROM retry_queue INDEXED BY retry_queue_overtaking
       WHERE blocked = 1 AND lease IS NOT NULL AND lease = ?1 AND status = 'pending'`,
    );
  }

  settle(by: Settlement, nowMs: number, after: Aftermath): Settled {
    if (this.#settleShort(by, nowMs, after)) {
      if (by.line) after.settle(by.id);
      return 'settled';
    }
    return this.#changer.change({ id: by.id }, (task) => settle(task, by, nowMs), nowMs, after);
  }

  renew({ id, lease }: Lease, endMs: number): Renewed {
    const row = this.#renew.get(id, lease, endMs) as unknown as Row | undefined;
    if (!row) return 'lost';
    return row[0] === 1 ? 'arrived' : 'held';
  }

  abandon(lease: number, nowMs: number, after: Aftermath): void {
    for (const row of this.#leased.all(lease) as unknown as Row[]) {
      const task = taskOf(row);
      after.touch(task);
      this.#changer.apply(settle(task, release(task), nowMs), nowMs, after);
    }
  }

  /** False: it takes more to see what becomes of it. */
  #settleShort(by: Settlement, nowMs: number, after: Aftermath): boolean {
    switch (by.to) {
      case 'done':
        return this.#done.run(by.id, by.lease, nowMs).changes === 1;
      case 'retried':
        return this.#retried.run(by.id, by.lease, nowMs).changes === 1;
      case 'pending':
        return this.#wait(by, nowMs, after);
      case 'failed':
      case 'cancelled':
        return false;
    }
  }

  #wait(by: Extract<Settlement, { to: 'pending' }>, nowMs: number, after: Aftermath): boolean {
    const { id, lease, attempt, uncounted, claims, delayMs, record } = by;
    const row = this.#pending.get(
      id,
      lease,
      attempt,
      uncounted,
      claims,
      by.reschedule ? nowMs + delayMs : null,
      delayMs,
      ...failureColumns(record?.failure),
      record ? nowMs - record.durationMs : null,
    ) as unknown as Row | undefined;
    if (!row) return false;
    const [lane, visibleAtMs, generation, blocked] = row as [string, number, number, number];
    if (record) this.#inbox.record(id, generation, record, nowMs);
    if (blocked === 0) after.wake.add(lane, visibleAtMs);
    return true;
  }
}

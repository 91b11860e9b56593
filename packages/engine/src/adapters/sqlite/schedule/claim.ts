import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Claim, ClaimFrom, ClaimRequest } from '../../../ports/schedule.ts';
import { LeaseBatch } from './lease-batch.ts';
import { due, lost } from './agenda.ts';
import { prepareRows, type Row } from '../connection.ts';
import { taskColumns } from '../rows.ts';

/** Leases what is due, what was lost and what has expired. */
export class Claimer {
  readonly #due: StatementSync;
  readonly #firstDue: StatementSync;
  readonly #lost: StatementSync;
  readonly #expired: StatementSync;
  readonly #byId: StatementSync;
  readonly #lease: StatementSync;

  constructor(db: DatabaseSync) {
    this.#due = prepareRows(
      db,
      `SELECT ${taskColumns} ${due} AND lane = ? AND visible_at <= ? ORDER BY visible_at, id LIMIT ?`,
    );
    this.#firstDue = prepareRows(
      db,
      `SELECT visible_at ${due} AND lane = ? ORDER BY visible_at LIMIT 1`,
    );
    this.#lost = prepareRows(
      db,
      `SELECT visible_at, id ${lost} AND lane = ? ORDER BY visible_at, id LIMIT ?`,
    );
    this.#expired = prepareRows(
      db,
      `SELECT ${taskColumns} FROM retry_queue INDEXED BY retry_queue_expiry
       WHERE status = 'pending' AND expires_at <= ?1 AND (lease IS NULL OR visible_at <= ?1)
       ORDER BY expires_at, id LIMIT ?2`,
    );
    this.#byId = prepareRows(db, `SELECT ${taskColumns} FROM retry_queue WHERE id = ?`);
    this.#lease = db.prepare(
      'UPDATE retry_queue SET visible_at = ?, lease = ?, claims = claims + 1, arrived = 0 WHERE id = ?',
    );
  }

  /** The answer where nothing can be claimed: it needs no lock, so that idle processes are in nobody's way. */
  glance({ from }: ClaimRequest, nowMs: number): Claim | undefined {
    const nextInMs = this.#nextInMs(from, nowMs);
    return nextInMs && { tasks: [], nowMs, nextInMs };
  }

  claim(request: ClaimRequest, nowMs: number): Claim {
    const { from, lease, leaseMs, maxBytes } = request;
    const batch = new LeaseBatch(this.#lease, { lease, endMs: nowMs + leaseMs, maxBytes });
    switch (from.kind) {
      case 'due': {
        batch.takeFrom(
          from.lanes.map(({ lane, limit }) => ({
            limit,
            read: (rows) => this.#due.all(lane, nowMs, rows) as unknown as Row[],
          })),
        );
        const nextInMs = from.lanes.map(({ lane }) => this.#firstInMs(lane, nowMs));
        return { tasks: batch.tasks, nowMs, nextInMs };
      }
      case 'lost': {
        const all = this.#lostOf(from.lanes, from.limit);
        const over = all.filter(({ atMs }) => atMs <= nowMs).slice(0, from.limit);
        const ids = over.map(({ id }) => id);
        const read = (rows: number) => ids.splice(0, rows).map((id) => this.#row(id));
        batch.takeFrom([{ limit: from.limit, read }]);
        // What did not fit is still there.
        const next = all[batch.tasks.length];
        return { tasks: batch.tasks, nowMs, nextInMs: [next && Math.max(0, next.atMs - nowMs)] };
      }
      case 'expired': {
        const read = (rows: number) => this.#expired.all(nowMs, rows) as unknown as Row[];
        batch.takeFrom([{ limit: from.limit, read }]);
        return { tasks: batch.tasks, nowMs, nextInMs: [] };
      }
    }
  }

  /** Undefined: something can be claimed now. */
  #nextInMs(from: ClaimFrom, nowMs: number): (number | undefined)[] | undefined {
    switch (from.kind) {
      case 'due': {
        const nextInMs: (number | undefined)[] = [];
        for (const { lane, limit } of from.lanes) {
          const inMs = this.#firstInMs(lane, nowMs);
          if (inMs === 0 && limit > 0) return undefined;
          nextInMs.push(inMs);
        }
        return nextInMs;
      }
      case 'lost': {
        const first = this.#lostOf(from.lanes, 0)[0];
        if (first && first.atMs <= nowMs && from.limit > 0) return undefined;
        return [first && Math.max(0, first.atMs - nowMs)];
      }
      case 'expired':
        return from.limit > 0 && this.#expired.get(nowMs, 1) ? undefined : [];
    }
  }

  #firstInMs(lane: string, nowMs: number): number | undefined {
    const row = this.#firstDue.get(lane) as unknown as Row | undefined;
    return row && Math.max(0, (row[0] as number) - nowMs);
  }

  /** Of all that were claimed in these lanes the first to be visible, and the one after them. */
  #lostOf(lanes: readonly string[], limit: number): { atMs: number; id: number }[] {
    return lanes
      .flatMap((lane) => this.#lost.all(lane, limit + 1) as unknown as Row[])
      .map(([atMs, id]) => ({ atMs: atMs as number, id: id as number }))
      .sort((a, b) => a.atMs - b.atMs || a.id - b.id)
      .slice(0, limit + 1);
  }

  #row(id: number): Row {
    return this.#byId.get(id) as unknown as Row;
  }
}

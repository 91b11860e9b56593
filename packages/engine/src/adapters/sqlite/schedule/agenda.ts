import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { LaneAgenda } from '../../../ports/schedule.ts';
import { prepareRows, type Row } from '../connection.ts';

/**
 * The two indexes that hold what waits: not claimed since it was last settled, or claimed before. Named, because a
 * planner that chose another way would be slow where it should fail.
 */
export const due = `FROM retry_queue INDEXED BY retry_queue_due
  WHERE status = 'pending' AND blocked = 0 AND claims = 0`;
export const lost = `FROM retry_queue INDEXED BY retry_queue_lost
  WHERE status = 'pending' AND blocked = 0 AND claims > 0`;

/** The lanes in which something waits. */
export class Agenda {
  readonly #lanes: StatementSync;

  constructor(db: DatabaseSync) {
    const next = earlier(
      (from) => `SELECT lane ${from} AND lane > found.lane ORDER BY lane LIMIT 1`,
    );
    const first = earlier(
      (from) => `SELECT visible_at ${from} AND lane = found.lane ORDER BY visible_at LIMIT 1`,
    );
    // From lane to lane by one seek each, however many tasks wait in them. The row it starts from is no lane.
    this.#lanes = prepareRows(
      db,
      `WITH RECURSIVE found (lane) AS (
         SELECT ?1
         UNION ALL
         SELECT ${next} FROM found WHERE found.lane IS NOT NULL
         LIMIT ?2
       )
       SELECT lane, ${first} FROM found WHERE lane > ?1`,
    );
  }

  lanes(after: string, limit: number, nowMs: number): LaneAgenda[] {
    return (this.#lanes.all(after, limit + 1) as unknown as Row[]).map(([lane, visibleAtMs]) => ({
      lane: lane as string,
      inMs: Math.max(0, (visibleAtMs as number) - nowMs),
    }));
  }
}

/** The lesser of what two queries find, where each may find nothing. */
function earlier(query: (from: string) => string): string {
  const [a, b] = [`(${query(due)})`, `(${query(lost)})`];
  return `coalesce(min(${a}, ${b}), ${a}, ${b})`;
}

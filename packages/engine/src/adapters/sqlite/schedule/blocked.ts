import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from 'redrive';
import type { BlockedLane, BlockedLimits } from '../../../ports/schedule.ts';
import { byName } from '../../../model/names.ts';
import { prepareRows, type Row } from '../connection.ts';
import { standsInLine } from '../schema/version-3.ts';
import { isDead } from '../schema/version-6.ts';

/** How long the event loop stands still for one step. */
const STEP_MS = 4;

/** In steps: from item to item, and of each the tasks behind it, by the indexes of both. */
export function* blockedLanes(
  db: DatabaseSync,
  clock: Clock,
  { items, tasks }: BlockedLimits,
): Generator<undefined, BlockedLane[]> {
  const inLine = `FROM retry_queue INDEXED BY retry_queue_line WHERE ${standsInLine} AND line = ?1`;
  const heads = prepareRows(
    db,
    `SELECT line, lane, id FROM retry_queue INDEXED BY retry_queue_dead WHERE ${isDead} LIMIT ?`,
  );
  const first = prepareRows(
    db,
    `SELECT min(id) FROM (SELECT * FROM (SELECT id ${inLine} AND blocked = 0 ORDER BY id LIMIT 1)
       UNION ALL SELECT * FROM (SELECT id ${inLine} AND blocked = 1 ORDER BY id LIMIT 1))`,
  );
  const behind = prepareRows(
    db,
    `SELECT count(*) FROM (SELECT 1 ${inLine} AND blocked = 1 AND status = 'pending' LIMIT ?2)`,
  );
  const lanes = new Map<string, BlockedLane>();
  let endMs = clock.monotonic() + STEP_MS;
  for (const [line, name, id] of heads.iterate(items) as unknown as Iterable<Row>) {
    if (clock.monotonic() >= endMs) {
      yield;
      endMs = clock.monotonic() + STEP_MS;
    }
    const [firstId] = first.get(line as number) as unknown as Row;
    const [count] = behind.get(line as number, tasks) as unknown as Row;
    if (firstId !== id || count === 0) continue;
    const known = lanes.get(name as string) ?? { lane: name as string, items: 0, tasks: 0 };
    const { items: before, tasks: waiting } = known;
    lanes.set(known.lane, { ...known, items: before + 1, tasks: waiting + (count as number) });
  }
  return [...lanes.values()].sort((a, b) => byName(a.lane, b.lane));
}

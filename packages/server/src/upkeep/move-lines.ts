/** Tasks of one lane and one ordering key stand in a line: who of them has the turn where they go. */
import type pg from 'pg';
import type { SourceRow } from './move-source.ts';
import { table } from './move-insert.ts';

interface Line {
  lane: string;
  key: string;
}

/** The lines of these tasks, each once, in an order that all who lock several have. */
export function linesOf(tasks: readonly SourceRow[]): Line[] {
  const lines = new Map<string, Line>();
  for (const { lane, ordering_key: key } of tasks) {
    if (typeof key === 'string')
      lines.set(JSON.stringify([lane, key]), { lane: String(lane), key });
  }
  return [...lines.values()].sort((a, b) => compare(a.lane, b.lane) || compare(a.key, b.key));
}

/** Before their tasks are written, as everybody does it. */
export async function lockLines(client: pg.Client, lines: readonly Line[]): Promise<void> {
  if (lines.length === 0) return;
  await client.query(
    `INSERT INTO ${table('redrive_lines')} AS line (lane, ordering_key, version, touched_at)
     SELECT u.lane, u.key, 1, now() FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (lane, key, n) ORDER BY u.n
     ON CONFLICT (lane, ordering_key) DO UPDATE SET version = line.version + 1, touched_at = excluded.touched_at`,
    asColumns(lines),
  );
}

/** Whose turn it is in each, as the engine has it: the first that holds its place, once nobody else has the turn. */
export async function letGoOn(client: pg.Client, lines: readonly Line[]): Promise<void> {
  if (lines.length === 0) return;
  const holds = `ordering_key IS NOT NULL AND (status = 'pending' OR status = 'failed' AND on_dead IS NULL)`;
  const isActive = `ordering_key IS NOT NULL AND status = 'pending' AND NOT blocked`;
  const queue = table('retry_queue');
  const first = `WITH first AS (
      SELECT u.lane, u.key, (
        SELECT id FROM ${queue} WHERE lane = u.lane AND ordering_key = u.key AND ${holds} ORDER BY id LIMIT 1
      ) AS id FROM unnest($1::text[], $2::text[]) AS u (lane, key)
    )`;
  await client.query(
    `${first} UPDATE ${queue} AS q SET blocked = true FROM first
     WHERE q.lane = first.lane AND q.ordering_key = first.key AND ${isActive} AND q.lease IS NULL AND q.id <> first.id`,
    asColumns(lines),
  );
  await client.query(
    `${first} UPDATE ${queue} AS q SET blocked = false FROM first
     WHERE q.id = first.id AND q.status = 'pending' AND q.blocked AND NOT EXISTS (
       SELECT FROM ${queue} WHERE lane = first.lane AND ordering_key = first.key AND ${isActive}
     )`,
    asColumns(lines),
  );
}

function asColumns(lines: readonly Line[]): string[][] {
  return [lines.map(({ lane }) => lane), lines.map(({ key }) => key)];
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

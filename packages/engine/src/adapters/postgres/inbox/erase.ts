import type { Failure } from 'redrive';
import { erasedAddress, erasedQueueName } from '../../../model/address.ts';
import type { Line } from '../../../model/line.ts';
import type { NotReached } from '../../../ports/store.ts';
import { encodeArray } from '../arrays.ts';
import { isUuid } from '../columns.ts';
import { type Database, Restart, type Session } from '../connection/database.ts';
import { stripSamples } from './groups.ts';
import { HeldLines, LineSet } from '../schedule/lines.ts';
import type { Names } from '../names.ts';
import { numberOf, parsed } from '../rows.ts';
import { NOW } from '../times.ts';
import { Wake } from '../connection/wake.ts';

interface Erased {
  result: 'erased' | 'busy' | 'unknown';
  wake: Wake;
}

/** What PostgreSQL keeps of a row that was changed. */
export const copies: readonly NotReached[] = [
  {
    what: 'postgres_dead_rows',
    why: 'PostgreSQL keeps the old versions of changed rows on disk until a vacuum. No query shows them.',
    todo: 'Wait for autovacuum, or run VACUUM on the tables retry_queue and redrive_*. VACUUM FULL also rewrites the files.',
  },
  {
    what: 'postgres_log',
    why: 'The write-ahead log has the old rows, and so do its archives and replicas that lag behind.',
    todo: 'Let the retention of archives and replication slots pass.',
  },
];

/** Takes everything personal out of a message: only its traces stay. In the usual order: lines, tasks, items. */
export async function erase(
  database: Database,
  names: Names,
  messageId: string,
  by: string | undefined,
): Promise<Erased> {
  const lines = new LineSet();
  return database.transaction(async (session) => {
    const wake = new Wake();
    if (!isUuid(messageId)) return { result: 'unknown', wake };
    const held = new HeldLines(names, session);
    for (const { line } of await tasksOf(session, names, messageId, '')) lines.add(line);
    for (const line of await linesOfItems(session, names, messageId)) lines.add(line);
    await held.lock(lines);
    const tasks = await tasksOf(session, names, messageId, 'FOR UPDATE');
    for (const { line } of tasks) lines.add(line);
    if (!tasks.every(({ line }) => held.holds(line))) throw new Restart();
    await session.query(
      `SELECT FROM ${names.inbox} WHERE message_id = $1::uuid ORDER BY id FOR UPDATE`,
      [messageId],
    );
    // Whoever had a lock that was waited for may have put a row elsewhere. From now on nobody can.
    const now = await tasksOf(session, names, messageId, '');
    if (now.length !== tasks.length) throw new Restart();
    if (tasks.some(({ status }) => status === 'pending')) return { result: 'busy', wake };
    await eraseTasks(session, names, tasks);
    await session.query(`DELETE FROM ${names.outbox} WHERE message_id = $1::uuid`, [messageId]);
    // Its rows may be deleted already: their numbers stand with the items.
    await session.query(
      `DELETE FROM ${names.attempts} WHERE task_id = ANY (ARRAY(
         SELECT task_id FROM ${names.inbox} WHERE message_id = $1::uuid AND task_id IS NOT NULL
       ))`,
      [messageId],
    );
    const items = await eraseItems(session, names, messageId, by);
    await stripSamples(session, names, [...new Set(items)]);
    await held.advance(wake);
    // The keys themselves may say something of somebody.
    await held.dropEmpty();
    return { result: tasks.length + items.length > 0 ? 'erased' : 'unknown', wake };
  });
}

interface FoundTask {
  id: number;
  status: string;
  line: Line | undefined;
  failure: unknown;
  /** Of an address that has to change; null: it stays. */
  address: string | null;
  queue: string | null;
}

async function tasksOf(
  session: Session,
  names: Names,
  messageId: string,
  lock: '' | 'FOR UPDATE',
): Promise<FoundTask[]> {
  const rows = await session.query(
    `SELECT id, status, lane, ordering_key, failure, kind, coalesce(address, original_queue) FROM ${names.queue} WHERE message_id = $1::uuid ORDER BY id ${lock}`,
    [messageId],
  );
  return rows.map(([id, status, lane, key, failure, kind, to]) => {
    const address = erasedAddress({ kind: kind as string, address: to as string });
    return {
      id: numberOf(id),
      status: status as string,
      line: key === null ? undefined : { lane: lane as string, key: key as string },
      failure,
      address: address ?? null,
      queue: address === undefined ? null : erasedQueueName(address, numberOf(id)),
    };
  });
}

/** Also of those whose tasks are gone. */
async function linesOfItems(session: Session, names: Names, messageId: string): Promise<Line[]> {
  const rows = await session.query(
    `SELECT lane, ordering_key FROM ${names.inbox} WHERE message_id = $1::uuid AND ordering_key IS NOT NULL`,
    [messageId],
  );
  return rows.map(([lane, key]) => ({ lane: lane as string, key: key as string }));
}

async function eraseTasks(
  session: Session,
  names: Names,
  tasks: readonly FoundTask[],
): Promise<void> {
  if (tasks.length === 0) return;
  const ids = tasks.map(({ id }) => id);
  await session.query(
    `UPDATE ${names.queue} AS q SET original_payload = '', context = NULL, ordering_key = NULL, error_reason = NULL,
       failure = u.failure, trial = false, finished_at = ${NOW}, job = CASE WHEN status = 'failed' THEN NULL ELSE job END,
       status = CASE WHEN status = 'failed' THEN 'cancelled' ELSE status END,
       original_queue = coalesce(u.queue, q.original_queue), address = coalesce(u.address, q.address)
     FROM unnest($1::int8[], $2::json[], $3::text[], $4::text[]) AS u(id, failure, queue, address)
     WHERE q.id = ANY (ARRAY[u.id])`,
    [
      encodeArray('int8', ids),
      encodeArray(
        'json',
        tasks.map(({ failure }) => erased(failure)),
      ),
      encodeArray(
        'text',
        tasks.map(({ queue }) => queue),
      ),
      encodeArray(
        'text',
        tasks.map(({ address }) => address),
      ),
    ],
  );
  const values = [encodeArray('int8', ids)];
  await session.query(`DELETE FROM ${names.attempts} WHERE task_id = ANY ($1::int8[])`, values);
}

/** The fingerprints of its items. */
async function eraseItems(
  session: Session,
  names: Names,
  messageId: string,
  by: string | undefined,
): Promise<string[]> {
  const rows = await session.query(
    `SELECT id, failure, fingerprint, kind, address FROM ${names.inbox} WHERE message_id = $1::uuid ORDER BY id FOR UPDATE`,
    [messageId],
  );
  if (rows.length === 0) return [];
  const ids = encodeArray(
    'int8',
    rows.map(([id]) => numberOf(id)),
  );
  await session.query(
    `UPDATE ${names.inbox} AS item SET payload = '', context = NULL, edit = NULL, edit_payload = NULL,
       ordering_key = NULL, failure = u.failure, address = coalesce(u.address, item.address)
     FROM unnest($1::int8[], $2::json[], $3::text[]) AS u(id, failure, address) WHERE item.id = ANY (ARRAY[u.id])`,
    [
      ids,
      encodeArray(
        'json',
        rows.map(([, failure]) => erased(failure)),
      ),
      encodeArray(
        'text',
        rows.map(
          ([, , , kind, to]) =>
            erasedAddress({ kind: kind as string, address: to as string }) ?? null,
        ),
      ),
    ],
  );
  await session.query(`DELETE FROM ${names.open} WHERE id = ANY ($1::int8[])`, [ids]);
  await session.query(
    `INSERT INTO ${names.closed} AS item (id, state, closed_at, closed_by)
     SELECT id, 'erased', ${NOW}, $2 FROM unnest($1::int8[]) AS u(id)
     ON CONFLICT (id) DO UPDATE SET state = 'erased', closed_by = excluded.closed_by`,
    [ids, by ?? null],
  );
  return rows.map(([, , fingerprint]) => fingerprint as string);
}

/** The class says nothing of anybody. */
function erased(failure: unknown): string {
  const { class: kind = 'unknown' } = (parsed(failure) ?? {}) as Partial<Failure>;
  return JSON.stringify({ class: kind, code: 'ERASED' });
}

import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { itemOf } from '../../../model/item.ts';
import type { Store } from '../../../ports/store.ts';
import { bytes, newTask, outboxMessage, rawItem, uuid } from '../../../testing/fixtures.ts';
import { migratePostgres, postgres } from '../index.ts';

const MARK = 'rosebud';
const lane = 'https://a.example';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Pool;
  let store: Store;

  beforeAll(async () => {
    database = await freshDatabase();
    admin = new pg.Pool({ connectionString: database.url });
    await migratePostgres(database.url);
    store = postgres({ url: database.url, maxConnections: 2 });
    await store.open();
  });
  afterAll(async () => {
    await store.close();
    await admin.end();
    await database.drop();
  });

  /** Every value of every row, as text; bytes as they are. */
  async function content(): Promise<string> {
    const { rows } = await admin.query<{ name: string }>(
      `SELECT format('%I', relname) AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
    );
    const values: string[] = [];
    for (const { name } of rows) {
      const found = await admin.query<Record<string, unknown>>(`SELECT * FROM ${name}`);
      for (const value of found.rows.flatMap((row) => Object.values(row))) {
        values.push(Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value));
      }
    }
    return values.join('\n');
  }

  test('what is erased is in no row of any table any more', async () => {
    const messageId = uuid();
    const task = newTask({
      messageId,
      destination: { kind: 'http', address: `${lane}/hook?query=${MARK}` },
      lane,
      payload: bytes(`${MARK} `.repeat(2000)),
      context: { headers: { 'x-correlation-id': MARK } },
      orderingKey: MARK,
      blocked: true,
    });
    const [id] = await store.insert([task]);
    const from = { kind: 'due' as const, lanes: [{ lane, limit: 1 }] };
    await store.claim({ from, lease: 1, leaseMs: 60_000, maxBytes: 1e6 });
    const failure = { class: 'technical' as const, message: `${MARK} is not known` };
    const record = { attempt: 1, failure, durationMs: 1, answer: MARK };
    const item = itemOf('PERMANENT', failure, lane);
    const outbox = outboxMessage(MARK);
    const line = { lane, key: MARK };
    await store.settle([
      { id: id!, lease: 1, to: 'failed', attempt: 1, item, record, outbox, line },
    ]);
    const edit = { payload: bytes(MARK), headers: { a: MARK } };
    expect(await store.act([1], { type: 'edit', edit })).toEqual(['done']);
    await store.audit?.write([
      {
        event_type: 'retry_exhausted',
        timestamp: new Date().toISOString(),
        final_exception_message: failure.message,
        correlation_id: MARK,
        redrive: { instance: 'a', run: 1, sequence: 1, message_id: messageId },
      },
    ]);
    await store.append([rawItem('other')]);
    expect((await content()).split(MARK).length).toBeGreaterThan(2000);
    expect(await store.erase(messageId, 'ann')).toBe('erased');
    expect(await store.audit?.erase?.(messageId)).toBe(1);
    const after = await content();
    expect(after).not.toContain(MARK);
    expect(after).toContain('other');
  });

  test('the ordering key is gone too where only the item is left of its task', async () => {
    const messageId = uuid();
    const task = newTask({ messageId, lane, orderingKey: MARK, blocked: true });
    const [id] = await store.insert([task]);
    const from = { kind: 'due' as const, lanes: [{ lane, limit: 1 }] };
    const claim = () => store.claim({ from, lease: 1, leaseMs: 60_000, maxBytes: 1e6 });
    const held = { id: id!, lease: 1, line: { lane, key: MARK } };
    await claim();
    const item = itemOf('PERMANENT', { class: 'technical' }, lane);
    await store.settle([{ ...held, to: 'failed', attempt: 1, item }]);
    const { items } = await store.items({ state: 'open', limit: 10 });
    const mine = items.find((one) => one.messageId === messageId)!;
    await store.act([mine.id], { type: 'replay' });
    await claim();
    expect(await store.settle([{ ...held, to: 'done' }])).toEqual(['settled']);
    await store.prune({ olderThanMs: { done: 0, retried: 0, cancelled: 0 }, limit: 10 });
    expect(await store.get({ id: id! })).toBeUndefined();
    expect(await content()).toContain(MARK);
    expect(await store.erase(messageId)).toBe('erased');
    expect(await content()).not.toContain(MARK);
  });

  test('says what PostgreSQL keeps on disk', async () => {
    const places = (await store.scrub?.()) ?? [];
    expect(places.map(({ what }) => what)).toEqual(['postgres_dead_rows', 'postgres_log']);
  });

  /** Resolves when a statement waits for a lock. */
  const somebodyWaits = async () => {
    await expect
      .poll(async () => (await admin.query('SELECT FROM pg_locks WHERE NOT granted')).rowCount)
      .toBeGreaterThan(0);
  };
  const eventOf = (id: string) => ({
    event_type: 'retry_attempt',
    timestamp: new Date().toISOString(),
    exception_message: MARK,
    redrive: { instance: 'b', run: 1, sequence: 1, message_id: id },
  });
  const events = async () =>
    JSON.stringify((await admin.query('SELECT event::text FROM redrive_audit')).rows);

  test('an erase waits for an event that is written and not committed, and reaches it', async () => {
    const id = uuid();
    const other = await admin.connect();
    await other.query('BEGIN');
    await other.query(
      `INSERT INTO redrive_audit (instance, sequence, event_type, at, event) VALUES ('', 0, 'a', now(), $1)`,
      [JSON.stringify(eventOf(id))],
    );
    const erasing = store.audit!.erase!(id);
    await somebodyWaits();
    await other.query('COMMIT');
    other.release();
    expect(await erasing).toBe(1);
    expect(await events()).not.toContain(MARK);
  });

  test('an event that waits for an erase to commit is stored erased', async () => {
    const id = uuid();
    const other = await admin.connect();
    await other.query('BEGIN; LOCK TABLE redrive_audit IN SHARE ROW EXCLUSIVE MODE');
    const writing = store.audit!.write([eventOf(id)]);
    await somebodyWaits();
    await other.query(`INSERT INTO redrive_erased VALUES ('${id}', now()); COMMIT`);
    other.release();
    await writing;
    expect(await events()).not.toContain(MARK);
    expect(await events()).toContain(id);
  });
});

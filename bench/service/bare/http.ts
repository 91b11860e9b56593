/**
 * The limit of `http-single` and `http-batch`: fastify, JSON, and one insert for all that wait, into Redrive's own table.
 * No schema, no checks, no limits: whatever comes is stored and answered with 202.
 */
import { once } from 'node:events';
import { postgres } from '@redrive/engine/postgres';
import fastify from 'fastify';
import pg from 'pg';
import { arrayOf } from '../../engine/players/binary-array.ts';
import { uuidBytes } from '../../engine/players/uuid.ts';

const MAX_BATCH = 1000;
/** By trial. */
const INSERTS = 2;

interface Item {
  destination: string;
  payload: unknown;
  due_at: string;
}

interface Row extends Item {
  id: Buffer;
}

interface Wait {
  rows: readonly Row[];
  resolve: () => void;
  reject: (error: unknown) => void;
}

const insertText = `INSERT INTO retry_queue
    (message_id, original_payload, original_queue, kind, lane, attempt, next_retry_at, visible_at)
  SELECT id, payload, queue, 'http', queue, 0, due, due
  FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::timestamptz[]) AS u(id, payload, queue, due)
  ON CONFLICT (message_id, original_queue, kind) DO NOTHING`;

const { DATABASE_URL: url = '' } = process.env;
const store = postgres({ url });
await store.open();
await store.close();
const pool = new pg.Pool({ connectionString: url, max: INSERTS });
const waiting: Wait[] = [];
let inserts = 0;

const app = fastify();
app.post<{ Body: Item | { items: Item[] } }>('/api/v1/retries', async ({ body }, reply) => {
  reply.code(202);
  if ('items' in body) {
    const rows = body.items.map(rowOf);
    await stored(rows);
    const accepted = rows.map(({ id }, index) => {
      return { index, message_id: textOf(id), result: 'accepted' };
    });
    return { accepted, rejected: [] };
  }
  const row = rowOf(body);
  await stored([row]);
  return { message_id: textOf(row.id), status: 'pending' };
});
const address = await app.listen({ host: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ msg: 'listening', url: address }));
console.log('{"msg":"ready"}');
await once(process, 'SIGTERM');
process.exit();

function rowOf(item: Item): Row {
  return { ...item, id: uuidBytes() };
}

function textOf(id: Buffer): string {
  const hex = id.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function stored(rows: readonly Row[]): Promise<void> {
  return new Promise((resolve, reject) => {
    waiting.push({ rows, resolve, reject });
    if (waiting.length === 1) setImmediate(flush);
  });
}

function flush(): void {
  if (inserts === INSERTS || waiting.length === 0) return;
  inserts += 1;
  const batch: Wait[] = [];
  for (let rows = 0; waiting.length > 0 && rows < MAX_BATCH;) {
    const next = waiting.shift()!;
    rows += next.rows.length;
    batch.push(next);
  }
  void insert(batch).finally(() => {
    inserts -= 1;
    flush();
  });
}

async function insert(batch: readonly Wait[]): Promise<void> {
  const rows = batch.flatMap((one) => one.rows);
  try {
    await pool.query({
      name: 'insert',
      text: insertText,
      values: [
        arrayOf(
          'uuid',
          rows.map(({ id }) => id),
        ),
        arrayOf(
          'bytea',
          rows.map(({ payload }) => Buffer.from(JSON.stringify(payload))),
        ),
        rows.map(({ destination }) => destination),
        rows.map(({ due_at }) => due_at),
      ],
    });
    for (const { resolve } of batch) resolve();
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

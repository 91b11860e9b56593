/**
 * The limit of `nats-pipeline`: the same road without Redrive. Consumed from JetStream, inserted, acknowledged after the
 * commit, claimed, published with acknowledgement, settled; on Redrive's own table with all of its indexes, with the
 * contract's headers. No policy, no lanes, no inbox, no outage that it would survive.
 */
import { once } from 'node:events';
import { AckPolicy, type JsMsg, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers } from '@nats-io/transport-node';
import { postgres } from '@redrive/engine/postgres';
import pg from 'pg';
import { arrayOf } from '../../engine/players/binary-array.ts';

const BATCH = 500;
/** By trial, as the others. */
const PULL = 2000;
const INSERTS = 2;
const LOOPS = 3;
const LEASE = 1;

interface RetryFields {
  message_id: string;
  original_payload: string;
  original_queue: string;
  error_reason: string;
  retry_count: number;
  max_retries: number;
}

interface Claimed {
  id: string;
  message_id: string;
  original_payload: Buffer;
  original_queue: string;
  error_reason: string;
  attempt: number;
}

const insertText = `INSERT INTO retry_queue (message_id, original_payload, original_queue, kind, lane, error_reason,
    attempt, retry_count, max_retries, next_retry_at, visible_at)
  SELECT id, payload, queue, 'nats', 'nats:' || queue, reason, attempt, attempt - 1, most, now(), now()
  FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::text[], $5::int[], $6::int[])
    AS u(id, payload, queue, reason, attempt, most)
  ON CONFLICT (message_id, original_queue, kind) DO NOTHING`;

const claimText = `UPDATE retry_queue
  SET visible_at = now() + INTERVAL '30 seconds', lease = ${LEASE}, claims = claims + 1
  WHERE id = ANY (ARRAY(
    SELECT id FROM retry_queue
    WHERE status = 'pending' AND NOT blocked AND claims = 0 AND visible_at <= now()
    ORDER BY lane, visible_at, id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  )) RETURNING id, message_id, original_payload, original_queue, error_reason, attempt`;

const settleText = `UPDATE retry_queue
  SET status = 'retried', retry_count = attempt, finished_at = now(), lease = NULL, claims = 0
  WHERE id = ANY ($1::bigint[]) AND lease = ${LEASE} AND status = 'pending'`;

const { DATABASE_URL: url = '', NATS_URL = '', NATS_RETRY_SUBJECT = '' } = process.env;
const store = postgres({ url });
await store.open();
await store.close();
const pool = new pg.Pool({ connectionString: url, max: INSERTS + LOOPS });
const { host, username: user, password: pass } = new URL(NATS_URL);
const connection = await connect({ servers: host, user, pass });
const manager = await jetstreamManager(connection);
const stream = await manager.streams.find(NATS_RETRY_SUBJECT);
await manager.consumers.add(stream, {
  durable_name: 'bare',
  ack_policy: AckPolicy.Explicit,
  max_ack_pending: 20_000,
});
const client = jetstream(connection);

const waiting: JsMsg[] = [];
const idle: (() => void)[] = [];
let inserts = 0;
/** Stored since a claim last came back empty. */
let isMore = false;

for (let i = 0; i < LOOPS; i++) void deliver();
const consumer = await client.consumers.get(stream, 'bare');
await consumer.consume({
  max_messages: PULL,
  callback: (message) => {
    waiting.push(message);
    if (waiting.length === 1) setImmediate(takeIn);
  },
});
console.log('{"msg":"ready"}');
await once(process, 'SIGTERM');
process.exit();

function takeIn(): void {
  while (inserts < INSERTS && waiting.length > 0) {
    inserts += 1;
    void store500(waiting.splice(0, BATCH)).finally(() => {
      inserts -= 1;
      takeIn();
    });
  }
}

async function store500(messages: readonly JsMsg[]): Promise<void> {
  const fields = messages.map((one) => one.json<RetryFields>());
  await pool.query({
    name: 'insert',
    text: insertText,
    values: [
      arrayOf(
        'uuid',
        fields.map((one) => Buffer.from(one.message_id.replaceAll('-', ''), 'hex')),
      ),
      arrayOf(
        'bytea',
        fields.map((one) => Buffer.from(one.original_payload, 'base64')),
      ),
      fields.map((one) => one.original_queue),
      fields.map((one) => one.error_reason),
      fields.map((one) => one.retry_count + 1),
      fields.map((one) => one.max_retries),
    ],
  });
  for (const message of messages) message.ack();
  isMore = true;
  for (const wake of idle.splice(0)) wake();
}

async function deliver(): Promise<never> {
  for (;;) {
    isMore = false;
    const { rows } = await pool.query<Claimed>({ name: 'claim', text: claimText });
    if (rows.length === 0) {
      if (!isMore) await woken();
      continue;
    }
    await Promise.all(rows.map(publish));
    await pool.query({ name: 'settle', text: settleText, values: [rows.map(({ id }) => id)] });
  }
}

async function publish(row: Claimed): Promise<void> {
  const written = headers();
  written.append('x-retry-count', String(row.attempt));
  written.append('x-original-error', row.error_reason);
  written.append('x-retry-scheduler', 'true');
  written.append('x-message-id', row.message_id);
  await client.publish(row.original_queue, row.original_payload, {
    headers: written,
    msgID: `${row.message_id}.${row.attempt}`,
  });
}

function woken(): Promise<void> {
  return new Promise((resolve) => {
    idle.push(resolve);
  });
}

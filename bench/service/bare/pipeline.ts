/**
 * The limit of `pipeline`: the same road without Redrive. Consumed, inserted, acknowledged after the commit, claimed,
 * published with confirms, settled; on Redrive's own table with all of its indexes, with the contract's headers. No policy, no
 * lanes, no inbox, no outage that it would survive.
 */
import { once } from 'node:events';
import amqp, { type ConfirmChannel, type ConsumeMessage } from 'amqplib';
import { postgres } from '@redrive/engine/postgres';
import pg from 'pg';
import { arrayOf } from '../../engine/players/binary-array.ts';

const BATCH = 500;
/** By trial, as the others. */
const PREFETCH = 2000;
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
  SELECT id, payload, queue, 'queue', 'queue:' || queue, reason, attempt, attempt - 1, most, now(), now()
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

const { DATABASE_URL: url = '', RABBITMQ_URL = '', RETRY_QUEUE = '' } = process.env;
const store = postgres({ url });
await store.open();
await store.close();
const pool = new pg.Pool({ connectionString: url, max: INSERTS + LOOPS });
const consuming = await amqp.connect(RABBITMQ_URL);
const publishing = await amqp.connect(RABBITMQ_URL);

const waiting: ConsumeMessage[] = [];
const idle: (() => void)[] = [];
let inserts = 0;
let acknowledged: Promise<void> = Promise.resolve();
/** Stored since a claim last came back empty. */
let isMore = false;

for (let i = 0; i < LOOPS; i++) void deliver(await publishing.createConfirmChannel());
const intake = await consuming.createChannel();
await intake.prefetch(PREFETCH);
await intake.consume(RETRY_QUEUE, (message) => {
  if (!message) return;
  waiting.push(message);
  if (waiting.length === 1) setImmediate(takeIn);
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

async function store500(messages: readonly ConsumeMessage[]): Promise<void> {
  const fields = messages.map(({ content }) => JSON.parse(content.toString()) as RetryFields);
  const before = acknowledged;
  const stored = pool.query({
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
  // In the order in which they came: the acknowledgement of the last is for all before it.
  acknowledged = Promise.all([before, stored]).then(() => intake.ack(messages.at(-1)!, true));
  await stored;
  isMore = true;
  for (const wake of idle.splice(0)) wake();
}

async function deliver(channel: ConfirmChannel): Promise<never> {
  for (;;) {
    isMore = false;
    const { rows } = await pool.query<Claimed>({ name: 'claim', text: claimText });
    if (rows.length === 0) {
      if (!isMore) await woken();
      continue;
    }
    for (const row of rows) {
      channel.sendToQueue(row.original_queue, row.original_payload, {
        persistent: true,
        mandatory: true,
        headers: {
          'x-retry-count': row.attempt,
          'x-original-error': row.error_reason,
          'x-retry-scheduler': 'true',
          'x-message-id': row.message_id,
        },
      });
    }
    await channel.waitForConfirms();
    await pool.query({ name: 'settle', text: settleText, values: [rows.map(({ id }) => id)] });
  }
}

function woken(): Promise<void> {
  return new Promise((resolve) => {
    idle.push(resolve);
  });
}

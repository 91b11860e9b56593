/**
 * The limit of `nats-pipeline`: the same road without Redrive. Consumed from JetStream, inserted, acknowledged after the
 * commit, claimed, published with acknowledgement and the contract's headers, settled.
 */
import { once } from 'node:events';
import { AckPolicy, type JsMsg, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers } from '@nats-io/transport-node';
import { BareStore, type Claimed, LOOPS, type RetryFields } from './bare-store.ts';

/** By trial, as the others. */
const PULL = 2000;

const { DATABASE_URL = '', NATS_URL = '', NATS_RETRY_SUBJECT = '' } = process.env;
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
const store = await BareStore.open<JsMsg>(DATABASE_URL, {
  kind: 'nats',
  read: (message) => message.json<RetryFields>(),
  acknowledge: (messages) => {
    for (const message of messages) message.ack();
  },
});

for (let i = 0; i < LOOPS; i++) void store.deliver((rows) => Promise.all(rows.map(publish)));
const consumer = await client.consumers.get(stream, 'bare');
await consumer.consume({ max_messages: PULL, callback: (message) => store.take(message) });
console.log('{"msg":"ready"}');
await once(process, 'SIGTERM');
process.exit();

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

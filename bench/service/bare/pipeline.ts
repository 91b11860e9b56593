/**
 * The limit of `pipeline`: the same road without Redrive. Consumed, inserted, acknowledged after the commit, claimed,
 * published with confirms and the contract's headers, settled.
 */
import { once } from 'node:events';
import amqp, { type ConfirmChannel, type ConsumeMessage } from 'amqplib';
import { BareStore, type Claimed, LOOPS, type RetryFields } from './bare-store.ts';

/** By trial, as the others. */
const PREFETCH = 2000;

const { DATABASE_URL = '', RABBITMQ_URL = '', RETRY_QUEUE = '' } = process.env;
const consuming = await amqp.connect(RABBITMQ_URL);
const publishing = await amqp.connect(RABBITMQ_URL);
const intake = await consuming.createChannel();
const store = await BareStore.open<ConsumeMessage>(DATABASE_URL, {
  kind: 'queue',
  read: ({ content }) => JSON.parse(content.toString()) as RetryFields,
  // That of the last is for all before it.
  acknowledge: (messages) => intake.ack(messages.at(-1)!, true),
});

for (let i = 0; i < LOOPS; i++) {
  const channel = await publishing.createConfirmChannel();
  void store.deliver((rows) => publish(channel, rows));
}
await intake.prefetch(PREFETCH);
await intake.consume(RETRY_QUEUE, (message) => {
  if (message) store.take(message);
});
console.log('{"msg":"ready"}');
await once(process, 'SIGTERM');
process.exit();

async function publish(channel: ConfirmChannel, rows: readonly Claimed[]): Promise<void> {
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
}

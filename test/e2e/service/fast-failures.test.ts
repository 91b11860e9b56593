/** Consumers that fail at once, and send their message back before its delivery is settled. */
import { randomUUID } from 'node:crypto';
import { describeService } from '@redrive/services/vitest';
import { expect, test } from 'vitest';
import { startDeafProxy } from './deaf-proxy.ts';
import { eventually } from './redrive-process.ts';
import { protobuf } from './retry-wire.ts';
import { Scene, SLOW, useServers } from './scene.ts';

const MESSAGES = 5000;
const FAILURES = 2;

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  useServers();

  test(
    `${MESSAGES} messages that fail ${FAILURES} times within a millisecond are all delivered ${FAILURES + 1} times`,
    SLOW,
    async () => {
      await using scene = await Scene.prepare({ BASE_DELAY_MS: '0', MAX_DELAY_MS: '0' });
      await using broker = await startDeafProxy(scene.env['RABBITMQ_URL']!);
      await scene.start({}, '--only', 'intake');
      await scene.start({ RABBITMQ_URL: broker.url }, '--only', 'dispatch');

      const deliveries = new Map<string, number[]>();
      const queue = await scene.queue({
        prefetch: 1000,
        answer(message, channel) {
          channel.ack(message);
          const id = message.content.toString();
          const count = message.properties.headers?.['x-retry-count'] as number;
          deliveries.set(id, [...(deliveries.get(id) ?? []), count]);
          if (count > FAILURES) return;
          const failure = protobuf({
            message_id: id,
            original_payload: message.content,
            original_queue: queue.name,
            error_reason: `failure ${count}`,
            retry_count: count,
          });
          const contentType = 'application/x-protobuf';
          channel.sendToQueue(scene.retryQueue, failure, { contentType });
        },
      });
      broker.hold();
      const ids = Array.from({ length: MESSAGES }, () => randomUUID());
      // Not by the retry queue, where failures would have to wait behind them.
      await scene.sql(
        `INSERT INTO retry_queue (message_id, original_payload, original_queue, next_retry_at)
         SELECT id, convert_to(id::text, 'UTF8'), $1, now() FROM unnest($2::uuid[]) AS id`,
        [queue.name, ids],
      );
      // At first confirms are held back until all that was sent has failed and is back. Then each comes when it comes.
      const back = async () => {
        const [row] = await scene.sql<{ count: number }>(
          'SELECT count(*)::int FROM retry_queue WHERE arrived',
        );
        return row!.count;
      };
      await eventually(back, (count) => count >= 500 && count === queue.letters.length);
      broker.release();
      await queue.count(MESSAGES * (FAILURES + 1));
      await eventually(
        () => scene.sql<{ status: string }>('SELECT status FROM retry_queue GROUP BY status'),
        (rows) => rows.length === 1 && rows[0]?.status === 'retried',
      );

      const wrong = ids.filter((id) => String(deliveries.get(id)) !== '1,2,3');
      expect(wrong.map((id) => [id, deliveries.get(id)])).toEqual([]);
      expect(queue.letters).toHaveLength(MESSAGES * (FAILURES + 1));
      expect(await scene.sql('SELECT FROM redrive_inbox')).toEqual([]);
    },
  );
});

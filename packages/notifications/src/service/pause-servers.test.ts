/** A pause on real queues: Redis for the urgent lane, Kafka for the bulk lane. */
import { randomUUID } from 'node:crypto';
import { kafkaDelayQueue } from '@redrive/engine/kafka';
import { redisDelayQueue } from '@redrive/engine/redis';
import { describeService, sharedServer } from '@redrive/services/vitest';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import { memoryNotifications } from '../adapters/memory/index.ts';
import { queueNames } from './queue-names.ts';
import type { Notifications } from './notifications.ts';
import { createNotifications } from './service.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const soon = { timeout: 25_000, interval: 50 };
const services: Notifications[] = [];

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.stop()));
});

describeService('Redis', () => {
  describeService('Kafka', () => {
    let url: string;
    let brokers: string;
    beforeAll(async () => {
      url = await sharedServer('Redis');
      brokers = new URL(await sharedServer('Kafka')).host;
    });

    it.each([
      ['urgent', 'critical', 'low'],
      ['bulk', 'low', 'critical'],
    ] as const)(
      'holds the %s lane up, and no other',
      async (lane, held, free) => {
        const delivered: string[] = [];
        const names = queueNames(`pause-${randomUUID()}`);
        const repository = memoryNotifications();
        const start = async () => {
          const service = createNotifications({
            repository,
            queues: {
              urgent: redisDelayQueue({ url, prefix: names.redis.urgent, log: quiet }),
              bulk: kafkaDelayQueue({
                brokers,
                prefix: names.kafka.bulk,
                partitions: 2,
                tierMs: 300,
                tiers: 3,
                log: quiet,
              }),
            },
            deliver: async ({ notificationId }) => void delivered.push(notificationId),
            // What is held up would be due long before the other.
            policies: { [held]: { base: '20ms', cap: '20ms' }, [free]: { base: '1s', cap: '1s' } },
            log: quiet,
          });
          services.push(service);
          await service.start();
          return service;
        };
        const both = [await start(), await start()];
        await Promise.all(both.map((one) => one.pause(lane)));
        const send = async (id: string, priority: 'critical' | 'low') => {
          const [one] = both;
          const content = { title: 'Hello', body: 'World' };
          const recipient = { userId: 'u1' };
          await one!.create({ id, recipient, priority, notification: content, source: 'test' });
          await one!.reportFailure({ notificationId: id, deviceId: 'd1', attemptNumber: 1 });
        };
        await send('held', held);
        await send('free', free);
        await vi.waitFor(() => expect(delivered).not.toEqual([]), soon);
        expect(delivered).toEqual(['free']);
        await Promise.all(both.map((one) => one.resume(lane)));
        await vi.waitFor(() => expect(delivered).toEqual(['free', 'held']), soon);
        // Once more, since a queue that was consumed before is consumed again.
        await send('after', held);
        await vi.waitFor(() => expect(delivered).toContain('after'), soon);
      },
      60_000,
    );
  });
});

import { type KafkaCluster, startKafka, startKafkaCluster } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterEach, expect, it } from 'vitest';
import { type KafkaDelayQueue, kafkaDelayQueue, type KafkaDelayQueueOptions } from '../index.ts';
import { flowOf } from './flow.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const TEST_MS = 300_000;
const tiers = { tierMs: 300, tiers: 3, partitions: 3 };

const queues: KafkaDelayQueue[] = [];
afterEach(async () => {
  await Promise.all(queues.splice(0).map((queue) => queue.close()));
});

async function queueAt(brokers: readonly string[], more: Partial<KafkaDelayQueueOptions> = {}) {
  const queue = kafkaDelayQueue({
    brokers,
    log: quiet,
    ...tiers,
    sessionTimeout: 6000,
    requestTimeout: 5000,
    connectTimeout: 2000,
    ...more,
  });
  await queue.open();
  queues.push(queue);
  return queue;
}

describeService('Kafka', () => {
  it(
    'loses nothing and hands over nothing early when brokers of three are killed, one after the other',
    async () => {
      await using kafka: KafkaCluster = await startKafkaCluster();
      const [one, two] = [await queueAt(kafka.addresses), await queueAt(kafka.addresses)];
      const flow = flowOf([0, 10, 200, 450, 900, 1700]);
      await one.consume(flow.handler, {});
      await two.consume(flow.handler, {});
      flow.start(one);
      await flow.isWorking();
      for (const server of kafka.servers) {
        await server.kill();
        await flow.isWorking();
        await server.start();
        await flow.isWorking();
      }
      const duplicates = await flow.end();
      // A hop or an answer whose commit was lost, and what was sent again without an acknowledgement.
      expect(duplicates).toBeLessThan(flow.handed.size);
    },
    TEST_MS,
  );

  it(
    'goes on when its only broker was killed and comes back',
    async () => {
      await using server = await startKafka();
      const queue = await queueAt([server.address]);
      const flow = flowOf([0, 400, 900]);
      await queue.consume(flow.handler, {});
      flow.start(queue);
      await flow.isWorking();
      await server.kill();
      await server.start();
      await flow.isWorking();
      await flow.end();
    },
    TEST_MS,
  );

  it(
    'says that Kafka is away',
    async () => {
      await using server = await startKafka();
      await server.kill();
      const away = kafkaDelayQueue({ brokers: server.address, log: quiet, connectTimeout: 500 });
      await expect(away.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    },
    TEST_MS,
  );
});

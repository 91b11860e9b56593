import { type KafkaCluster, startKafka, startKafkaCluster } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterEach, expect, it, vi } from 'vitest';
import type { DelayHandler } from '../../../ports/delay-queue.ts';
import { type KafkaDelayQueue, kafkaDelayQueue, type KafkaDelayQueueOptions } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const TEST_MS = 300_000;
const soon = { timeout: 90_000, interval: 20 };
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
      expect(await flow.end()).toBeLessThan(flow.handed.size);
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

/** Entries that go in and come out, each accounted for. */
interface Flow {
  readonly handed: Map<string, number>;
  readonly handler: DelayHandler;
  /** Schedules without a pause until `end`. */
  start(queue: KafkaDelayQueue): void;
  isWorking(): Promise<void>;
  /** Stops scheduling, waits for all that was acknowledged, and compares. Answers how many came more than once. */
  end(): Promise<number>;
}

function flowOf(delaysMs: readonly number[]): Flow {
  const acknowledged = new Map<string, number>();
  const asked = new Set<string>();
  const handed = new Map<string, number>();
  const early: string[] = [];
  const ending = new AbortController();
  let flowing: Promise<void> | undefined;
  let last = 0;
  const handler: DelayHandler = async (batch) => {
    // The clock of the brokers is that of this machine.
    const nowMs = Date.now();
    for (const { id } of batch) {
      handed.set(id, (handed.get(id) ?? 0) + 1);
      const dueMs = Number(id.split(' ')[1]);
      if (nowMs < dueMs - 1) early.push(`${id} came ${dueMs - nowMs} ms early`);
    }
    return batch.map(() => ({ type: 'done' }));
  };
  return {
    handed,
    handler,
    start(queue) {
      flowing = (async () => {
        while (!ending.signal.aborted) {
          const entries = Array.from({ length: 20 }, () => {
            const delayMs = delaysMs[last % delaysMs.length]!;
            last += 1;
            const id = `${last} ${Date.now() + delayMs}`;
            return { id, delayMs, payload: Buffer.from(id) };
          });
          for (const { id } of entries) asked.add(id);
          try {
            await queue.schedule(entries);
            for (const { id, delayMs } of entries) acknowledged.set(id, delayMs);
          } catch (error) {
            expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
          }
        }
      })();
    },
    async isWorking() {
      const [before, out] = [acknowledged.size, handed.size];
      await vi.waitFor(() => {
        expect(acknowledged.size).toBeGreaterThan(before + 200);
        expect(handed.size).toBeGreaterThan(out + 200);
      }, soon);
    },
    async end() {
      ending.abort();
      await flowing;
      const missing = () => [...acknowledged.keys()].filter((id) => !handed.has(id)).length;
      await vi.waitFor(() => expect(missing()).toBe(0), soon);
      expect(early).toEqual([]);
      expect([...handed.keys()].filter((id) => !asked.has(id))).toEqual([]);
      return [...handed.values()].filter((times) => times > 1).length;
    },
  };
}

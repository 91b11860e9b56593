import {
  describeService,
  kafkaClient,
  type KafkaClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, beforeAll, test } from 'vitest';
import { delayQueueSuite } from '../../../testing/index.ts';
import { type KafkaDelayQueue, kafkaDelayQueue, type KafkaDelayQueueOptions } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
/** The least that the brokers of tests allow; most cases wish for much more. */
const LEAST_LEASE_MS = 2000;

describeService('Kafka', () => {
  let brokers: string;
  let client: KafkaClient;
  beforeAll(async () => {
    const url = await sharedServer('Kafka');
    brokers = new URL(url).host;
    client = await kafkaClient(url);
  });
  afterAll(() => client.close());

  const suite = delayQueueSuite({
    capabilities: { deduplicates: false, cancels: false, counts: false, durable: true },
    // A killed consumer is in processes.test.ts: nobody counts what it had in hand.
    hooks: ['held', 'skewed'],
    async open({ leaseMs: wish }) {
      const leaseMs = Math.max(wish, LEAST_LEASE_MS);
      const prefix = client.name();
      const all: KafkaDelayQueue[] = [];
      const opened = async (more: Partial<KafkaDelayQueueOptions> = {}) => {
        const queue = kafkaDelayQueue({
          brokers,
          prefix,
          partitions: 2,
          tierMs: 300,
          tiers: 3,
          sessionTimeout: leaseMs,
          log: quiet,
          ...more,
        });
        await queue.open();
        all.push(queue);
        return queue;
      };
      return {
        queue: await opened(),
        leaseMs,
        another: () => opened(),
        skewed: (clock) => opened({ clock }),
        held: () => idsHeld(client, prefix),
        close: async () => void (await Promise.all(all.map((queue) => queue.close()))),
      };
    },
  });
  for (const { name, run: assertCase, skip } of suite) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }
});

/** Twice: an entry may go on to a topic that was read already. */
async function idsHeld(client: KafkaClient, prefix: string): Promise<string[]> {
  const first = await readHeld(client, prefix);
  return [...new Set([...first, ...(await readHeld(client, prefix))])];
}

/** What is in the logs and not committed, read past the adapter. */
async function readHeld(client: KafkaClient, prefix: string): Promise<Set<string>> {
  const topics = (await client.admin.listTopics()).filter((topic) =>
    new RegExp(`^${prefix}\\.(due|wait-\\d+)$`).test(topic),
  );
  const ids = new Set<string>();
  for (const topic of topics) {
    const records = await client.records(topic);
    const committed = await client.committed(prefix, topic);
    for (const { partition, offset, key } of records) {
      if (offset >= (committed.get(partition) ?? 0n)) ids.add(key.toString());
    }
  }
  return ids;
}

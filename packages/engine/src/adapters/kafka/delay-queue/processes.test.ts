/** Consumers that are processes, and are killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { describeService, kafkaClient, sharedServer } from '@redrive/services/vitest';
import { afterEach, expect, it, vi } from 'vitest';
import { kafkaDelayQueue } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const soon = { timeout: 60_000, interval: 20 };
const TEST_MS = 180_000;
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

interface Options {
  brokers: string;
  prefix: string;
  tierMs: number;
  tiers: number;
  partitions: number;
  sessionTimeout: number;
}

/** Says the id of each entry before it answers, with the time. */
function consumer(options: Options, onId: (id: string, atMs: number) => void): ChildProcess {
  const script = `
    import { kafkaDelayQueue } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)};
    const queue = kafkaDelayQueue(${JSON.stringify(options)});
    await queue.open();
    const say = (text) => new Promise((resolve) => process.stdout.write(text + '\\n', resolve));
    await queue.consume(async (batch) => {
      await say(JSON.stringify({ ids: batch.map(({ id }) => id), atMs: Date.now() }));
      await new Promise((resolve) => setTimeout(resolve, 5));
      return batch.map(() => ({ type: 'done' }));
    }, { maxBatch: 20, concurrency: 2 });
    await say('{"ids":[],"atMs":0}');
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { ids, atMs } = JSON.parse(line) as { ids: string[]; atMs: number };
    for (const id of ids) onId(id, atMs);
  });
  return child;
}

describeService('Kafka', () => {
  it(
    'loses nothing and hands over nothing early when consumers are killed, again and again',
    async () => {
      const url = await sharedServer('Kafka');
      await using client = await kafkaClient(url);
      const brokers = new URL(url).host;
      const prefix = client.name();
      const options = {
        brokers,
        prefix,
        tierMs: 300,
        tiers: 3,
        partitions: 4,
        sessionTimeout: 2000,
      };
      const queue = kafkaDelayQueue({ ...options, log: quiet });
      await queue.open();
      const handed = new Map<string, number>();
      const early: string[] = [];
      const onId = (id: string, atMs: number) => {
        handed.set(id, (handed.get(id) ?? 0) + 1);
        if (atMs < Number(id.split(' ')[1]) - 1) early.push(id);
      };
      const acknowledged = new Set<string>();
      let last = 0;
      const schedule = async (count: number) => {
        const entries = Array.from({ length: count }, () => {
          const delayMs = [0, 30, 400, 1000][last % 4]!;
          last += 1;
          const id = `${last} ${Date.now() + delayMs}`;
          return { id, delayMs, payload: Buffer.from('x') };
        });
        await queue.schedule(entries);
        for (const { id } of entries) acknowledged.add(id);
      };
      const running = [consumer(options, onId), consumer(options, onId)];
      for (let round = 0; round < 3; round++) {
        for (let i = 0; i < 20; i++) await schedule(50);
        const before = handed.size;
        await vi.waitFor(() => expect(handed.size).toBeGreaterThan(before + 100), soon);
        running.shift()!.kill('SIGKILL');
        running.push(consumer(options, onId));
      }
      const missing = () => [...acknowledged].filter((id) => !handed.has(id)).length;
      await vi.waitFor(() => expect(missing()).toBe(0), soon);
      expect(early).toEqual([]);
      // Those that came twice were in the hands of the dead, or behind what was.
      const twice = [...handed.values()].filter((times) => times > 1).length;
      expect(twice).toBeLessThan(acknowledged.size);
      await queue.close();
    },
    TEST_MS,
  );
});

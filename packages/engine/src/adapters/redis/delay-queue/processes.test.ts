/** Consumers that are processes, and are killed with entries in hand. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { describeService, sharedServer } from '@redrive/services/vitest';
import { afterEach, expect, it, vi } from 'vitest';
import { redisDelayQueue } from './queue.ts';

const soon = { timeout: 20_000, interval: 10 };
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

interface Handed {
  id: string;
  redeliveries: number;
}

/** Says what it is handed. `answers`: false keeps it in hand for as long as the process lives. */
function consumer(options: object, answers: boolean, onEntry: (one: Handed) => void): ChildProcess {
  const script = `
    import { redisDelayQueue } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)};
    const queue = redisDelayQueue(${JSON.stringify(options)});
    await queue.open();
    const say = (text) => new Promise((resolve) => process.stdout.write(text + '\\n', resolve));
    await queue.consume(async (batch) => {
      await say(JSON.stringify(batch.map(({ id, redeliveries }) => ({ id, redeliveries }))));
      if (!${answers}) await new Promise(() => setInterval(() => {}, 1000));
      return batch.map(() => ({ type: 'done' }));
    }, { maxBatch: 10, concurrency: 2 });
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  children.push(child);
  createInterface({ input: child.stdout }).on('line', (line) => {
    for (const one of JSON.parse(line) as Handed[]) onEntry(one);
  });
  return child;
}

describeService('Redis', () => {
  it('hands what a killed consumer had in hand to another one, when its lease is over', async () => {
    const url = await sharedServer('Redis');
    const options = { url, prefix: `killed-${process.pid}:`, leaseMs: 1000 };
    const queue = redisDelayQueue({ ...options, log: quiet });
    await queue.open();
    const held: Handed[] = [];
    const killed = consumer(options, false, (one) => held.push(one));
    const ids = Array.from({ length: 100 }, (_, i) => `e${i}`);
    const payload = new Uint8Array([1]);
    await queue.schedule(ids.map((id) => ({ id, delayMs: 0, payload })));
    await vi.waitFor(() => expect(held.length).toBe(20), soon);
    const handed: Handed[] = [];
    consumer(options, true, (one) => handed.push(one));
    await vi.waitFor(() => expect(handed.length).toBe(80), soon);
    expect(await queue.depth()).toBe(20);
    killed.kill('SIGKILL');
    await vi.waitFor(() => expect(handed.length).toBe(100), soon);
    const inHand = new Set(held.map(({ id }) => id));
    expect(handed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    for (const { id, redeliveries } of handed) expect(redeliveries).toBe(inHand.has(id) ? 1 : 0);
    await vi.waitFor(async () => expect(await queue.depth()).toBe(0), soon);
    await queue.close();
  }, 60_000);
});

import { virtualClock } from 'redrive/testing';
import { describe, expect, test } from 'vitest';
import type { DelayQueue } from '../../ports/delay-queue.ts';
import { type DelayQueueSetup, delayQueueSuite } from '../../testing/index.ts';
import { type MemoryDelayQueue, memoryDelayQueue, type MemoryDelayQueueOptions } from './index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

function setupOf(options: MemoryDelayQueueOptions): DelayQueueSetup {
  return {
    capabilities: { ...memoryDelayQueue(options).capabilities },
    hooks: ['held', 'kill', 'expireLeases'],
    async open({ leaseMs }) {
      const clock = virtualClock();
      const queue = memoryDelayQueue({ ...options, leaseMs, log: quiet, clock });
      await queue.open();
      const all: DelayQueue[] = [queue];
      return {
        queue,
        leaseMs,
        clock,
        async another() {
          const other = queue.another();
          await other.open();
          all.push(other);
          return other;
        },
        held: async () => queue.ids(),
        kill: async (one) => (one as MemoryDelayQueue).crash(),
        expireLeases: async () => queue.expireLeases(),
        async close() {
          const closed = Promise.all(all.map((one) => one.close()));
          await clock.advance('1h');
          await closed;
        },
      };
    },
  };
}

describe.each([
  ['with all capabilities', {}],
  ['without capabilities', { lacks: ['deduplicates', 'cancels', 'counts'] as const }],
])('the memory delay queue %s', (_, options) => {
  for (const { name, skip, run: assertCase } of delayQueueSuite(setupOf(options))) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }
});

test('refuses what it cannot do', async () => {
  const queue = memoryDelayQueue({ lacks: ['cancels', 'counts'] });
  await queue.open();
  await expect(queue.cancel(['a'])).rejects.toMatchObject({ code: 'NOT_CAPABLE' });
  await expect(queue.depth()).rejects.toMatchObject({ code: 'NOT_CAPABLE' });
});

test('refuses more than it may hold, and takes nothing of that call', async () => {
  const queue = memoryDelayQueue({ maxEntries: 2 });
  await queue.open();
  const entries = ['a', 'b', 'c'].map((id) => ({ id, delayMs: 0, payload: new Uint8Array() }));
  await expect(queue.schedule(entries)).rejects.toMatchObject({ code: 'STORE_FULL' });
  expect(queue.ids()).toEqual([]);
  await queue.schedule(entries.slice(1));
  await queue.schedule(entries.slice(1));
  expect(queue.ids()).toEqual(['b', 'c']);
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describePostgres } from '@redrive/services/vitest';
import type { Clock } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { memory } from '../../adapters/memory/index.ts';
import { migratePostgres, postgres } from '../../adapters/postgres/index.ts';
import { sqlite } from '../../adapters/sqlite/index.ts';
import type { DelayQueue } from '../../ports/delay-queue.ts';
import type { Store } from '../../ports/store.ts';
import {
  type DelayQueueHook,
  type DelayQueueSetup,
  delayQueueSuite,
  type OpenedDelayQueue,
} from '../../testing/index.ts';
import { storeDelayQueue } from './store-queue.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
let names = 0;

/** On a store of each instance's own, or on one that all share. */
async function openedOn(
  another: () => Promise<Store>,
  leaseMs: number,
  more: Partial<OpenedDelayQueue> = {},
): Promise<OpenedDelayQueue> {
  const name = `queue-${++names}`;
  const lane = `delay-queue:${name}`;
  const stores = new Map<DelayQueue, Store>();
  const queues: DelayQueue[] = [];
  const make = async (clock: Clock | undefined = more.clock) => {
    const store = await another();
    const queue = storeDelayQueue(store, { name, leaseMs, log: quiet, ...(clock && { clock }) });
    await queue.open();
    stores.set(queue, store);
    queues.push(queue);
    return queue;
  };
  const queue = await make();
  const store = stores.get(queue)!;
  const pending = () => store.list({ status: 'pending', lane, limit: 20_000 });
  return {
    queue,
    leaseMs,
    another: () => make(),
    skewed: (clock) => make(clock),
    held: async () => (await pending()).map((task) => `${task.context?.extra?.['id'] as string}`),
    async expireLeases() {
      const leased = (await pending()).filter((task) => task.lease !== undefined);
      await store.change(leased, (task, nowMs) => {
        const { lease: _, ...rest } = task!;
        return { result: undefined, task: { ...rest, visibleAtMs: nowMs } };
      });
    },
    async kill(one) {
      await stores.get(one)!.close();
    },
    ...more,
    async close() {
      const closed = Promise.all(queues.map((one) => one.close()));
      await more.clock?.advance('1h');
      await closed;
      for (const one of new Set(stores.values())) await one.close();
    },
  };
}

function runSuite(setup: DelayQueueSetup): void {
  for (const { name, skip, run: assertCase } of delayQueueSuite(setup)) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }
}

const hooks: DelayQueueHook[] = ['held', 'expireLeases'];
const capabilities = { deduplicates: true, cancels: true, counts: true, durable: true };
describe('the delay queue on a memory store', () => {
  runSuite({
    capabilities: { ...capabilities, durable: false },
    hooks,
    async open({ leaseMs }) {
      const clock = virtualClock();
      const store = memory({ clock });
      return openedOn(async () => store, leaseMs, { clock });
    },
  });
});

/** Those on real stores take their time, and run with the long tests. */
const isLong = process.env['REDRIVE_TESTS'] === 'long';

describe.skipIf(!isLong)('the delay queue on SQLite', () => {
  let folder: string;
  let files = 0;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-delay-queue-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  runSuite({
    capabilities,
    hooks: [...hooks, 'kill', 'skewed'],
    async open({ leaseMs }) {
      const file = join(folder, `${++files}.db`);
      return openedOn(async () => sqlite(file), leaseMs);
    },
  });
});

describePostgres(({ freshDatabase }) => {
  let url = '';
  let drop = async () => {};
  beforeAll(async () => {
    const database = await freshDatabase();
    ({ url } = database);
    drop = () => database.drop();
    await migratePostgres(url);
  });
  afterAll(() => drop());

  describe.skipIf(!isLong)('the delay queue on PostgreSQL', () => {
    runSuite({
      capabilities,
      hooks: [...hooks, 'kill', 'skewed'],
      open: ({ leaseMs }) => openedOn(async () => postgres({ url, maxConnections: 4 }), leaseMs),
    });
  });
});

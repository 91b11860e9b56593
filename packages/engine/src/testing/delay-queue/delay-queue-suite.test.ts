import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { type MemoryDelayQueue, memoryDelayQueue } from '../../adapters/memory/index.ts';
import type { DelayHandler, DelayQueue } from '../../ports/delay-queue.ts';
import type { DelayQueueSetup } from './delay-queue-stage.ts';
import { delayQueueSuite } from './delay-queue-suite.ts';

/** A queue that breaks one promise, made from one that keeps all. */
type Defect = (queue: MemoryDelayQueue) => Partial<DelayQueue>;

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

function setupOf(defect: Defect): DelayQueueSetup {
  return {
    capabilities: { ...memoryDelayQueue().capabilities },
    hooks: ['held', 'kill', 'expireLeases'],
    patienceMs: 5000,
    async open({ leaseMs }) {
      const clock = virtualClock();
      const queue = memoryDelayQueue({ leaseMs, log: quiet, clock });
      const originals = new Map<DelayQueue, MemoryDelayQueue>();
      const opened = async (one: MemoryDelayQueue) => {
        await one.open();
        const changed = altered(one, defect(one));
        originals.set(changed, one);
        return changed;
      };
      return {
        queue: await opened(queue),
        clock,
        leaseMs,
        another: () => opened(queue.another()),
        held: async () => queue.ids(),
        kill: async (one) => originals.get(one)!.crash(),
        expireLeases: async () => queue.expireLeases(),
        async close() {
          const closed = Promise.all(Array.from(originals.values(), (one) => one.close()));
          await clock.advance('1h');
          await closed;
        },
      };
    },
  };
}

function altered(queue: MemoryDelayQueue, changes: Partial<DelayQueue>): DelayQueue {
  return new Proxy<DelayQueue>(queue, {
    get(target, name) {
      const value: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The cases that a defect makes fail. */
async function broken(defect: Defect): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, skip, run } of delayQueueSuite(setupOf(defect))) {
    if (skip) continue;
    await run().catch(() => failed.push(name));
  }
  return failed;
}

/** The same queue with another handler made from the given one. */
function handling(
  queue: DelayQueue,
  wrap: (handler: DelayHandler) => DelayHandler,
): Partial<DelayQueue> {
  return { consume: (handler, limits) => queue.consume(wrap(handler), limits) };
}

const defects: Record<string, { defect: Defect; fails: string }> = {
  'hands over a tenth early': {
    defect: (queue) => ({
      schedule: (entries) =>
        queue.schedule(entries.map((one) => ({ ...one, delayMs: Math.floor(one.delayMs * 0.9) }))),
    }),
    fails: 'schedule: never hands over early, whatever the delay',
  },
  'makes the longest delay a short one': {
    defect: (queue) => ({
      schedule: (entries) =>
        queue.schedule(entries.map((one) => ({ ...one, delayMs: (one.delayMs % 2 ** 31) % 1000 }))),
    }),
    fails: 'schedule: keeps the longest delay',
  },
  'acknowledges before it has stored': {
    defect: (queue) => ({
      schedule: async (entries) => {
        setImmediate(() => void queue.schedule(entries).catch(() => undefined));
      },
    }),
    fails: 'schedule: has on the server what it acknowledged, and nothing after the answers',
  },
  'loses one of a long list': {
    defect: (queue) => ({ schedule: (entries) => queue.schedule(entries.slice(0, 9999)) }),
    fails: 'schedule: takes ten thousand entries in one call',
  },
  'takes the good ones of a call with faults': {
    defect: (queue) => ({
      schedule: async (entries) => {
        await queue.schedule(entries.filter(({ id }) => id === 'good'));
        await queue.schedule(entries);
      },
    }),
    fails: 'schedule: refuses entries with faults, names all of them, and takes none of the call',
  },
  'writes ids in lower case': {
    defect: (queue) => ({
      schedule: (entries) =>
        queue.schedule(entries.map((one) => ({ ...one, id: one.id.toLowerCase() }))),
    }),
    fails: 'schedule: keeps odd ids and keys apart',
  },
  'reads payloads as texts': {
    defect: (queue) => ({
      schedule: (entries) =>
        queue.schedule(
          entries.map((one) => ({
            ...one,
            payload: Buffer.from(Buffer.from(one.payload).toString()).subarray(0, 65_536),
          })),
        ),
    }),
    fails: 'schedule: keeps payloads byte by byte, the empty and the largest included',
  },
  'ignores the size of a batch': {
    defect: (queue) => ({ consume: (handler) => queue.consume(handler, {}) }),
    fails: 'consume: hands over no more in one batch than may be',
  },
  'ignores the number of batches': {
    defect: (queue) => ({
      consume: (handler, limits) => queue.consume(handler, { ...limits, concurrency: 50 }),
    }),
    fails: 'consume: has no more batches under way than may be, and as many as may be',
  },
  'has one batch under way only': {
    defect: (queue) => ({
      consume: (handler, limits) => queue.consume(handler, { ...limits, concurrency: 1 }),
    }),
    fails: 'consume: has no more batches under way than may be, and as many as may be',
  },
  'hands over again at once': {
    defect: (queue) =>
      handling(queue, (handler) => async (batch, signal) => {
        const answers = await handler(batch, signal);
        return answers.map((one) => (one.type === 'again' ? { ...one, delayMs: 0 } : one));
      }),
    fails: 'consume: hands over again what is wanted again, with its delay from the answer',
  },
  'forgets what is wanted again': {
    defect: (queue) =>
      handling(queue, (handler) => async (batch, signal) => {
        return (await handler(batch, signal)).map(() => ({ type: 'done' }));
      }),
    fails: 'consume: takes each answer for its own entry',
  },
  'mixes up the answers of a batch': {
    defect: (queue) =>
      handling(
        queue,
        (handler) => async (batch, signal) => (await handler(batch, signal)).toReversed(),
      ),
    fails: 'consume: takes each answer for its own entry',
  },
  'forgets entries whose handler failed': {
    defect: (queue) =>
      handling(queue, (handler) => async (batch, signal) => {
        try {
          return await handler(batch, signal);
        } catch {
          return batch.map(() => ({ type: 'done' }));
        }
      }),
    fails: 'consume: hands over all again where the handler fails, and not in a hot loop',
  },
  'calls a handler that failed without a pause': {
    defect: (queue) =>
      handling(queue, (handler) => async (batch, signal) => {
        try {
          return await handler(batch, signal);
        } catch {
          return batch.map(() => ({ type: 'again', delayMs: 1 }));
        }
      }),
    fails: 'consume: hands over all again where the handler fails, and not in a hot loop',
  },
  'fills missing answers up': {
    defect: (queue) =>
      handling(queue, (handler) => async (batch, signal) => {
        const answers = await handler(batch, signal);
        return batch.map((_, i) => answers[i] ?? { type: 'done' });
      }),
    fails: 'consume: hands over all again where the handler gives too few answers',
  },
  'hands over each entry twice': {
    defect: (queue) =>
      handling(queue, (handler) => async (batch, signal) => {
        await handler(batch, signal);
        return handler(batch, signal);
      }),
    fails: 'consume: hands over each entry once to several consumers together',
  },
  'stops without waiting for its handlers': {
    defect: (queue) => ({
      consume: async (handler, limits) => {
        const consumer = await queue.consume(handler, limits);
        return {
          stop: async () => {
            void consumer.stop();
          },
        };
      },
    }),
    fails: 'consume: waits at its stop for the handlers under way, and their answers count',
  },
  'keeps what it has when it is stopped': {
    defect: (queue) => ({
      consume: async (handler, limits) => {
        const consumer = await queue.consume(handler, { ...limits, maxBatch: 100 });
        return { stop: () => consumer.stop() };
      },
    }),
    fails: 'consume: gives the rest to another consumer at once when it is stopped',
  },
  'does not stop': {
    defect: (queue) => ({
      consume: async (handler, limits) => {
        await queue.consume(handler, limits);
        return { stop: async () => undefined };
      },
    }),
    fails: 'consume: takes nothing more after its stop',
  },
  'waits for ever for a handler that hangs': {
    defect: (queue) => ({
      consume: (handler, limits) => queue.consume(handler, { ...limits, stopTimeoutMs: 3_600_000 }),
    }),
    fails:
      'consume: aborts a handler that does not end when it is stopped, and gives its entries back',
  },
  'replaces what waits': {
    defect: (queue) => ({
      schedule: async (entries) => {
        await queue.cancel(entries.map(({ id }) => id).filter((id) => id === 'a'));
        await queue.schedule(entries);
      },
    }),
    fails: 'deduplicate: the same id again changes nothing while the first waits',
  },
  'remembers ids for good': {
    defect: (queue) => {
      const known = new Set<string>();
      return {
        schedule: async (entries) => {
          await queue.schedule(entries.filter(({ id }) => !known.has(id)));
          for (const { id } of entries) known.add(id);
        },
      };
    },
    fails: 'deduplicate: the same id is a new entry after the answer',
  },
  'says of all that it cancelled them': {
    defect: (queue) => ({
      cancel: async (ids) => (await queue.cancel(ids)).map(() => true),
    }),
    fails: 'cancel: removes what waits, and says of each whether it was there',
  },
  'cancels nothing': {
    defect: () => ({ cancel: async (ids) => ids.map(() => true) }),
    fails: 'cancel: makes room for the same id',
  },
  'counts what waits only': {
    defect: (queue) => {
      let inHand = 0;
      const { consume } = handling(queue, (handler) => async (batch, signal) => {
        inHand += batch.length;
        try {
          return await handler(batch, signal);
        } finally {
          inHand -= batch.length;
        }
      });
      return { consume: consume!, depth: async () => (await queue.depth()) - inHand };
    },
    fails: 'depth: counts what waits and what is in hand',
  },
  'works though it is closed': {
    defect: (queue) => ({
      close: async () => {
        await queue.close();
        await queue.open();
      },
    }),
    fails: 'lifecycle: closes twice without harm, and refuses calls after that',
  },
  'opens although it was closed meanwhile': {
    defect: (queue) => ({
      open: async () => {
        await Promise.resolve();
        await queue.open();
      },
    }),
    fails: 'lifecycle: is closed after a close that came while it was opening',
  },
  'does not abort when the lease is lost': {
    defect: (queue) =>
      handling(queue, (handler) => (batch) => handler(batch, new AbortController().signal)),
    fails: 'lease: aborts the signal when the lease is lost, and the answer changes nothing',
  },
  'does not count redeliveries': {
    defect: (queue) =>
      handling(
        queue,
        (handler) => (batch, signal) =>
          handler(
            batch.map((one) => ({ ...one, redeliveries: 0 })),
            signal,
          ),
      ),
    fails: 'lease: hands over to another what a killed consumer had, when the lease is over',
  },
};

describe('the suite of delay queues', () => {
  it.each(Object.entries(defects))('finds a queue that %s', async (_, { defect, fails }) => {
    expect(await broken(defect)).toContain(fails);
  });

  it('finds nothing in one that keeps all promises', async () => {
    expect(await broken(() => ({}))).toEqual([]);
  });

  it('leaves out what a setup cannot do, by name', () => {
    const { hooks: _, ...setup } = setupOf(() => ({}));
    const skips = delayQueueSuite(setup).flatMap(({ skip }) => skip ?? []);
    expect(new Set(skips)).toEqual(
      new Set(
        ['durable', 'held', 'kill', 'expireLeases', 'skewed'].map((n) => `declared as not ${n}`),
      ),
    );
  });
});

import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, test } from 'vitest';
import { memory, memoryDelayQueue } from '../adapters/memory/index.ts';
import { EngineError } from '../errors.ts';
import type { DelayAnswer, DelayHandler, DelayQueue } from '../ports/delay-queue.ts';
import type { Store } from '../ports/store.ts';
import { Dice } from '../testing/dice.ts';
import { storeDelayQueue } from './store/store-queue.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const LEASE_MS = 1000;
const SEEDS = process.env['REDRIVE_TESTS'] === 'long' ? 100 : 15;
const STEPS = 60;

/** One process: a queue, and its end without a word. */
interface Instance {
  queue: DelayQueue;
  kill(): void;
}

interface World {
  clock: ReturnType<typeof virtualClock>;
  dice: Dice;
  /** False once the world has calmed down. */
  isRough: boolean;
}

/** Opens another instance on the same entries. `nowMs` is the queue's clock. */
type Kind = (world: World) => { open: () => Promise<Instance>; nowMs: () => number };

const onMemory: Kind = ({ clock, dice }) => {
  const random = () => dice.below(1000) / 1000;
  const first = memoryDelayQueue({ clock, random, leaseMs: LEASE_MS, log: quiet });
  return {
    nowMs: () => clock.monotonic(),
    async open() {
      const queue = first.another();
      await queue.open();
      return { queue, kill: () => queue.crash() };
    },
  };
};

const onStore: Kind = (world) => {
  const { clock, dice } = world;
  const store = memory({ clock });
  return {
    // A store's clock is set now and then.
    nowMs: () => clock.now(),
    async open() {
      const life = { isOver: false };
      const random = () => dice.below(1000) / 1000;
      const options = { clock, random, leaseMs: LEASE_MS, log: quiet };
      const queue = storeDelayQueue(faulty(store, world, life), options);
      await queue.open();
      return { queue, kill: () => (life.isOver = true) };
    },
  };
};

const faultyCalls = new Set(['insert', 'change', 'claim', 'settle', 'renew', 'prune']);

/** Fails before its work, or after it so that only the answer is lost, and never answers a process that is gone. */
function faulty(store: Store, world: World, life: { isOver: boolean }): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const call = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
      if (!faultyCalls.has(String(name))) return call;
      return async (...args: unknown[]) => {
        if (life.isOver) return Promise.withResolvers().promise;
        if (world.isRough && world.dice.one(12)) throw away();
        const answer = await call(...args);
        if (life.isOver) return Promise.withResolvers().promise;
        if (world.isRough && world.dice.one(12)) throw away();
        return answer;
      };
    },
  });
}

function away(): EngineError {
  return new EngineError('STORE_UNAVAILABLE', 'made up: the store did not answer');
}

async function simulate(seed: number, kind: Kind): Promise<void> {
  const clock = virtualClock();
  const dice = new Dice(seededRandom(seed));
  const world: World = { clock, dice, isRough: true };
  const { open, nowMs } = kind(world);
  const acknowledged = new Set<string>();
  const dueAtMs = new Map<string, number>();
  const answered = new Map<string, DelayAnswer['type']>();
  let handovers = 0;
  const handed = new Set<string>();
  const early: string[] = [];

  const handler: DelayHandler = async (batch, signal) => {
    handovers += batch.length;
    for (const { id } of batch) {
      // What was due once may come again after the clock was set back.
      if (!handed.has(id) && nowMs() < dueAtMs.get(id)!) early.push(id);
      handed.add(id);
    }
    if (world.isRough && dice.one(6)) throw new Error('made up: the handler failed');
    if (world.isRough && dice.one(8)) await pass(dice.below(3 * LEASE_MS));
    return batch.map(({ id }): DelayAnswer => {
      // Whether such an answer was written before its process ended nobody knows, so the first due time is what counts.
      if (world.isRough && dice.one(5)) return { type: 'again', delayMs: dice.below(2000) };
      if (!signal.aborted) answered.set(id, 'done');
      return { type: 'done' };
    });
  };
  const pass = (ms: number) =>
    new Promise<void>((resolve) => {
      clock.setTimer(resolve, ms);
    });

  const alive: Instance[] = [await open()];
  const producer = await open();
  for (let step = 0; step < STEPS; step++) {
    const one = alive[dice.below(alive.length)]!;
    switch (dice.below(6)) {
      case 0:
      case 1: {
        const ids = dice.some(20, () => `e${dueAtMs.size}-${dice.below(1e9)}`);
        const entries = ids.map((id) => {
          const delayMs = dice.below(3000);
          dueAtMs.set(id, nowMs() + delayMs);
          return { id, delayMs, payload: new Uint8Array(dice.below(50)) };
        });
        await producer.queue.schedule(entries).then(
          () => ids.forEach((id) => acknowledged.add(id)),
          () => undefined,
        );
        break;
      }
      case 2:
        await one.queue.consume(handler, { maxBatch: 1 + dice.below(30), concurrency: 2 });
        break;
      case 3:
        if (alive.length < 4) alive.push(await open());
        break;
      case 4:
        alive.splice(alive.indexOf(one), 1)[0]!.kill();
        alive.push(await open());
        break;
      case 5:
        // Back only: to go forward is to be late, or early by another clock than the queue's.
        if (dice.one(3)) clock.jump(-dice.below(2000));
        break;
    }
    await clock.advance(dice.below(700));
  }
  world.isRough = false;
  await alive[0]!.queue.consume(handler, {});
  await clock.advance('3m');
  expect(early, 'early').toEqual([]);
  expect(
    [...acknowledged].filter((id) => !answered.has(id)),
    'lost',
  ).toEqual([]);
  expect(await producer.queue.depth(), 'left').toBe(0);
  // Each comes again by a failure, an answer or a lost lease, and not in a loop.
  expect(handovers).toBeLessThan(40 * dueAtMs.size + 100);
}

describe.each([
  ['memory', onMemory],
  ['the memory store with failing calls', onStore],
])('a made-up world of consumers that fail and die, on %s', (_, kind) => {
  test(`loses nothing, hands over nothing early, and comes to rest, by ${SEEDS} seeds`, async () => {
    const faults: string[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      await simulate(seed, kind).catch((error: unknown) =>
        faults.push(`${seed}: ${String(error)}`),
      );
    }
    expect(faults).toEqual([]);
  });
});

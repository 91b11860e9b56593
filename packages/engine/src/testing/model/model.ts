import { AssertionError, deepEqual } from 'node:assert/strict';
import type { Clock } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import type { Store } from '../../ports/store.ts';
import { type Operation, operationsOf } from './model-operations.ts';
import { Side } from './model-side.ts';
import { onStage, type StoreSetup } from '../stage.ts';
import type { ConformanceCase } from '../suite.ts';

export interface ModelSetup extends StoreSetup {
  /** The store that is right by definition: `(clock) => memory({ clock })`. */
  model: (clock: Clock) => Store;
  /** How many random histories, and how long each is. */
  runs?: number;
  steps?: number;
  /** The first seed. A failure names its own: set it, with `runs: 1`, to see that one again. */
  seed?: number;
}

/** Random histories after which a store must give the answers of the model and hold what the model holds. */
export function modelSuite(setup: ModelSetup): ConformanceCase[] {
  const { runs = 10, steps = 150, seed: first = 1 } = setup;
  return Array.from({ length: runs }, (_, i) => ({
    name: `model: agrees with the memory store after ${steps} random operations, seed ${first + i}`,
    run: () => check(setup, first + i, steps),
  }));
}

async function check(setup: ModelSetup, seed: number, steps: number): Promise<void> {
  const canWait = await onStage(setup, async ({ clock }) => clock !== undefined);
  const means = { canWait, hasOrder: setup.capabilities.ordering };
  const operations = operationsOf(seededRandom(seed), steps, means);
  const found = await play(setup, operations);
  if (!found) return;
  const short = await shorten(setup, operations.slice(0, found.step + 1));
  const { error } = (await play(setup, short)) ?? found;
  const history = short.map((one) => `  ${JSON.stringify(one)}`).join('\n');
  throw new Error(
    `Seed ${seed}: after these operations the store differs from the model.\n${history}\n${String(error)}`,
    {
      cause: error,
    },
  );
}

interface Disagreement {
  /** The operation after which it showed. */
  step: number;
  error: unknown;
}

async function play(
  setup: ModelSetup,
  operations: readonly Operation[],
): Promise<Disagreement | undefined> {
  return onStage(setup, async ({ store, clock, pass }) => {
    const ownClock = clock ?? virtualClock();
    const model = setup.model(ownClock);
    await model.open();
    const [theirs, right] = [
      new Side(store, clock !== undefined),
      new Side(model, clock !== undefined),
    ];
    try {
      for (const [step, operation] of operations.entries()) {
        try {
          const answer = await theirs.apply(operation);
          deepEqual(answer, await right.apply(operation));
          deepEqual(await theirs.look(), await right.look());
        } catch (error) {
          return { step, error };
        }
        // No two operations at one moment, or what is due first would be left to chance.
        await pass(operation.type === 'wait' ? operation.ms + 1 : 1);
        if (!clock) await ownClock.advance(1);
      }
      return undefined;
    } finally {
      await model.close();
    }
  });
}

const MAX_REPLAYS = 100;

/** Leaves out what the disagreement does not need, for a history that can be read. */
async function shorten(
  setup: ModelSetup,
  operations: readonly Operation[],
): Promise<readonly Operation[]> {
  let shortest = operations;
  let replays = 0;
  for (let size = Math.ceil(shortest.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let start = shortest.length - size; start >= 0 && replays < MAX_REPLAYS; start -= size) {
      const without = shortest.toSpliced(start, size);
      replays += 1;
      const found = await play(setup, without);
      if (found?.error instanceof AssertionError) shortest = without.slice(0, found.step + 1);
    }
  }
  return shortest;
}

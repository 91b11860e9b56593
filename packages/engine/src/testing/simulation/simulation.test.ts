import { describe, expect, it } from 'vitest';
import { mutants } from './mutants.ts';
import { broken } from './mutate.ts';
import { simulate } from './simulate.ts';

const SEEDS = 1000;
const STEP = 100;
const firsts = Array.from({ length: SEEDS / STEP }, (_, i) => i * STEP + 1);

describe('the engine in a made-up world', () => {
  it.each(firsts)('keeps its promises, seeds %i and the 99 after it', async (first) => {
    const broke: string[] = [];
    for (let seed = first; seed < first + STEP; seed++) {
      const { violations } = await simulate(seed);
      for (const violation of violations) {
        broke.push(`seed ${seed} (npm run sim -- --replay ${seed}): ${violation}`);
      }
    }
    expect(broke).toEqual([]);
  });

  it('has no easy life: a world where nothing goes wrong proves nothing', async () => {
    let starts = 0;
    let crashes = 0;
    for (let seed = 1; seed <= 50; seed++) {
      const result = await simulate(seed);
      starts += result.starts;
      crashes += result.crashes;
    }
    expect(crashes).toBeGreaterThan(50);
    expect(starts).toBeGreaterThan(500);
  });
});

describe('a seed', () => {
  it('makes the same world every time, to the last call of the store', async () => {
    for (const seed of [3, 42, 777]) {
      const one: string[] = [];
      const two: string[] = [];
      const first = await simulate(seed, (line) => one.push(line));
      const second = await simulate(seed, (line) => two.push(line));
      expect(second).toEqual(first);
      expect(two).toEqual(one);
      expect(one.length).toBeGreaterThan(50);
    }
  });

  it('makes another world than its neighbour', async () => {
    const worlds = await Promise.all([1, 2, 3, 4, 5].map((seed) => simulate(seed)));
    expect(new Set(worlds.map(({ steps }) => steps)).size).toBeGreaterThan(3);
  });
});

describe('an engine that is broken on purpose', () => {
  it.each(mutants)('is found out: $name, by seed $seed', async (mutant) => {
    const simulateBroken = await broken(mutant);
    const { violations } = await simulateBroken(mutant.seed);
    // After a change of the engine another seed may find it: npm run sim -- --mutants says which.
    expect(violations).not.toEqual([]);
    expect((await simulate(mutant.seed)).violations).toEqual([]);
  });

  it('is not made by a change that does not apply', async () => {
    const [mutant] = mutants;
    await expect(broken({ ...mutant!, from: 'no such line' })).rejects.toThrow(
      "does not have exactly one 'no such line': mend the mutant",
    );
  });
});

/** `npm run sim -- [options]`: the engine in made-up worlds, many of them. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { mutants } from '../../packages/engine/src/testing/simulation/mutants.ts';
import { broken } from '../../packages/engine/src/testing/simulation/mutate.ts';
import { simulate } from '../../packages/engine/src/testing/simulation/simulate.ts';
import { runSeeds } from './run-seeds.ts';

const help = `Runs the real engine in made-up worlds: stores and brokers that fail, answer late or never,
crashes at any await, clocks that jump. One number makes one world; the same number makes it again.

  npm run sim                                    1000 seeds
  npm run sim -- --seeds 100000 --start 7        more of them, from 7 on
  npm run sim -- --replay 4711                   one seed, with everything that happens in it
  npm run sim -- --mutants                       which seed finds each way to break the engine

Exit code 1 and the seed when something that was promised did not hold. Exit code 1 also when not
all seeds ran, because a worker ended early.`;

/** A long run that is logged says so often how far it is. */
const EVERY_SEEDS = 10_000;

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const options = readOptions(args);
  if (typeof options === 'string') {
    console.error(`${options}\n\n${help}`);
    return 2;
  }
  if (options.help) {
    console.log(help);
    return 0;
  }
  if (options.replay !== undefined) return replay(options.replay);
  return options.mutants ? findMutants() : runMany(options.start, options.seeds);
}

async function runMany(start: number, seeds: number): Promise<number> {
  const { stdout } = process;
  const isGood = await runSeeds({
    start,
    seeds,
    processes: Math.min(availableParallelism(), Math.ceil(seeds / 100)),
    worker: new URL('./worker.ts', import.meta.url),
    print: (line) => console.log(line),
    ...(stdout.isTTY
      ? { counted: (count: number) => stdout.write(`\r${count} of ${seeds} seeds`) }
      : { everySeeds: EVERY_SEEDS }),
  });
  return isGood ? 0 : 1;
}

async function replay(seed: number): Promise<number> {
  const { violations, steps } = await simulate(seed, (line) => console.log(line));
  console.log(`seed ${seed}: ${steps} steps, ${violations.length} violations`);
  for (const violation of violations) console.log(`  ${violation}`);
  return violations.length > 0 ? 1 : 0;
}

/** For `mutants.ts`, which keeps what this finds. */
async function findMutants(): Promise<number> {
  const MAX_SEEDS = 5000;
  let missed = 0;
  for (const mutant of mutants) {
    const simulateBroken = await broken(mutant);
    let found: string | undefined;
    for (let seed = 1; seed <= MAX_SEEDS && found === undefined; seed++) {
      const { violations } = await simulateBroken(seed);
      if (violations.length > 0) found = `seed ${seed}: ${violations[0]}`;
    }
    if (found === undefined) missed += 1;
    console.log(`${mutant.name}: ${found ?? `not found in ${MAX_SEEDS} seeds`}`);
  }
  return missed > 0 ? 1 : 0;
}

interface Options {
  help: boolean;
  mutants: boolean;
  seeds: number;
  start: number;
  replay: number | undefined;
}

/** The options, or what is wrong with them. */
function readOptions(args: string[]): Options | string {
  let values;
  try {
    ({ values } = parseArgs({
      args,
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        mutants: { type: 'boolean', default: false },
        seeds: { type: 'string', default: '1000' },
        start: { type: 'string', default: '1' },
        replay: { type: 'string' },
      },
    }));
  } catch (error) {
    return (error as Error).message;
  }
  const { help: isHelp, mutants: isMutants } = values;
  const numbers = { seeds: values.seeds, start: values.start, replay: values.replay ?? '1' };
  for (const [name, text] of Object.entries(numbers)) {
    if (!/^[1-9]\d{0,11}$/.test(text))
      return `--${name} takes a whole number from 1 on, not '${text}'.`;
  }
  return {
    help: isHelp,
    mutants: isMutants,
    seeds: Number(numbers.seeds),
    start: Number(numbers.start),
    replay: values.replay === undefined ? undefined : Number(values.replay),
  };
}

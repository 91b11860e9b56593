/**
 * Measures several contestants against each other. Machines are noisy, so nothing here is worth much alone: in
 * every round each contestant has its turn, and only what was measured in one run is compared.
 *
 * Time is that of the thread's own work, which other processes disturb least, except where a contestant waits.
 */
import type * as Loop from './loop.ts';

export interface Contestant {
  name: string;
  /** One call; awaited unless `sync`. */
  call: () => unknown;
  /** What every call must come to. */
  expected: unknown;
  /** The call gives its result at once, and awaiting it would be most of the cost. */
  sync?: boolean;
  /** It waits for timers, so the clock on the wall is the one that counts. */
  waits?: boolean;
  /** Operations in one call, where it makes a crowd of them. */
  opsPerCall?: number;
  /** Told the operations of each sample, and throws when other work was done than those needed. */
  check?: (ops: number) => void;
}

export interface Effort {
  /** Odd, so that the median is a sample. */
  rounds: number;
  sampleMs: number;
  warmUpMs: number;
  memoryCalls: number;
  /** For what takes seconds a turn: rounds, odd too, and the tasks of each turn. */
  turns: number;
  tasks: number;
  /** Tasks that wait in the future, and in a lane that is down. */
  backlog: number;
  crowd: number;
  /** Over how long tasks are due one after another. */
  spanMs: number;
}

export const usualEffort: Effort = {
  rounds: 15,
  sampleMs: 50,
  warmUpMs: 400,
  memoryCalls: 1_000_000,
  turns: 5,
  tasks: 40_000,
  backlog: 1_000_000,
  crowd: 100_000,
  spanMs: 8000,
};

export const quickEffort: Effort = {
  rounds: 5,
  sampleMs: 20,
  warmUpMs: 100,
  memoryCalls: 100_000,
  turns: 3,
  tasks: 6000,
  backlog: 100_000,
  crowd: 20_000,
  spanMs: 2000,
};

export interface Measurement {
  name: string;
  /** The median over the rounds. */
  nsPerOp: number;
  /** How far a round usually was from the median, as a share of it. */
  spread: number;
}

export async function measure(
  contestants: readonly Contestant[],
  effort: Effort,
): Promise<Measurement[]> {
  const runners: Runner[] = [];
  for (const contestant of contestants) runners.push(await prepare(contestant, effort));
  const samples = runners.map((): number[] => []);
  for (let round = 0; round < effort.rounds; round++) {
    for (let turn = 0; turn < runners.length; turn++) {
      // Each round begins with another one, so that nobody always follows the same neighbour.
      const index = (round + turn) % runners.length;
      samples[index]?.push(await sample(runners[index] as Runner));
    }
  }
  return contestants.map(({ name }, index) => {
    const own = samples[index] ?? [];
    const nsPerOp = median(own);
    const spread = median(own.map((ns) => Math.abs(ns - nsPerOp))) / nsPerOp;
    return { name, nsPerOp, spread };
  });
}

/** Everything that is garbage goes, also what only a turn of the event loop lets go of. */
export async function collectGarbage(flavor: 'regular' | 'last-resort' = 'regular'): Promise<void> {
  const { gc } = globalThis;
  if (!gc) throw new Error('run node with --expose-gc');
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  gc({ type: 'major', execution: 'sync', flavor });
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** Makes that many calls and resolves to the ns they took. */
type Run = (calls: number) => Promise<number>;

interface Runner {
  run: Run;
  calls: number;
}

let loops = 0;

/** Warms up, and finds how many calls make a sample of the wanted length. */
async function prepare(contestant: Contestant, effort: Effort): Promise<Runner> {
  const { call, expected, sync, waits = false, opsPerCall = 1, check } = contestant;
  // A copy of the loop for each: in a shared one, the engine could tune it to nobody's calls.
  const copy = new URL(`loop.ts?copy=${++loops}`, import.meta.url).href;
  const { loop, loopSync } = (await import(copy)) as typeof Loop;
  const run: Run = async (calls) => {
    const elapsedNs = stopwatch(waits);
    if (sync) loopSync(call, calls, expected);
    else await loop(call, calls, expected);
    const tookNs = elapsedNs();
    check?.(calls * opsPerCall);
    return tookNs / opsPerCall;
  };
  let calls = 1;
  let spentMs = 0;
  for (;;) {
    const tookMs = ((await run(calls)) * opsPerCall) / 1e6;
    spentMs += tookMs;
    if (tookMs < effort.sampleMs / 2) calls *= 2;
    else if (spentMs < effort.warmUpMs) calls = Math.ceil((calls * effort.sampleMs) / tookMs);
    else return { run, calls: Math.ceil((calls * effort.sampleMs) / tookMs) };
  }
}

async function sample({ run, calls }: Runner): Promise<number> {
  await collectGarbage();
  // The collection, and the others' turns, may have cost this one its compiled code.
  await run(Math.ceil(calls / 5));
  return (await run(calls)) / calls;
}

function stopwatch(onWall: boolean): () => number {
  if (onWall) {
    const startNs = process.hrtime.bigint();
    return () => Number(process.hrtime.bigint() - startNs);
  }
  const start = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(start);
    return (user + system) * 1000;
  };
}

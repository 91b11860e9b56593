/** Runs every n-th seed, and tells how it goes. */
import {
  simulate,
  type SimulationResult,
} from '../../packages/engine/src/testing/simulation/simulate.ts';

export type Failed = Pick<SimulationResult, 'seed' | 'violations'>;

export interface Progress {
  seeds: number;
  starts: number;
  crashes: number;
  failed: Failed[];
  rssBytes: number;
  /** What is really in use, where node was started with `--expose-gc`. */
  heapBytes?: number;
}

const [first = 1, end = 1, step = 1] = process.argv.slice(2).map(Number);
// Worlds are full of errors that nobody reads: a stack trace for each costs more than the error.
Error.stackTraceLimit = 0;
const EVERY = 50;
let progress = { seeds: 0, starts: 0, crashes: 0, failed: [] as Failed[] };
// Worlds are full of errors, and nobody reads their stacks here: `--replay` has them.
Error.stackTraceLimit = 0;

for (let seed = first; seed < end; seed += step) {
  await run(seed);
  progress.seeds += 1;
  if (progress.seeds >= EVERY || progress.failed.length > 0) tell();
}
tell();
process.disconnect();

async function run(seed: number): Promise<void> {
  try {
    const { violations, starts, crashes } = await simulate(seed);
    progress.starts += starts;
    progress.crashes += crashes;
    if (violations.length > 0) progress.failed.push({ seed, violations });
  } catch (error) {
    progress.failed.push({ seed, violations: [`the world broke down: ${String(error)}`] });
  }
}

function tell(): void {
  const told: Progress = { ...progress, rssBytes: process.memoryUsage.rss() };
  if (globalThis.gc) {
    globalThis.gc();
    told.heapBytes = process.memoryUsage().heapUsed;
  }
  process.send?.(told);
  progress = { seeds: 0, starts: 0, crashes: 0, failed: [] };
}

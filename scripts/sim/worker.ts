/** Runs every n-th seed, and tells how it goes. */
import {
  simulate,
  type SimulationResult,
} from '../../packages/engine/src/testing/simulation/simulate.ts';

export interface Progress {
  seeds: number;
  starts: number;
  crashes: number;
  failed: SimulationResult[];
  rssBytes: number;
  /** What is really in use, where node was started with `--expose-gc`. */
  heapBytes?: number;
}

const [first = 1, end = 1, step = 1] = process.argv.slice(2).map(Number);
// Worlds are full of errors that nobody reads: a stack trace for each costs more than the error.
Error.stackTraceLimit = 0;
const EVERY = 50;
let progress = { seeds: 0, starts: 0, crashes: 0, failed: [] as SimulationResult[] };

for (let seed = first; seed < end; seed += step) {
  const result = await simulate(seed);
  progress.seeds += 1;
  progress.starts += result.starts;
  progress.crashes += result.crashes;
  if (result.violations.length > 0) progress.failed.push(result);
  if (progress.seeds >= EVERY || progress.failed.length > 0) tell();
}
tell();
process.disconnect();

function tell(): void {
  const told: Progress = { ...progress, rssBytes: process.memoryUsage.rss() };
  if (globalThis.gc) {
    globalThis.gc();
    told.heapBytes = process.memoryUsage().heapUsed;
  }
  process.send?.(told);
  progress = { seeds: 0, starts: 0, crashes: 0, failed: [] };
}

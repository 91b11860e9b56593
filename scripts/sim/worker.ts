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
}

const [first = 1, end = 1, step = 1] = process.argv.slice(2).map(Number);
const EVERY = 50;
let progress: Progress = { seeds: 0, starts: 0, crashes: 0, failed: [] };

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
  process.send?.(progress);
  progress = { seeds: 0, starts: 0, crashes: 0, failed: [] };
}

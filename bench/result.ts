import type { Effort } from './harness.ts';

export type Metric = 'ns/op' | 'ops/s' | 'ms' | 'bytes';

/** What one case found. */
export interface Result {
  metric: Metric;
  redrive: number;
  /** The limit of what is possible stands here too, as `bare` or `raw`. */
  peers: Record<string, number>;
  /** By name: how far a round usually was from the median, as a share of it. */
  spread?: Record<string, number>;
  /** Who could not take part, and why: a machine without Redis has no BullMQ. */
  missing?: Record<string, string>;
  verdicts?: Verdict[];
  /** What a reader must know to judge the figures. */
  notes?: string[];
}

/** A case that could not be run on this machine, and why. */
export interface NotRun {
  notRun: string;
}

/** A target, and whether it was reached. */
export interface Verdict {
  target: string;
  measured: string;
  met: boolean;
}

export interface Case {
  name: string;
  about: string;
  run(effort: Effort): Promise<Result>;
}

export interface Suite {
  name: string;
  about: string;
  cases: Case[];
}

/** The name of the smallest value. */
export function smallest(values: Record<string, number>): string {
  const [found] = Object.entries(values).toSorted((a, b) => a[1] - b[1]);
  if (!found) throw new Error('nothing was measured');
  return found[0];
}

export function times(ratio: number): string {
  return `${ratio.toFixed(ratio < 10 ? 2 : 0)} ×`;
}

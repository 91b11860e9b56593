import { type Contestant, type Effort, measure } from './harness.ts';
import type { Result } from './result.ts';

/** Measures the contestants, of which one is called `redrive`, and puts the figures in a result's form. */
export async function race(
  contestants: readonly Contestant[],
  effort: Effort,
  metric: 'ns/op' | 'ops/s' = 'ns/op',
): Promise<Result> {
  const measured = await measure(contestants, effort);
  const figures = measured.map(({ name, nsPerOp }) => [
    name,
    metric === 'ns/op' ? nsPerOp : 1e9 / nsPerOp,
  ]);
  const { redrive = Number.NaN, ...peers } = Object.fromEntries(figures) as Record<string, number>;
  const spread = Object.fromEntries(measured.map((one) => [one.name, one.spread]));
  return { metric, redrive, peers, spread };
}

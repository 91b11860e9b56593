import { Histogram, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { PlainHistogram } from './plain-histogram.ts';

it('shows what a histogram of prom-client shows', async () => {
  const about = { name: 'seconds', help: 'How long.' };
  const buckets = [0.1, 1, 5];
  const registers = [new Registry()];
  const theirs = new Histogram({ ...about, buckets, labelNames: ['a', 'b'], registers });
  const register = new Registry();
  const ours = new PlainHistogram({ ...about, buckets, labels: ['a', 'b'], register });
  const observed: [string, string, number][] = [
    ['x', 'y "quoted"', 0.1],
    ['x', 'z', 0.100001],
    ['x', 'y "quoted"', 5],
    ['x', 'y "quoted"', 5.1],
    ['x', 'z', 0],
  ];
  for (const [a, b, value] of observed) {
    theirs.labels(a, b).observe(value);
    ours.labels(a, b).observe(value);
  }
  expect(await register.metrics()).toBe(await registers[0]!.metrics());
});

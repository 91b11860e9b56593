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

it('counts on in a series that was kept over a reset', async () => {
  const register = new Registry();
  const histogram = new PlainHistogram({
    name: 'seconds',
    help: 'How long.',
    labels: ['a'],
    buckets: [1],
    register,
  });
  const kept = histogram.labels('x');
  kept.observe(3);
  histogram.reset();
  expect(await register.metrics()).toContain('seconds_sum{a="x"} 0\n');
  kept.observe(0.5);
  expect(await register.metrics()).toMatch(/seconds_sum\{a="x"\} 0\.5\nseconds_count\{a="x"\} 1\n/);
});

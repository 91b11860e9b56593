import { definePolicy, type Policy, presets, simulate, type World } from 'redrive';
import { describe, expect, it } from 'vitest';
import { terminalOf, visibleLength } from '../terminal/terminal.ts';
import { FINE_BUCKET_MS } from './columns.ts';
import { compare } from './compare.ts';
import { drawScreen } from './screen.ts';
import { percent, policyInWords, waitsInWords, worldInWords } from './words.ts';

describe('the screen', () => {
  it('shows the load, the numbers and every jitter', () => {
    const text = screen({}).join('\n');
    expect(text).toContain('Policy  mine: 4 attempts, waits from 200 ms, times 2, up to 30 s');
    expect(text).toMatch(/Got through {2}\d+ of 1,000 clients \(\d+ %\)/);
    expect(text).toMatch(/Gave up {6}\d+ out of attempts/);
    expect(text).toMatch(/^▸ full .* %.*\/s/m);
    expect(text).toMatch(/^ {2}none .* %.*\/s/m);
    expect(text).toContain('└────── down ──────┘');
  });

  it.each([40, 60, 80, 100])('fits %i columns, colours or not', (columns) => {
    for (const isTTY of [true, false]) {
      const widths = screen({}, {}, { isTTY, columns }).map(visibleLength);
      expect(Math.max(...widths)).toBeLessThanOrEqual(columns);
    }
  });

  it('has words for a world in which nobody gets through', () => {
    const text = screen({ deadline: 50 }, { outage: '10s', clients: 5 }).join('\n');
    expect(text).toContain('5 out of time');
    expect(text).toContain('none: no client that had failed got through');
    expect(text).toContain('nobody got through');
  });

  it('has words for a world in which nothing happens', () => {
    const text = screen({ maxAttempts: 1 }, { outage: 0, clients: 5, spread: 0 }).join('\n');
    expect(text).toContain('5 clients call at the same moment; the service is up and serves 500');
    expect(text).toContain('Gave up      nobody');
    expect(text).toContain('Everybody got through');
  });

  it('says who was not done when it ended', () => {
    const text = screen({ maxAttempts: 99 }, { outage: '1h', clients: 5, horizon: '5s' }).join(
      '\n',
    );
    expect(text).toContain('5 not done when the simulation ended');
  });
});

describe('words', () => {
  it.each<[Policy, string]>([
    [
      presets.criterion,
      '1 min, 2 min, 4 min, 8 min, 16 min, 32 min, then 1 h each time; jitter adds up to 10 %',
    ],
    [{}, '200 ms, 400 ms, 800 ms; jitter draws from 0 to that'],
    [{ maxAttempts: 1 }, 'none'],
    [{ maxAttempts: 2, jitter: 'equal' }, '200 ms; jitter draws from half of that to that'],
    [{ strategy: 'fixed', base: '1s', jitter: 'none' }, '1 s each time'],
    [
      { maxAttempts: 30, cap: '1h', jitter: 'add', jitterAdd: '2s' },
      '200 ms, 400 ms, 800 ms, 1.6 s, 3.2 s, 6.4 s, 12.8 s, 25.6 s ... 1 h; jitter adds up to 2 s',
    ],
    [
      { schedule: [1000, 5000], maxAttempts: 3, jitter: 'around' },
      '1 s, 5 s; jitter makes them up to 10 % shorter or longer',
    ],
    [
      { maxAttempts: 2, jitter: 'decorrelated' },
      '200 ms; jitter draws from the first to three times the one before',
    ],
  ])('say the waits of %j', (policy, text) => {
    expect(waitsInWords(definePolicy(policy))).toBe(text);
  });

  it('do not count attempts that have no limit', () => {
    expect(policyInWords(presets.criterion)).toBe(
      'any number of attempts, waits from 1 min, times 2, up to 1 h, jitter up',
    );
  });

  it.each<[Policy, string]>([
    [
      { strategy: 'linear', base: 100 },
      '4 attempts, waits of 100 ms more each time, up to 30 s, jitter full',
    ],
    [
      { strategy: 'fixed', base: 100, deadline: '9s' },
      '4 attempts, waits of 100 ms, jitter full, 9 s in all',
    ],
    [
      { schedule: [1, 2, 3, 4, 5, 6] },
      '4 attempts, waits of 1 ms, 2 ms, 3 ms, 4 ms, 5 ms ..., jitter full',
    ],
    [
      { attemptTimeout: '1s' },
      '4 attempts, waits from 200 ms, times 2, up to 30 s, jitter full, 1 s an attempt',
    ],
  ])('say what a policy does: %o', (policy, text) => {
    expect(policyInWords(definePolicy(policy))).toBe(text);
  });

  it('say when an outage begins', () => {
    expect(worldInWords(simulate({}, { outageStart: '2s', clients: 1 }).world)).toContain(
      'down for 500 ms after 2 s',
    );
  });

  it('do not call 999 of 1000 all', () => {
    expect([percent(999, 1000), percent(1, 3), percent(5, 5), percent(0, 0)]).toEqual([
      '99.9 %',
      '33 %',
      '100 %',
      '0 %',
    ]);
  });
});

function screen(
  policy: Policy,
  world: World = {},
  stream: { isTTY?: boolean; columns?: number } = {},
): string[] {
  const comparison = compare(definePolicy(policy), { ...world, bucket: FINE_BUCKET_MS });
  return drawScreen('mine', comparison, terminalOf(stream, {}));
}

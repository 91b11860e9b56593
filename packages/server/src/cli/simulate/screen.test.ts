import { definePolicy, type Policy, simulate, type World } from 'redrive';
import { describe, expect, it } from 'vitest';
import { terminalOf, visibleLength } from '../terminal.ts';
import { FINE_BUCKET_MS } from './columns.ts';
import { compare } from './compare.ts';
import { drawScreen } from './screen.ts';
import { percent, policyInWords, worldInWords } from './words.ts';

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

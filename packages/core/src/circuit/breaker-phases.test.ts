import { describe, expect, it } from 'vitest';
import { type Breaker, type BreakerOptions, createBreaker } from './breaker.ts';
import type { RetryError } from '../errors.ts';
import type { Failure } from '../failure/failure.ts';
import { retry } from '../retry.ts';
import { virtualClock, type VirtualClock } from '../virtual-clock.ts';

const down: Failure = { class: 'transient' };

function make(options: BreakerOptions): { breaker: Breaker; clock: VirtualClock } {
  const clock = virtualClock();
  return { clock, breaker: createBreaker({ clock, ...options }) };
}

/** One call that fails, where the breaker lets it through. */
function fail(breaker: Breaker): void {
  const ticket = breaker.admit();
  if (ticket !== undefined) breaker.failed(ticket, down);
}

function work(breaker: Breaker): void {
  const ticket = breaker.admit();
  if (ticket !== undefined) breaker.succeeded(ticket);
}

/** How long its next openings last, each after a probe that fails. */
async function openings(breaker: Breaker, clock: VirtualClock, count: number): Promise<number[]> {
  const list: number[] = [];
  for (let i = 0; i < count; i++) {
    fail(breaker);
    list.push(breaker.waitMs);
    await clock.advance(breaker.waitMs);
  }
  return list;
}

describe('a growing openFor', () => {
  it('makes each opening longer than the last, up to the cap', async () => {
    const openFor = { base: '10s', cap: '1m' } as const;
    const { breaker, clock } = make({ failures: 1, openFor });
    expect(await openings(breaker, clock, 5)).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  it('begins anew once the breaker has closed', async () => {
    const { breaker, clock } = make({ failures: 1, openFor: { base: '1s' } });
    expect(await openings(breaker, clock, 3)).toEqual([1000, 2000, 4000]);
    work(breaker);
    expect(breaker.state).toBe('closed');
    expect(await openings(breaker, clock, 2)).toEqual([1000, 2000]);
    breaker.close();
    expect(await openings(breaker, clock, 2)).toEqual([1000, 2000]);
  });

  it('is 30 s to 5 min without jitter where nothing else is written', async () => {
    const { breaker, clock } = make({ failures: 1, openFor: {} });
    expect(await openings(breaker, clock, 5)).toEqual([30, 60, 120, 240, 300].map((s) => s * 1000));
  });

  it('may be a schedule, a base past the usual cap, or jittered', async () => {
    const list = make({ failures: 1, openFor: { schedule: ['1s', '10m'] } });
    expect(await openings(list.breaker, list.clock, 3)).toEqual([1000, 600_000, 600_000]);
    const long = make({ failures: 1, openFor: { base: '10m' } });
    expect(await openings(long.breaker, long.clock, 2)).toEqual([600_000, 600_000]);
    const random = () => 0.5;
    const spread = make({ failures: 1, random, openFor: { base: '10s', jitter: 'equal' } });
    expect(await openings(spread.breaker, spread.clock, 2)).toEqual([7500, 15_000]);
    const walk = make({ failures: 1, random, openFor: { base: '1s', jitter: 'decorrelated' } });
    expect(await openings(walk.breaker, walk.clock, 3)).toEqual([2000, 3500, 5750]);
  });

  it('is never nothing, whatever the jitter', () => {
    const { breaker } = make({ failures: 1, random: () => 0, openFor: { jitter: 'full' } });
    fail(breaker);
    expect(breaker).toMatchObject({ state: 'open', waitMs: 1 });
  });

  it('goes on where it was after a restart', async () => {
    const options = { failures: 1, openFor: { base: '1s' } } as const;
    const { breaker, clock } = make(options);
    await openings(breaker, clock, 2);
    fail(breaker);
    const saved = JSON.parse(JSON.stringify(breaker.snapshot())) as ReturnType<Breaker['snapshot']>;
    expect(saved).toMatchObject({ state: 'open', openingsInARow: 3 });
    const again = createBreaker({ clock, ...options }, saved);
    expect(again.waitMs).toBe(4000);
    await clock.advance(4000);
    expect(await openings(again, clock, 1)).toEqual([8000]);
  });

  it('is not waited for longer than its cap where the clock was set back', () => {
    const clock = virtualClock();
    const saved = { state: 'open', failures: 1, openUntilMs: clock.now() + 1e9 } as const;
    const openFor = { base: '1s', cap: '1m' } as const;
    const breaker = createBreaker({ clock, openFor }, saved);
    expect(breaker.waitMs).toBeLessThanOrEqual(121_000);
  });
});

describe('a breaker opened by hand', () => {
  it('stays open until it is closed by hand', async () => {
    const { breaker, clock } = make({});
    breaker.open();
    expect(breaker).toMatchObject({ state: 'open', waitMs: Infinity });
    await clock.advance('30d');
    expect(breaker.admit()).toBeUndefined();
    breaker.close();
    expect(breaker).toMatchObject({ state: 'closed', waitMs: 0 });
    expect(breaker.admit()).toBeDefined();
  });

  it('lets a probe through after the time that was given', async () => {
    const { breaker, clock } = make({});
    breaker.open('10m');
    expect(breaker.waitMs).toBe(600_000);
    await clock.advance('10m');
    work(breaker);
    expect(breaker.state).toBe('closed');
  });

  it.each(['soon', -1, Number.NaN])('refuses a time that is none: %s', (duration) => {
    const { breaker } = make({});
    const open = () => breaker.open(duration as number);
    expect(open).toThrow(expect.objectContaining({ code: 'INVALID_DURATION' }));
    expect(open).toThrow(/is not a duration/);
    expect(breaker.state).toBe('closed');
  });

  it('is not closed or opened by calls from before', () => {
    const { breaker } = make({ failures: 1 });
    const [early, late] = [breaker.admit()!, breaker.admit()!];
    breaker.open();
    breaker.succeeded(early);
    breaker.failed(late, down);
    expect(breaker).toMatchObject({ state: 'open', waitMs: Infinity });
  });

  it('fails calls at once instead of letting them wait for ever', async () => {
    const { breaker, clock } = make({});
    breaker.open();
    const error = await retry(() => 1, {}, { breaker, clock }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'CIRCUIT_OPEN', attempts: 0 });
    expect(error).not.toHaveProperty('retryAfterMs');
    expect(JSON.stringify((error as RetryError).decision)).not.toContain('null');
  });

  it('is still open after a restart', async () => {
    const { breaker, clock } = make({});
    breaker.open();
    const saved = JSON.parse(JSON.stringify(breaker.snapshot())) as ReturnType<Breaker['snapshot']>;
    expect(saved).toEqual({ state: 'open', failures: 0, held: true });
    const again = createBreaker({ clock }, saved);
    await clock.advance('1d');
    expect(again.admit()).toBeUndefined();
  });

  it('tells its listener once each', () => {
    const changes: string[] = [];
    const { breaker } = make({ onChange: (state, before) => changes.push(`${before}-${state}`) });
    breaker.open();
    breaker.open('1s');
    breaker.close();
    breaker.close();
    expect(changes).toEqual(['closed-open', 'open-closed']);
  });
});

describe('a breaker closed by hand', () => {
  it('forgets what failed', () => {
    const { breaker } = make({ failures: 3, rate: 0.5, minimumCalls: 4 });
    fail(breaker);
    fail(breaker);
    breaker.close();
    fail(breaker);
    fail(breaker);
    expect(breaker.state).toBe('closed');
    fail(breaker);
    expect(breaker.state).toBe('open');
  });

  it('forgets the window of its rate', () => {
    const { breaker } = make({ rate: 0.5, windowCalls: 4 });
    [1, 2, 3].forEach(() => fail(breaker));
    breaker.close();
    fail(breaker);
    expect(breaker.state).toBe('closed');
  });
});

describe('a tolerance in half open', () => {
  it('lets some probes fail and closes after enough successes', async () => {
    const { breaker, clock } = make({ failures: 1, successes: 3, probeFailures: 2 });
    fail(breaker);
    await clock.advance('30s');
    fail(breaker);
    work(breaker);
    fail(breaker);
    expect(breaker.state).toBe('half_open');
    work(breaker);
    work(breaker);
    expect(breaker.state).toBe('closed');
  });

  it('opens again at one more failure', async () => {
    const { breaker, clock } = make({ failures: 1, successes: 3, probeFailures: 2 });
    fail(breaker);
    await clock.advance('30s');
    [1, 2].forEach(() => fail(breaker));
    expect(breaker.state).toBe('half_open');
    fail(breaker);
    expect(breaker.state).toBe('open');
  });

  it('counts anew in each phase', async () => {
    const { breaker, clock } = make({ failures: 1, probeFailures: 1 });
    fail(breaker);
    for (let phase = 0; phase < 3; phase++) {
      await clock.advance('30s');
      fail(breaker);
      expect(breaker.state).toBe('half_open');
      fail(breaker);
      expect(breaker.state).toBe('open');
    }
  });

  it('frees the place of a probe that failed', async () => {
    const { breaker, clock } = make({ failures: 1, probes: 1, probeFailures: 5 });
    fail(breaker);
    await clock.advance('30s');
    fail(breaker);
    expect(breaker.admit()).toBeDefined();
    expect(breaker.admit()).toBeUndefined();
  });

  it('is none by default', async () => {
    const { breaker, clock } = make({ failures: 1 });
    fail(breaker);
    await clock.advance('30s');
    fail(breaker);
    expect(breaker.state).toBe('open');
  });
});

describe('a rate over a window by count', () => {
  it('opens once enough of the last calls failed, however slowly they came', async () => {
    const { breaker, clock } = make({ rate: 0.5, windowCalls: 4 });
    for (const failed of [false, true, false]) {
      (failed ? fail : work)(breaker);
      await clock.advance('1h');
    }
    expect(breaker.state).toBe('closed');
    fail(breaker);
    expect(breaker.state).toBe('open');
  });

  it('opens by fewer calls where minimumCalls says so, and not before', () => {
    const { breaker } = make({ rate: 0.5, windowCalls: 100, minimumCalls: 2 });
    fail(breaker);
    expect(breaker.state).toBe('closed');
    fail(breaker);
    expect(breaker.state).toBe('open');
  });

  it('waits for 20 calls of a longer window by default', () => {
    const { breaker } = make({ rate: 0.5, windowCalls: 100 });
    for (let call = 0; call < 19; call++) fail(breaker);
    expect(breaker.state).toBe('closed');
    fail(breaker);
    expect(breaker.state).toBe('open');
  });

  it('forgets calls that left the window', () => {
    const { breaker } = make({ rate: 0.75, windowCalls: 4 });
    [fail, fail, work, work, fail].forEach((call) => call(breaker));
    expect(breaker.state).toBe('closed');
  });

  it('is empty once the breaker closed again', async () => {
    const { breaker, clock } = make({ rate: 0.5, windowCalls: 2 });
    fail(breaker);
    fail(breaker);
    await clock.advance('30s');
    work(breaker);
    expect(breaker.state).toBe('closed');
    fail(breaker);
    expect(breaker.state).toBe('closed');
  });
});

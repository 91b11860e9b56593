import { describe, expect, it, vi } from 'vitest';
import {
  type Breaker,
  type BreakerOptions,
  type BreakerSnapshot,
  createBreaker,
} from './breaker.ts';
import { ConfigError } from '../errors.ts';
import type { Failure } from '../failure/failure.ts';
import { virtualClock } from '../testing.ts';

const down: Failure = { class: 'transient', code: 'ECONNREFUSED' };
const refusal: Failure = { class: 'business', code: 'HTTP_404', status: 404 };
const busy: Failure = { class: 'transient', code: 'HTTP_429', status: 429 };
const bug: Failure = { class: 'technical', names: ['TypeError', 'Error'] };

function make(options: BreakerOptions = {}, saved?: BreakerSnapshot) {
  const clock = virtualClock();
  return { clock, breaker: createBreaker({ clock, ...options }, saved) };
}

/** One call after the other; true worked, a failure did not. */
function calls(breaker: Breaker, ...outcomes: (true | Failure)[]): void {
  for (const outcome of outcomes) {
    const ticket = breaker.admit() as number;
    expect(ticket).toBeDefined();
    if (outcome === true) breaker.succeeded(ticket);
    else breaker.failed(ticket, outcome);
  }
}

function times<T>(n: number, outcome: T): T[] {
  return Array.from({ length: n }, () => outcome);
}

describe('a breaker', () => {
  it('lets everything through while it is closed', () => {
    const { breaker } = make();
    calls(breaker, ...times(100, true as const));
    expect(breaker).toMatchObject({ state: 'closed', waitMs: 0, openings: 0 });
  });

  it('opens after so many failures in a row', () => {
    const { breaker } = make();
    calls(breaker, ...times(4, down), true, ...times(4, down));
    expect(breaker.state).toBe('closed');
    calls(breaker, down);
    expect(breaker).toMatchObject({ state: 'open', waitMs: 30_000, openings: 1 });
    expect(breaker.admit()).toBeUndefined();
  });

  it('lets one probe through when its time has come, and closes if that works', async () => {
    const { clock, breaker } = make({ failures: 1, openFor: '10s' });
    calls(breaker, down);
    await clock.advance(9999);
    expect(breaker).toMatchObject({ state: 'open', waitMs: 1 });
    expect(breaker.admit()).toBeUndefined();
    await clock.advance(1);
    expect(breaker).toMatchObject({ state: 'half_open', waitMs: 0 });
    const probe = breaker.admit() as number;
    expect(breaker.admit()).toBeUndefined();
    expect(breaker.state).toBe('half_open');
    breaker.succeeded(probe);
    expect(breaker.state).toBe('closed');
    calls(breaker, ...times(3, true as const));
  });

  it('opens again if the probe fails', async () => {
    const { clock, breaker } = make({ failures: 3, openFor: '10s' });
    calls(breaker, ...times(3, down));
    await clock.advance('10s');
    calls(breaker, down);
    expect(breaker).toMatchObject({ state: 'open', waitMs: 10_000, openings: 2 });
  });

  it('can let several probes through and ask for several successes', async () => {
    const { clock, breaker } = make({ failures: 1, probes: 2, successes: 3 });
    calls(breaker, down);
    await clock.advance('30s');
    const [first, second] = [breaker.admit() as number, breaker.admit() as number];
    expect(breaker.admit()).toBeUndefined();
    breaker.succeeded(first);
    const third = breaker.admit() as number;
    expect(breaker.admit()).toBeUndefined();
    breaker.succeeded(third);
    expect(breaker.state).toBe('half_open');
    breaker.succeeded(second);
    expect(breaker.state).toBe('closed');
  });

  it('counts successful probes anew after each opening', async () => {
    const { clock, breaker } = make({ failures: 3, successes: 2 });
    calls(breaker, ...times(3, down));
    await clock.advance('30s');
    calls(breaker, true, down);
    expect(breaker.state).toBe('open');
    await clock.advance('30s');
    calls(breaker, true);
    expect(breaker.state).toBe('half_open');
    calls(breaker, true);
    expect(breaker.state).toBe('closed');
  });

  it('takes no word from calls that began before it opened', async () => {
    const { clock, breaker } = make({ failures: 1 });
    const [old, older] = [breaker.admit() as number, breaker.admit() as number];
    calls(breaker, down);
    breaker.succeeded(old);
    breaker.failed(older, down);
    expect(breaker).toMatchObject({ state: 'open', openings: 1 });
    await clock.advance('30s');
    const probe = breaker.admit() as number;
    breaker.succeeded(old);
    breaker.failed(old, down);
    breaker.released(old);
    expect(breaker.state).toBe('half_open');
    expect(breaker.admit()).toBeUndefined();
    breaker.succeeded(probe);
    expect(breaker.state).toBe('closed');
  });

  it('gives the place of a released probe to the next', async () => {
    const { clock, breaker } = make({ failures: 1 });
    calls(breaker, down);
    await clock.advance('30s');
    breaker.released(breaker.admit() as number);
    const probe = breaker.admit();
    expect(probe).toBeDefined();
    expect(breaker.admit()).toBeUndefined();
    // More often than it was given: still one place, not two.
    for (let i = 0; i < 5; i++) breaker.released(probe as number);
    expect(breaker.admit()).toBeDefined();
    expect(breaker.admit()).toBeUndefined();
  });

  it('does not wait for ever for a probe that never comes back', async () => {
    const onChange = vi.fn();
    const { clock, breaker } = make({ failures: 1, openFor: '10s', successes: 2, onChange });
    calls(breaker, down);
    await clock.advance('10s');
    calls(breaker, true);
    expect(breaker.admit()).toBeDefined();
    await clock.advance('9s');
    expect(breaker.admit()).toBeUndefined();
    await clock.advance('1s');
    // What worked so far still counts.
    calls(breaker, true);
    expect(breaker.state).toBe('closed');
    expect(onChange.mock.calls.map(([state]) => state as string)).toEqual([
      'open',
      'half_open',
      'closed',
    ]);
  });

  it('takes a released call for no word at all while it is closed', () => {
    const { breaker } = make({ failures: 2 });
    calls(breaker, down);
    breaker.released(breaker.admit() as number);
    calls(breaker, down);
    expect(breaker.state).toBe('open');
  });
});

describe('which failures trip it', () => {
  it.each([
    ['transient', true],
    ['unknown', true],
    ['business', false],
    ['technical', false],
  ] as const)('by default: %s, %s', (failureClass, trips) => {
    const { breaker } = make({ failures: 1 });
    calls(breaker, { class: failureClass });
    expect(breaker.state).toBe(trips ? 'open' : 'closed');
  });

  it('cannot be found out by an async function, which is refused', async () => {
    const trips = (() => Promise.resolve(false)) as unknown as () => boolean;
    const { clock, breaker } = make({ failures: 1, trips });
    const notAtOnce = expect.objectContaining({ name: 'ConfigError', code: 'INVALID_VALUE' });
    expect(() => calls(breaker, down)).toThrow(notAtOnce);
    expect(breaker.state).toBe('closed');
    const again = createBreaker({ clock, trips }, { state: 'half_open', failures: 1 });
    expect(() => calls(again, down)).toThrow(notAtOnce);
    // The probe is not lost by it.
    expect(again.admit()).toBeDefined();
  });

  it('takes a refusal for an answer: the other side is there', async () => {
    const { clock, breaker } = make({ failures: 2 });
    calls(breaker, down, refusal, down);
    expect(breaker.state).toBe('closed');
    calls(breaker, down);
    await clock.advance('30s');
    calls(breaker, refusal);
    expect(breaker.state).toBe('closed');
  });

  it.each([
    ['429', busy],
    ['a fault at home', bug],
  ])('takes %s neither for trouble nor for health', async (_, neutral) => {
    const { clock, breaker } = make({ failures: 2 });
    calls(breaker, down, neutral, neutral, neutral);
    expect(breaker.state).toBe('closed');
    calls(breaker, down);
    expect(breaker.state).toBe('open');
    await clock.advance('30s');
    calls(breaker, neutral);
    expect(breaker.state).toBe('half_open');
    expect(breaker.admit()).toBeDefined();
    expect(breaker.admit()).toBeUndefined();
  });

  it.each([
    ['429', busy],
    ['a fault at home', bug],
  ])('takes %s for an answer where the caller said what trips it', async (_, failure) => {
    const { clock, breaker } = make({ failures: 1, trips: ({ code }) => code === down.code });
    calls(breaker, failure, down);
    await clock.advance('30s');
    calls(breaker, failure);
    expect(breaker.state).toBe('closed');
  });

  it('can be said by the caller, of 429 too', () => {
    const { breaker } = make({ failures: 1, trips: ({ status }) => status === 429 });
    calls(breaker, down, down);
    expect(breaker.state).toBe('closed');
    calls(breaker, busy);
    expect(breaker.state).toBe('open');
  });
});

describe('a listener of a breaker', () => {
  it('hears of every change', async () => {
    const onChange = vi.fn();
    const { clock, breaker } = make({ failures: 1, onChange });
    calls(breaker, down);
    await clock.advance('30s');
    calls(breaker, down);
    await clock.advance('30s');
    calls(breaker, true);
    expect(onChange.mock.calls).toEqual([
      ['open', 'closed'],
      ['half_open', 'open'],
      ['open', 'half_open'],
      ['half_open', 'open'],
      ['closed', 'half_open'],
    ]);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('listener fault');
      },
    ],
    ['rejects', () => Promise.reject(new Error('listener fault'))],
  ] as [string, () => unknown][])(
    'that %s never breaks the work, and is reported',
    async (_, onChange) => {
      const report = vi.spyOn(console, 'error').mockImplementation(() => {});
      const { clock, breaker } = make({ failures: 1, onChange });
      calls(breaker, down);
      await clock.advance(0);
      expect(breaker.state).toBe('open');
      expect(report).toHaveBeenCalledExactlyOnceWith(
        'redrive: a breaker listener failed',
        expect.objectContaining({ message: 'listener fault' }),
      );
      report.mockRestore();
    },
  );
});

describe('a saved breaker', () => {
  it('goes on where it was', async () => {
    const { clock, breaker } = make({ failures: 3 });
    calls(breaker, down, down);
    expect(breaker.snapshot()).toEqual({ state: 'closed', failures: 2 });
    const again = createBreaker({ clock, failures: 3 }, breaker.snapshot());
    expect(again).toMatchObject({ state: 'closed', openings: 0 });
    calls(again, down);
    await clock.advance('10s');
    const saved = again.snapshot();
    expect(saved).toEqual({ state: 'open', failures: 3, openUntilMs: clock.now() + 20_000 });
    const third = createBreaker({ clock }, JSON.parse(JSON.stringify(saved)) as BreakerSnapshot);
    expect(third).toMatchObject({ state: 'open', waitMs: 20_000 });
    await clock.advance('20s');
    expect(third.state).toBe('half_open');
  });

  it('probes at once where it was half open, or its time passed meanwhile', async () => {
    const { clock, breaker } = make({ failures: 1 });
    calls(breaker, down);
    await clock.advance('30s');
    breaker.admit();
    expect(breaker.snapshot()).toEqual({
      state: 'half_open',
      failures: 1,
      openUntilMs: clock.now(),
    });
    const again = createBreaker({ clock }, breaker.snapshot());
    expect(again.admit()).toBeDefined();
    expect(again.admit()).toBeUndefined();
  });

  it('never waits longer than one opening lasts, whatever the clock did', () => {
    const saved = { state: 'open', failures: 5, openUntilMs: Date.UTC(2099, 0, 1) } as const;
    expect(make({ openFor: '10s' }, saved).breaker.waitMs).toBe(10_000);
  });

  it.each([{ openUntilMs: NaN }, { openUntilMs: undefined }, { openUntilMs: 0 }, {}])(
    'probes at once where the time makes no sense: %j',
    (odd) => {
      const saved = { state: 'open', failures: NaN, ...odd } as BreakerSnapshot;
      const { breaker } = make({}, saved);
      expect(breaker).toMatchObject({ state: 'half_open', waitMs: 0 });
    },
  );
});

describe('bad options of a breaker', () => {
  it('are all listed, with paths', () => {
    const options = { failures: 0, rate: 2, openFor: '-1s', trip: 1 } as unknown as BreakerOptions;
    let error: unknown;
    try {
      createBreaker(options);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      code: 'INVALID_CONFIG',
      faults: [{ path: 'failures' }, { path: 'rate' }, { path: 'openFor' }, { path: 'trip' }],
    });
  });

  it('are not needed: it works by the clock of the host', () => {
    const breaker = createBreaker();
    calls(breaker, ...times(5, down));
    expect(breaker.state).toBe('open');
    expect(breaker.waitMs).toBeGreaterThan(29_000);
  });
});

import { describe, expect, it, vi } from 'vitest';
import { type Breaker, createBreaker } from './circuit/breaker.ts';
import type { RetryError } from './errors.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryEvent, Runtime } from './run/runtime.ts';
import { virtualClock, type VirtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

async function outcome(
  clock: VirtualClock,
  fn: (attempt: Attempt) => unknown,
  policy: Policy,
  runtime: Runtime,
): Promise<RetryError> {
  const call = retry(fn, policy, { clock, ...runtime });
  const [settled] = await Promise.all([call.catch((error: unknown) => error), clock.run()]);
  return settled as RetryError;
}

/** A breaker that opened just now. */
function opened(clock: VirtualClock, openFor: number): Breaker {
  const saved = { state: 'open', failures: 5, openUntilMs: clock.now() + openFor } as const;
  return createBreaker({ clock, openFor: Math.max(openFor, 1) }, saved);
}

/** A breaker of someone else's making. */
function foreign(own: Partial<Breaker>): Breaker {
  return {
    state: 'open',
    openings: 1,
    waitMs: 0,
    admit: () => undefined,
    succeeded() {},
    failed() {},
    released() {},
    snapshot: () => ({ state: 'open', failures: 0 }),
    open() {},
    close() {},
    ...own,
  };
}

describe('a call behind an open breaker', () => {
  it('waits until the time of the breaker, which costs no attempt', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 5000);
    const events: RetryEvent[] = [];
    const startedAt: number[] = [];
    const result = await outcome(
      clock,
      ({ attempt }) => {
        startedAt.push(clock.monotonic());
        return attempt;
      },
      { ...steady, maxAttempts: 1 },
      { breaker, on: (event) => events.push(event) },
    );
    expect(result).toBe(1);
    expect(startedAt).toEqual([5000]);
    expect(breaker.state).toBe('closed');
    expect(events).toMatchObject([
      {
        type: 'wait',
        attempt: 1,
        delayMs: 5000,
        error: undefined,
        facts: {
          failure: { code: 'CIRCUIT_OPEN', counted: false, notExecuted: true },
          circuit: { waitMs: 5000 },
        },
        decision: { reason: 'CIRCUIT_OPEN', nextAttempt: 1 },
      },
      { type: 'attempt', attempt: 1 },
      { type: 'success', attempts: 1 },
    ]);
  });

  it('gives up at once where the deadline comes first, and says how long it would be', async () => {
    const clock = virtualClock();
    const fn = vi.fn();
    const breaker = opened(clock, 5000);
    const error = await outcome(clock, fn, { ...steady, deadline: '5s' }, { breaker });
    expect(error).toMatchObject({
      code: 'CIRCUIT_OPEN',
      attempts: 0,
      history: [],
      retryAfterMs: 5000,
      message: 'Gave up after 0 attempts (CIRCUIT_OPEN).',
    });
    expect(clock.monotonic()).toBe(0);
    expect(fn).not.toHaveBeenCalled();
  });

  it('keeps what it knows of earlier attempts', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ clock, failures: 2 });
    const policy = { ...steady, deadline: '10s', maxAttempts: 9 } as const;
    const error = await outcome(clock, () => Promise.reject(reset()), policy, { breaker });
    expect(error).toMatchObject({
      code: 'CIRCUIT_OPEN',
      attempts: 2,
      cause: { message: 'reset' },
      history: [{ attempt: 1 }, { attempt: 2 }],
    });
    expect(error.retryAfterMs).toBe(30_000 - 200);
  });

  it('waits once per opening: for each new one again, up to a limit', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ clock, failures: 1, openFor: '1s' });
    const startedAt: number[] = [];
    const error = await outcome(
      clock,
      () => {
        startedAt.push(clock.monotonic());
        throw reset();
      },
      { base: 0, maxAttempts: 100, maxUncounted: 3 },
      { breaker },
    );
    expect(error).toMatchObject({ code: 'CIRCUIT_OPEN', attempts: 4, retryAfterMs: 1000 });
    expect(startedAt).toEqual([0, 1000, 2000, 3000]);
  });

  it('fails fast where no uncounted failure is allowed, and says how long it would be', async () => {
    const clock = virtualClock();
    const fn = vi.fn();
    const breaker = opened(clock, 5000);
    const error = await outcome(clock, fn, { ...steady, maxUncounted: 0 }, { breaker });
    expect(error).toMatchObject({
      code: 'CIRCUIT_OPEN',
      attempts: 0,
      history: [],
      retryAfterMs: 5000,
      message: 'Gave up after 0 attempts (CIRCUIT_OPEN).',
    });
    expect(clock.monotonic()).toBe(0);
    expect(fn).not.toHaveBeenCalled();
  });

  it('fails fast too while the one probe is taken', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 1000);
    await clock.advance(1000);
    breaker.admit();
    const fn = vi.fn();
    const error = await outcome(clock, fn, { ...steady, maxUncounted: 0 }, { breaker });
    expect(error).toMatchObject({ code: 'CIRCUIT_OPEN', attempts: 0 });
    expect(error).not.toHaveProperty('retryAfterMs');
    expect(fn).not.toHaveBeenCalled();
  });

  it('fails fast as soon as its own failures have opened it', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ clock, failures: 2, openFor: '1s' });
    const fn = vi.fn(() => Promise.reject(reset()));
    const policy = { ...steady, maxAttempts: 9, maxUncounted: 0 };
    const error = await outcome(clock, fn, policy, { breaker });
    expect(error).toMatchObject({
      code: 'CIRCUIT_OPEN',
      attempts: 2,
      cause: { message: 'reset' },
      retryAfterMs: 800,
    });
    expect(clock.monotonic()).toBe(300);
  });

  it('gives up when an opening that was waited for is still open', async () => {
    const clock = virtualClock();
    const breaker = foreign({ waitMs: 1000 });
    const error = await outcome(clock, () => 'in', steady, { breaker });
    expect(error).toMatchObject({ code: 'CIRCUIT_OPEN', attempts: 0, retryAfterMs: 1000 });
    expect(clock.monotonic()).toBe(1000);
  });

  it('forgives a timer that fires a moment early', async () => {
    const clock = virtualClock();
    const left = [1000, 0.4];
    const succeeded = vi.fn();
    const breaker = foreign({ admit: () => (left.length > 0 ? undefined : 1), succeeded });
    Object.defineProperty(breaker, 'waitMs', { get: () => left.shift() });
    expect(await outcome(clock, () => 'in', steady, { breaker })).toBe('in');
    expect(clock.monotonic()).toBe(1001);
    expect(succeeded).toHaveBeenCalledExactlyOnceWith(1);
  });

  it('backs off while all probes are taken', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 1000);
    await clock.advance(1000);
    const probe = breaker.admit() as number;
    clock.setTimer(() => breaker.succeeded(probe), 250);
    const startedAt: number[] = [];
    const result = await outcome(clock, () => startedAt.push(clock.monotonic()), steady, {
      breaker,
    });
    expect(result).toBe(1);
    // Refused at 1000 and 1100, let in at 1300.
    expect(startedAt).toEqual([1300]);
  });

  it('does not give up its place in a crowd: one probe, then all of them', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 1000);
    let running = 0;
    let most = 0;
    const startedAt: number[] = [];
    const work = async () => {
      startedAt.push(clock.monotonic());
      running += 1;
      if (startedAt.length === 1) most = Math.max(most, running);
      await new Promise<void>((resolve) => {
        clock.setTimer(resolve, 50);
      });
      running -= 1;
      return 'served';
    };
    const crowd = Array.from({ length: 50 }, () =>
      retry(work, { base: 200, maxAttempts: 2 }, { clock, breaker }),
    );
    await clock.run();
    expect(await Promise.all(crowd)).toEqual(Array.from({ length: 50 }, () => 'served'));
    expect(most).toBe(1);
    expect(startedAt[0]).toBe(1000);
    expect(startedAt.filter((ms) => ms < 1050)).toHaveLength(1);
    expect(startedAt).toHaveLength(50);
  });

  it('in a crowd, a probe that fails sends all of them back to wait', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 1000);
    const startedAt: number[] = [];
    const work = () => {
      startedAt.push(clock.monotonic());
      return clock.monotonic() < 3000 ? Promise.reject(reset()) : Promise.resolve('served');
    };
    const crowd = Array.from({ length: 20 }, () => retry(work, { base: 10 }, { clock, breaker }));
    await clock.run();
    expect(new Set(await Promise.all(crowd))).toEqual(new Set(['served']));
    expect(startedAt.slice(0, 3)).toEqual([1000, 2000, 3000]);
  });
});

describe('what a call tells its breaker', () => {
  it('opens it by failures, timeouts and refused Responses, and closes it by success', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ clock, failures: 3, openFor: '1s' });
    const outcomes = [
      () => Promise.reject(reset()),
      () => new Promise(() => {}),
      () => new Response(null, { status: 503 }),
      () => 'ready',
    ];
    const policy = { ...steady, attemptTimeout: 500 };
    const fn = vi.fn(({ attempt }: Attempt) => outcomes[attempt - 1]?.());
    const states: string[] = [];
    const result = await outcome(clock, fn, policy, {
      breaker,
      retryIf: { result: (value) => value !== 'ready' },
      on: () => states.push(breaker.state),
    });
    expect(result).toBe('ready');
    expect(states.join(' ')).toBe('closed closed closed closed closed open open half_open closed');
  });

  it('does not open it by plain results that are refused: an answer is an answer', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ clock, failures: 1 });
    const fn = vi.fn(() => ({ ready: false }));
    const retryIf = { result: () => true };
    const error = await outcome(clock, fn, steady, { breaker, retryIf });
    expect(error).toMatchObject({ code: 'EXHAUSTED', decision: { failure: { code: 'RESULT' } } });
    expect(fn).toHaveBeenCalledTimes(4);
    expect(breaker).toMatchObject({ state: 'closed', openings: 0 });
  });

  it('takes a plain result that is refused for the end of failures in a row', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ clock, failures: 2 });
    const outcomes = [
      () => Promise.reject(reset()),
      () => 'not ready',
      () => Promise.reject(reset()),
      () => 'ready',
    ];
    const fn = vi.fn(({ attempt }: Attempt) => outcomes[attempt - 1]?.());
    const retryIf = { result: (value: unknown) => value !== 'ready' };
    expect(await outcome(clock, fn, steady, { breaker, retryIf })).toBe('ready');
    expect(breaker.openings).toBe(0);
  });

  it('closes it by a probe whose plain result is refused', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 1000);
    await clock.advance(1000);
    const policy = { ...steady, maxAttempts: 1 };
    const retryIf = { result: () => true };
    const error = await outcome(clock, () => 'not ready', policy, { breaker, retryIf });
    expect(error).toMatchObject({ code: 'EXHAUSTED', result: 'not ready' });
    expect(breaker.state).toBe('closed');
  });

  it('leaves the word to the next probe where this one met a bug of its own', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 1000);
    await clock.advance(1000);
    const bug = new TypeError('x is not a function');
    expect(await outcome(clock, () => Promise.reject(bug), steady, { breaker })).toBe(bug);
    expect(breaker.state).toBe('half_open');
    expect(await outcome(clock, () => 'served', steady, { breaker })).toBe('served');
    expect(breaker.state).toBe('closed');
  });

  it('says nothing when a callback of the caller fails: the probe is let go of', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 1000);
    await clock.advance(1000);
    const call = retry(() => Promise.reject(reset()), steady, {
      clock,
      breaker,
      classify() {
        throw new Error('bad classify');
      },
    });
    await expect(call).rejects.toThrow('bad classify');
    expect(breaker.state).toBe('half_open');
    expect(breaker.admit()).toBeDefined();
  });

  it('rejects also when the breaker itself fails', async () => {
    const clock = virtualClock();
    const broken = () => {
      throw new Error('bad breaker');
    };
    const breaker = foreign({ admit: () => 1, failed: broken, released: broken });
    const fails = retry(() => Promise.reject(reset()), { deadline: '1h' }, { clock, breaker });
    await expect(fails).rejects.toThrow('bad breaker');
    const controller = new AbortController();
    const aborts = retry(
      () => new Promise(() => {}),
      { deadline: '1h' },
      {
        clock,
        breaker,
        signal: controller.signal,
      },
    );
    const removed = vi.spyOn(controller.signal, 'removeEventListener');
    controller.abort();
    await expect(aborts).rejects.toThrow('bad breaker');
    expect(removed).toHaveBeenCalledTimes(1);
    expect(clock.pending).toBe(0);
  });
});

describe('an abort behind a breaker', () => {
  it('gives the place of an aborted probe to the next', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 0);
    const controller = new AbortController();
    const call = retry(() => new Promise(() => {}), steady, {
      clock,
      breaker,
      signal: controller.signal,
    });
    expect(breaker.admit()).toBeUndefined();
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(breaker.admit()).toBeDefined();
  });

  it('does not give away a place twice when the abort comes in the wait after the probe', async () => {
    const clock = virtualClock();
    const breaker = opened(clock, 0);
    const controller = new AbortController();
    const busy = Object.assign(new Error('slow down'), { status: 429 });
    const call = retry(() => Promise.reject(busy), steady, {
      clock,
      breaker,
      signal: controller.signal,
    }).catch(() => {});
    await clock.advance(0);
    expect(breaker.admit()).toBeDefined();
    controller.abort();
    await call;
    expect(breaker.admit()).toBeUndefined();
  });
});

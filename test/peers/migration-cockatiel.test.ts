/** The table for cockatiel in the guide, held against cockatiel: the same calls at the same times, with the same end. */
import {
  BrokenCircuitError,
  bulkhead as cockatielBulkhead,
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  ConstantBackoff,
  CountBreaker,
  ExponentialBackoff,
  fallback,
  handleAll,
  type IBreaker,
  type ICircuitBreakerOptions,
  isBrokenCircuitError,
  isIsolatedCircuitError,
  noJitterGenerator,
  retry as cockatielRetry,
  SamplingBreaker,
  timeout,
  TimeoutStrategy,
  wrap,
} from 'cockatiel';
import { type BreakerOptions, createBreaker, createBulkhead, isRetryError, retry } from 'redrive';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { cockatielCall, cockatielShim, type Described, NetworkError } from './cockatiel-shim.ts';
import { advance, settle, stopTime, watch } from './lab.ts';
import { down, failTwice, play, throwing } from './play.ts';

beforeEach(() => {
  stopTime();
  vi.spyOn(Math, 'random').mockReturnValue(0.25);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const notFound = () => throwing(Object.assign(new Error('none'), { status: 404 }))();

describe('the rows for retry', () => {
  const cases: [string, Described, (attempt: number) => unknown][] = [
    ['a first attempt that works', { maxAttempts: 3 }, () => 'done'],
    ['two failures', { maxAttempts: 3, constant: 100 }, failTwice],
    ['maxAttempts', { maxAttempts: 3, constant: 100 }, down],
    ['no maxAttempts', { constant: 60_000 }, (n) => (n < 40 ? down() : n)],
    ['no backoff', { maxAttempts: 5 }, down],
    ['handleAll: a TypeError', { maxAttempts: 2 }, throwing(new TypeError('bug'))],
    ['handleAll: a 404', { maxAttempts: 2 }, notFound],
    ['handleType', { handles: 'NetworkError', maxAttempts: 2 }, throwing(new NetworkError('net'))],
    ['handleType: another error', { handles: 'NetworkError', maxAttempts: 2 }, down],
    ['handleWhen', { handles: 'when', maxAttempts: 2 }, throwing(new NetworkError('net'))],
    ['handleWhen: another error', { handles: 'when', maxAttempts: 2 }, down],
    ['handleWhenResult', { handles: 'result', maxAttempts: 2 }, (n) => (n < 2 ? 'busy' : 'done')],
    ['handleWhenResult: the last result', { handles: 'result', maxAttempts: 2 }, () => 'busy'],
    ['handleWhenResult: an error', { handles: 'result', maxAttempts: 2 }, down],
    ['orWhenResult: an error', { handles: 'all or result', maxAttempts: 2 }, down],
    ['orWhenResult: a result', { handles: 'all or result', maxAttempts: 2 }, () => 'busy'],
    ['ConstantBackoff', { maxAttempts: 3, constant: 500 }, down],
    ['IterableBackoff', { maxAttempts: 4, list: [100, 500] }, down],
    ['noJitterGenerator', { maxAttempts: 12, exponential: { generator: 'none' } }, down],
    ['fullJitterGenerator', { maxAttempts: 12, exponential: { generator: 'full' } }, down],
    ['halfJitterGenerator', { maxAttempts: 12, exponential: { generator: 'half' } }, down],
    [
      'initialDelay and maxDelay',
      { maxAttempts: 6, exponential: { initialDelay: 50, maxDelay: 300, generator: 'none' } },
      down,
    ],
  ];

  it.each(cases)('%s', async (_, described, script) => {
    const theirs = await play(cockatielCall(described), script);
    const ours = await play(cockatielShim(described), script);
    expect(ours).toEqual(theirs);
  });

  it('handleWhenResult: Redrive itself rejects with EXHAUSTED, and has the last result', async () => {
    const call = retry(
      () => 'busy',
      { maxAttempts: 2, base: 0 },
      { retryIf: { result: () => true } },
    );
    const outcome = watch(call);
    await advance(1000);
    expect(outcome.error).toMatchObject({ code: 'EXHAUSTED', result: 'busy' });
  });

  it('the generators without decorrelation double, whatever the exponent', async () => {
    const options = { initialDelay: 100, exponent: 3, generator: noJitterGenerator };
    const policy = cockatielRetry(handleAll, {
      maxAttempts: 3,
      backoff: new ExponentialBackoff(options),
    });
    const { calls } = await play((fn) => policy.execute(() => fn(0)), down);
    expect(calls).toEqual([0, 100, 300, 700]);
  });

  it('the number of an attempt begins at 0 there, and at 1 here', async () => {
    const theirs: number[] = [];
    const ours: number[] = [];
    await cockatielRetry(handleAll, { maxAttempts: 1 }).execute(({ attempt }) =>
      theirs.push(attempt),
    );
    await retry(({ attempt }) => ours.push(attempt));
    expect([theirs, ours]).toEqual([[0], [1]]);
  });

  it('an abort in a wait ends the call at once here, and after the wait there', async () => {
    const ends = [];
    for (const call of [cockatielCall, cockatielShim]) {
      const stop = new AbortController();
      setTimeout(() => stop.abort(new Error('enough')), 1000);
      const made = call({ maxAttempts: 5, constant: 5000 });
      ends.push((await play((fn) => made(fn, stop.signal), down)).atMs);
    }
    expect(ends).toEqual([5000, 1000]);
  });

  it('onRetry and onGiveUp: the last error there, the RetryError here', async () => {
    const theirs: unknown[] = [];
    const ours: unknown[] = [];
    const policy = cockatielRetry(handleAll, { maxAttempts: 1, backoff: new ConstantBackoff(50) });
    policy.onRetry(({ delay, attempt }) => void theirs.push([attempt, delay]));
    policy.onGiveUp((reason) => void theirs.push('error' in reason && reason.error));
    await play((fn) => policy.execute(() => fn(0)), down);
    await play(
      (fn) =>
        retry(
          () => fn(0),
          { maxAttempts: 2, strategy: 'fixed', base: 50, jitter: 'none' },
          {
            on: {
              wait: ({ attempt, delayMs }) => void ours.push([attempt, delayMs]),
              giveUp: ({ error }) => void ours.push(error),
            },
          },
        ),
      down,
    );
    expect(ours[0]).toEqual(theirs[0]);
    expect(theirs[1]).toMatchObject({ message: 'down' });
    expect(isRetryError(ours[1]) && ours[1].cause).toMatchObject({ message: 'down' });
  });

  it('fallback', async () => {
    const theirs = await play((fn) => fallback(handleAll, 'plan B').execute(() => fn(0)), down);
    const ours = await play(
      (fn) => retry(() => fn(0), { maxAttempts: 1 }).catch(() => 'plan B'),
      down,
    );
    expect(ours).toEqual(theirs);
  });
});

describe('the rows for timeout', () => {
  const never = () => new Promise(() => {});

  it('around each attempt', async () => {
    const policy = wrap(
      cockatielRetry(handleAll, { maxAttempts: 2 }),
      timeout(1000, TimeoutStrategy.Aggressive),
    );
    const theirs = await play((fn) => policy.execute(() => fn(0)), never);
    const ours = await play(
      (fn) =>
        retry(() => fn(0), { maxAttempts: 3, base: 0, retryOn: ['any'], attemptTimeout: '1s' }),
      never,
    );
    expect(ours.calls).toEqual(theirs.calls);
    expect(ours.atMs).toBe(theirs.atMs);
  });

  it('around the whole: both end in time, and only there an attempt starts afterwards', async () => {
    const policy = wrap(
      timeout(5000, TimeoutStrategy.Aggressive),
      cockatielRetry(handleAll, { maxAttempts: 3, backoff: new ConstantBackoff(4000) }),
    );
    const theirs = await play((fn) => policy.execute(() => fn(0)), down);
    const ours = await play((fn) => {
      const delays = { strategy: 'fixed', base: 4000, jitter: 'none' } as const;
      return retry(() => fn(0), { ...delays, maxAttempts: 4, deadline: '5s' });
    }, down);
    expect(theirs).toMatchObject({ calls: [0, 4000, 8000], state: 'rejected', atMs: 5000 });
    expect(ours).toMatchObject({ calls: [0, 4000], state: 'rejected', atMs: 4000 });
  });

  it('cooperative: the call waits for the function', async () => {
    const deaf = () =>
      new Promise((resolve) => {
        setTimeout(() => resolve('late'), 3000);
      });
    const policy = timeout(1000, TimeoutStrategy.Cooperative);
    const theirs = await play((fn) => policy.execute(() => fn(0)), deaf);
    const ours = await play((fn) => retry(() => fn(0)), deaf);
    expect(ours).toEqual(theirs);
  });
});

describe('the rows for circuitBreaker', () => {
  type Step = 'works' | 'fails' | '404' | number;

  /** What came of each call; a number moves the time by as many ms. */
  async function drive(call: (fn: () => unknown) => Promise<unknown>, steps: readonly Step[]) {
    const seen: string[] = [];
    for (const step of steps) {
      if (typeof step === 'number') await advance(step);
      else {
        const outcome = watch(
          call(() => (step === 'works' ? 'done' : step === '404' ? notFound() : down())),
        );
        await settle();
        seen.push(
          outcome.state === 'rejected' && isRefusal(outcome.error) ? 'refused' : outcome.state,
        );
      }
    }
    return seen;
  }

  function isRefusal(error: unknown): boolean {
    if (isBrokenCircuitError(error) || isIsolatedCircuitError(error)) return true;
    return isRetryError(error) && error.code === 'CIRCUIT_OPEN';
  }

  function theirCall(breaker: IBreaker, more: Partial<ICircuitBreakerOptions> = {}) {
    const policy = circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker, ...more });
    return (fn: () => unknown) => policy.execute(fn);
  }

  function ourCall(options: BreakerOptions) {
    const breaker = createBreaker({ openFor: '10s', ...options });
    return (fn: () => unknown) =>
      retry(fn, { maxAttempts: 1, maxUncounted: 0, retryOn: ['any'] }, { breaker });
  }

  const times = (count: number, step: Step): Step[] => Array.from({ length: count }, () => step);

  it('ConsecutiveBreaker, 404s included with trips', async () => {
    const steps: Step[] = [
      ...times(4, 'fails'),
      'works',
      ...times(3, '404'),
      ...times(2, 'fails'),
      'works',
      10_000,
      'fails',
      'works',
      10_000,
      'works',
      'works',
    ];
    const theirs = await drive(theirCall(new ConsecutiveBreaker(5)), steps);
    expect(await drive(ourCall({ failures: 5, trips: () => true }), steps)).toEqual(theirs);
    expect(theirs).toContain('refused');
    // Without trips a 404 is an answer of a service that is there.
    expect(await drive(ourCall({ failures: 5 }), times(10, '404'))).not.toContain('refused');
  });

  it('halfOpenAfter with a backoff', async () => {
    const backoff = new ExponentialBackoff({
      initialDelay: 10_000,
      maxDelay: 300_000,
      generator: noJitterGenerator,
    });
    const steps: Step[] = [
      'fails',
      10_000,
      'fails',
      10_000,
      'works',
      10_000,
      'fails',
      20_000,
      'works',
    ];
    const theirs = await drive(
      theirCall(new ConsecutiveBreaker(1), { halfOpenAfter: backoff }),
      steps,
    );
    const ours = ourCall({ failures: 1, openFor: { base: '10s', cap: '5m' } });
    expect(await drive(ours, steps)).toEqual(theirs);
  });

  it('halfOpenSampling: the same failures open and close it; only Redrive closes before the last call', async () => {
    const sampling = { halfOpenSampling: { calls: 10, threshold: 0.2 } };
    const options = { failures: 1, successes: 8, probeFailures: 2, probes: 10 };
    const opens: Step[] = ['fails', 10_000, ...times(3, 'fails'), 'works'];
    const closes: Step[] = ['fails', 10_000, ...times(2, 'fails'), ...times(8, 'works'), 'works'];
    for (const steps of [opens, closes]) {
      const theirs = await drive(theirCall(new ConsecutiveBreaker(1), sampling), steps);
      expect(await drive(ourCall(options), steps)).toEqual(theirs);
    }
    const breaker = createBreaker({ ...options, openFor: '10s' });
    const policy = circuitBreaker(handleAll, {
      halfOpenAfter: 10_000,
      breaker: new ConsecutiveBreaker(1),
      ...sampling,
    });
    const steps: Step[] = ['fails', 10_000, ...times(8, 'works')];
    await drive((fn) => policy.execute(fn), steps);
    await drive((fn) => retry(fn, { maxAttempts: 1, maxUncounted: 0 }, { breaker }), steps);
    expect([policy.state, breaker.state]).toEqual([CircuitState.HalfOpen, 'closed']);
  });

  it('SamplingBreaker: minimumRps is minimumCalls by the window, and guessed where it is left out', async () => {
    const steps: Step[] = [...times(149, 'fails'), 'fails', 'works'];
    const sampling = { threshold: 0.2, duration: 30_000 };
    const theirs = await drive(
      theirCall(new SamplingBreaker({ ...sampling, minimumRps: 5 })),
      steps,
    );
    const ours = ourCall({ rate: 0.2, window: '30s', minimumCalls: 150 });
    expect(await drive(ours, steps)).toEqual(theirs);
    expect(theirs.indexOf('refused')).toBe(150);
    const many: Step[] = [...times(750, 'fails'), 'works'];
    const guessed = await drive(theirCall(new SamplingBreaker(sampling)), many);
    expect(guessed.indexOf('refused')).toBe(750);
  });

  it('CountBreaker: Redrive opens at the rate, cockatiel above it', async () => {
    const breaker = () => new CountBreaker({ threshold: 0.2, size: 100 });
    const options = { rate: 0.2, windowCalls: 100, minimumCalls: 100 };
    const above: Step[] = [...times(79, 'works'), ...times(21, 'fails'), 'works'];
    const theirs = await drive(theirCall(breaker()), above);
    expect(await drive(ourCall(options), above)).toEqual(theirs);
    expect(theirs.at(-1)).toBe('refused');
    const at: Step[] = [...times(80, 'works'), ...times(20, 'fails'), 'works'];
    expect((await drive(theirCall(breaker()), at)).at(-1)).toBe('resolved');
    expect((await drive(ourCall(options), at)).at(-1)).toBe('refused');
  });

  it('isolate and dispose', async () => {
    const policy = circuitBreaker(handleAll, {
      halfOpenAfter: 10_000,
      breaker: new ConsecutiveBreaker(5),
    });
    const breaker = createBreaker();
    const handle = policy.isolate();
    breaker.open();
    const calls = [
      (fn: () => unknown) => policy.execute(fn),
      (fn: () => unknown) => retry(fn, {}, { breaker }),
    ];
    for (const call of calls) expect(await drive(call, ['works'])).toEqual(['refused']);
    handle.dispose();
    breaker.close();
    for (const call of calls) expect(await drive(call, ['works'])).toEqual(['resolved']);
  });

  it('toJSON and initialState', async () => {
    const options = () => ({ halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(1) });
    const policy = circuitBreaker(handleAll, options());
    const breaker = createBreaker({ failures: 1 });
    await drive((fn) => policy.execute(fn), ['fails']);
    await drive((fn) => retry(fn, { maxAttempts: 1 }, { breaker }), ['fails']);
    const initialState = JSON.parse(JSON.stringify(policy)) as unknown;
    const again = circuitBreaker(handleAll, { ...options(), initialState });
    const restored = createBreaker({ failures: 1 }, breaker.snapshot());
    expect([again.state, restored.state]).toEqual([CircuitState.Open, 'open']);
  });

  it('onBreak, onHalfOpen and onReset are onChange', async () => {
    const theirs: string[] = [];
    const ours: string[] = [];
    const policy = circuitBreaker(handleAll, {
      halfOpenAfter: 10_000,
      breaker: new ConsecutiveBreaker(1),
    });
    policy.onBreak(() => void theirs.push('open'));
    policy.onHalfOpen(() => void theirs.push('half_open'));
    policy.onReset(() => void theirs.push('closed'));
    const steps: Step[] = ['fails', 10_000, 'works'];
    await drive((fn) => policy.execute(fn), steps);
    await drive(ourCall({ failures: 1, onChange: (state) => void ours.push(state) }), steps);
    expect(ours).toEqual(theirs);
    expect(ours).toEqual(['open', 'half_open', 'closed']);
  });

  it('a call that meets an open breaker fails at once there, and here with maxUncounted: 0', async () => {
    const policy = circuitBreaker(handleAll, {
      halfOpenAfter: 10_000,
      breaker: new ConsecutiveBreaker(1),
    });
    const breaker = createBreaker({ openFor: '10s', failures: 1 });
    await policy.execute(down).catch(() => {});
    const theirs = watch(policy.execute(() => 'done'));
    breaker.open('10s');
    const ours = watch(retry(() => 'done', { maxUncounted: 0 }, { breaker }));
    const patient = watch(retry(() => 'done', {}, { breaker }));
    await settle();
    expect([theirs.state, ours.state, patient.state]).toEqual(['rejected', 'rejected', 'pending']);
    expect(theirs.error).toBeInstanceOf(BrokenCircuitError);
    await advance(20_000);
    expect(patient).toMatchObject({ state: 'resolved', value: 'done' });
  });
});

describe('the rows for bulkhead', () => {
  const never = () => new Promise<never>(() => {});

  it('runs, queues and refuses as many', async () => {
    const policy = cockatielBulkhead(2, 1);
    const bulkhead = createBulkhead({ maxConcurrent: 2, maxQueue: 1 });
    const theirs = Array.from({ length: 4 }, () => watch(policy.execute(never)));
    const ours = Array.from({ length: 4 }, () => watch(retry(never, {}, { bulkhead })));
    await settle();
    const states = (all: readonly { state: string }[]) => all.map(({ state }) => state);
    expect(states(ours)).toEqual(states(theirs));
    expect(states(ours)).toEqual(['pending', 'pending', 'pending', 'rejected']);
    expect(ours[3]?.error).toMatchObject({ code: 'BULKHEAD_FULL' });
  });

  it('a full one is retried there, and here only by an outer call', async () => {
    const freed = async (call: (fn: () => unknown) => Promise<unknown>) => {
      const holding = Promise.withResolvers<void>();
      void call(() => holding.promise);
      setTimeout(() => holding.resolve(), 1500);
      const outcome = watch(call(() => 'done'));
      await advance(10_000);
      return outcome.state;
    };
    const policy = wrap(
      cockatielRetry(handleAll, { maxAttempts: 3, backoff: new ConstantBackoff(1000) }),
      cockatielBulkhead(1),
    );
    const delays = { strategy: 'fixed', base: 1000, jitter: 'none' } as const;
    const bulkhead = createBulkhead({ maxConcurrent: 1 });
    expect(await freed((fn) => policy.execute(fn))).toBe('resolved');
    expect(await freed((fn) => retry(fn, delays, { bulkhead }))).toBe('rejected');
    expect(
      await freed((fn) => retry(() => retry(fn, { maxAttempts: 1 }, { bulkhead }), delays)),
    ).toBe('resolved');
  });
});

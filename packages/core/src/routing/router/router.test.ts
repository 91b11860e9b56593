import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import { createBudget } from '../../limits/budget.ts';
import { type VirtualClock, virtualClock } from '../../virtual-clock.ts';
import type { RoutingPolicyDocument } from '../routing-fields.ts';
import type { RouteAttempt } from './leg.ts';
import { isRouteError, type RouteError } from './route-error.ts';
import { createRouter, type RouteEvent } from './router.ts';
import type { RouterOptions } from './router-options.ts';
import { memorySticky, type StickyStore } from './sticky-store.ts';

type Step = string | number | Error | Promise<unknown> | ((attempt: RouteAttempt) => unknown);

const exact = { strategy: 'fixed', base_ms: 100, jitter: false } as const;

/** Providers that follow scripts: 'ok' answers, a number fails with that status, a word with that code. */
function setUp(
  policy: Partial<RoutingPolicyDocument>,
  scripts: Record<string, Step[]>,
  options: Partial<RouterOptions<never>> = {},
  clock: VirtualClock = virtualClock(),
) {
  const calls: string[] = [];
  const attempts: RouteAttempt[] = [];
  const functions = Object.fromEntries(
    Object.entries(scripts).map(([name, steps]) => {
      let turn = 0;
      return [
        name,
        (input: string, attempt: RouteAttempt) => {
          calls.push(`${name} at ${clock.monotonic()}`);
          attempts.push(attempt);
          const step = steps[Math.min(turn++, steps.length - 1)];
          if (typeof step === 'function') return step(attempt);
          if (step === 'ok') return Promise.resolve(`${name}: ${input}`);
          return step instanceof Promise ? step : Promise.reject(errorOf(step));
        },
      ];
    }),
  );
  const names = Object.keys(scripts);
  const router = createRouter(
    {
      version: '1.0',
      providers: names.map((name, i) => ({ name, weight: i === 0 ? 100 : 0 })),
      ...policy,
    },
    { random: () => 0.5, ...(options as object), providers: functions, clock },
  );
  return { router, calls, clock, attempts };
}

function errorOf(step: unknown): Error {
  if (step instanceof Error) return step;
  const error = new Error(`failed with ${String(step)}`);
  return Object.assign(error, typeof step === 'number' ? { status: step } : { code: step });
}

const never = new Promise<never>(() => {});
const toB = { when: {}, to: 'b', retry: 2, backoff: exact };

async function rejection(thrown: unknown): Promise<never> {
  throw thrown;
}

async function failureOf(call: Promise<unknown>): Promise<RouteError> {
  const error: unknown = await call.then(
    () => new Error('it worked'),
    (reason: unknown) => reason,
  );
  if (!isRouteError(error)) throw error;
  return error;
}

describe('a router', () => {
  it('returns the value with its explanation and the attempt', async () => {
    const { router } = setUp({}, { a: ['ok'] });
    expect(await router.call('x', { request_id: 'r1' }, { seed: 4 })).toEqual({
      value: 'a: x',
      provider: 'a',
      explanation: expect.objectContaining({ reason: 'weighted', provider_id: 'a' }),
      attempts: [
        {
          provider: 'a',
          attempt: 1,
          startedAtMs: 0,
          durationMs: 0,
          waitedMs: 0,
          outcome: 'ok',
          explanation: expect.objectContaining({ reason: 'weighted' }),
        },
      ],
      requestId: 'r1',
      seed: 4,
    });
  });

  it('waits, retries, falls back, and tells every attempt with its times', async () => {
    const { router, calls, clock } = setUp(
      { fallbacks: [toB] },
      { a: [503, 'ECONNRESET'], b: ['ok'] },
    );
    const call = router.call('x');
    await clock.run();
    const { value, provider, attempts } = await call;
    expect(value).toBe('b: x');
    expect(provider).toBe('b');
    expect(calls).toEqual(['a at 0', 'a at 100', 'a at 200', 'b at 200']);
    expect(
      attempts.map(({ provider: name, status, startedAtMs, waitedMs, explanation }) =>
        [name, status, startedAtMs, waitedMs, explanation.reason].join(' '),
      ),
    ).toEqual([
      'a 503 0 0 weighted',
      'a connection_error 100 100 retry',
      'a connection_error 200 100 retry',
      'b  200 0 fallback',
    ]);
  });

  it('ends with NO_FALLBACK, the last error as the cause', async () => {
    const { router } = setUp(
      { fallbacks: [{ when: { status: '5xx' }, to: 'b' }] },
      { a: [404], b: ['ok'] },
    );
    const error = await failureOf(router.call('x'));
    expect(error).toMatchObject({
      code: 'NO_FALLBACK',
      cause: { status: 404 },
      attempts: [{ provider: 'a', status: '404', outcome: 'failed' }],
      explanation: { reason: 'no_fallback' },
    });
    expect(error.message).toBe(
      'No rule leads to another provider (NO_FALLBACK, 1 attempt). The last failure was 404 of a.',
    );
  });

  it('takes a provider that throws at once, and one that returns no promise', async () => {
    const { router } = setUp(
      { fallbacks: [{ ...toB, retry: 0 }] },
      {
        a: [
          () => {
            throw errorOf(500);
          },
        ],
        b: [() => 'plain'],
      },
    );
    expect(await router.call('x')).toMatchObject({ value: 'plain', provider: 'b' });
  });

  it('gives a provider its name, the number of the attempt and one idempotency key', async () => {
    const { router, attempts, clock } = setUp(
      { fallbacks: [toB], timeout_ms: 50 },
      { a: [500], b: ['ok'] },
    );
    const call = router.call('x', { request_id: 'order-7' });
    await clock.run();
    await call;
    expect(
      attempts.map(({ provider, attempt, maxAttempts }) => `${provider} ${attempt}/${maxAttempts}`),
    ).toEqual(['a 1/20', 'a 2/20', 'a 3/20', 'b 4/20']);
    expect(new Set(attempts.map(({ idempotencyKey }) => idempotencyKey))).toEqual(
      new Set(['order-7']),
    );
  });

  it('gives requests without an id one of their own', async () => {
    const { router } = setUp({}, { a: ['ok'] });
    const ids = [await router.call('x'), await router.call('x')].map(({ requestId }) => requestId);
    expect(new Set(ids).size).toBe(2);
  });

  it('makes the same choices again with the same seed', async () => {
    const providers = ['a', 'b', 'c'].map((name) => ({ name, weight: 30 }));
    const ok = { a: ['ok'], b: ['ok'], c: ['ok'] };
    const picks = async (value: number) => {
      const { router } = setUp({ providers }, ok, { random: () => value });
      const results = await Promise.all(Array.from({ length: 30 }, () => router.call('x')));
      return results.map(({ provider }) => provider).join('');
    };
    expect(await picks(0.25)).toBe(await picks(0.25));
    expect(await picks(0.25)).not.toBe(await picks(0.75));
  });

  it('goes on from the failure that its context tells of', async () => {
    const { router, calls } = setUp(
      { fallbacks: [{ ...toB, retry: 0 }] },
      { a: ['ok'], b: ['ok'] },
    );
    await router.call('x', { current_provider: 'a', status: 'timeout' });
    expect(calls).toEqual(['b at 0']);
  });
});

describe('statuses', () => {
  it.each([
    [Object.assign(new Error('x'), { status: 429 }), 'rate_limit'],
    [Object.assign(new Error('x'), { status: 503 }), '503'],
    [Object.assign(new Error('x'), { code: 'ETIMEDOUT' }), 'timeout'],
    [new DOMException('late', 'TimeoutError'), 'timeout'],
    [Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'connection_error'],
    [
      Object.assign(new TypeError('fetch failed'), {
        cause: Object.assign(new Error('x'), { code: 'ENOTFOUND' }),
      }),
      'connection_error',
    ],
    [new TypeError('Failed to fetch'), 'connection_error'],
    [Object.assign(new Error('x'), { code: 8, details: 'x' }), 'rate_limit'],
    [Object.assign(new Error('x'), { code: 13, details: 'x' }), '5xx'],
    [Object.assign(new Error('x'), { code: 3, details: 'x' }), '4xx'],
    [Object.assign(new Error('x'), { code: 4, details: 'x' }), 'timeout'],
    [new SyntaxError('bad JSON'), 'error'],
    ['a text', 'error'],
    [undefined, 'error'],
  ])('%s is %s', async (thrown, status) => {
    const { router } = setUp({}, { a: [() => rejection(thrown)] });
    expect((await failureOf(router.call('x'))).attempts[0]?.status).toBe(status);
  });

  it('are the words of statusOf where it has some, and Redrive says its own where it throws', async () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const statusOf = (error: unknown) => {
      const { message } = error as Error;
      if (message.includes('500')) throw new Error('a bug');
      return message.includes('402') ? 'no_money' : undefined;
    };
    for (const [step, status] of [
      [402, 'no_money'],
      [403, '403'],
      [500, '500'],
    ] as const) {
      const { router } = setUp({}, { a: [step] }, { statusOf });
      expect((await failureOf(router.call('x'))).attempts[0]?.status).toBe(status);
    }
    expect(report).toHaveBeenCalledTimes(1);
    report.mockRestore();
  });

  it('may be those of a value that is refused, which is disposed of or handed back at the end', async () => {
    const disposed: string[] = [];
    const response = (name: string, status: number) => ({
      name,
      status,
      headers: {},
      [Symbol.dispose]: () => disposed.push(name),
    });
    const { router, clock } = setUp(
      { fallbacks: [{ ...toB, retry: 1 }] },
      {
        a: [() => response('one', 503), () => response('two', 500)],
        b: [() => response('three', 502)],
      },
      {
        refuse: (value: { status: number }) => (value.status === 200 ? undefined : value.status),
      },
    );
    const call = failureOf(router.call('x'));
    await clock.run();
    const error = await call;
    expect(error.attempts.map(({ status }) => status)).toEqual(['503', '500', '502']);
    expect(error.result).toMatchObject({ name: 'three' });
    expect(disposed).toEqual(['one', 'two']);
  });
});

describe('time', () => {
  it('abandons a provider that hangs, aborts its signal, and ignores its late result', async () => {
    const disposed = vi.fn();
    let answer: (value: unknown) => void = () => undefined;
    const late = new Promise((resolve) => {
      answer = resolve;
    });
    const { router, attempts, clock } = setUp(
      { fallbacks: [{ ...toB, when: { status: 'timeout' }, retry: 0 }], timeout_ms: 1000 },
      { a: [late], b: ['ok'] },
    );
    const call = router.call('x');
    const { signal } = attempts[0]!;
    expect(attempts[0]?.remainingMs).toBe(1000);
    await clock.advance(999);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(await call).toMatchObject({ provider: 'b' });
    expect(signal.reason).toMatchObject({
      name: 'TimeoutError',
      message: 'a took longer than 1000 ms.',
    });
    answer({ [Symbol.dispose]: disposed });
    await clock.advance(0);
    expect(disposed).toHaveBeenCalledTimes(1);
    expect(clock.pending).toBe(0);
  });

  it('honours Retry-After as the floor of the wait', async () => {
    const limited = Object.assign(errorOf(429), { headers: { 'retry-after': '2' } });
    const { router, calls, clock } = setUp({ fallbacks: [toB] }, { a: [limited, 'ok'], b: ['ok'] });
    const call = router.call('x');
    await clock.run();
    expect(await call).toMatchObject({ provider: 'a' });
    const [, second] = calls.map((each) => Number(each.split(' at ')[1]));
    expect(second).toBeGreaterThanOrEqual(2000);
    expect(second).toBeLessThanOrEqual(2200);
  });

  it('does not wait for a provider that asks for too long', async () => {
    const limited = (ms: number) => Object.assign(errorOf(503), { retryAfterMs: ms });
    const { router, calls } = setUp({ fallbacks: [toB] }, { a: [limited(60_001)], b: ['ok'] });
    expect(await router.call('x')).toMatchObject({ provider: 'b' });
    expect(calls).toEqual(['a at 0', 'b at 0']);
    const alone = setUp(
      { fallbacks: [{ ...toB, to: 'a' }] },
      { a: [limited(5000), limited(5001)] },
      { maxRetryAfter: '5s' },
    );
    const call = failureOf(alone.router.call('x'));
    await alone.clock.run();
    const error = await call;
    expect(error.code).toBe('RETRY_AFTER_TOO_LONG');
    expect(error.attempts).toHaveLength(2);
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(5001);
  });

  it('forgets the Retry-After of an earlier failure', async () => {
    const limited = Object.assign(errorOf(503), { retryAfterMs: 2000 });
    const { router, clock } = setUp({ fallbacks: [toB] }, { a: [limited, 503, 'ok'], b: ['ok'] });
    const call = router.call('x');
    await clock.run();
    const { attempts } = await call;
    expect(attempts[2]?.waitedMs).toBe(100);
  });

  it('ends at the deadline, in an attempt', async () => {
    const { router, attempts, clock } = setUp(
      { fallbacks: [toB] },
      { a: [never], b: ['ok'] },
      { deadline: '500ms' },
    );
    const call = failureOf(router.call('x'));
    await clock.advance(500);
    expect(await call).toMatchObject({ code: 'DEADLINE', attempts: [{ status: 'timeout' }] });
    expect(attempts[0]?.signal.aborted).toBe(true);
  });

  it('ends at the deadline also where the timer fires a moment early', async () => {
    const clock = virtualClock();
    const early: VirtualClock = {
      ...clock,
      setTimer: (callback, ms) => clock.setTimer(callback, ms - 1),
    };
    const { router } = setUp(
      { fallbacks: [{ ...toB, retry: 0 }] },
      { a: [never], b: ['ok'] },
      { deadline: '500ms' },
      early,
    );
    const call = failureOf(router.call('x'));
    await clock.advance(499);
    expect(await call).toMatchObject({ code: 'DEADLINE', attempts: [{ provider: 'a' }] });
  });

  it('goes to the fallback where the wait would reach the deadline, and ends where there is none', async () => {
    const { router, calls } = setUp(
      { fallbacks: [toB] },
      { a: [503], b: ['ok'] },
      { deadline: 100 },
    );
    expect(await router.call('x')).toMatchObject({ provider: 'b' });
    expect(calls).toEqual(['a at 0', 'b at 0']);
    const alone = setUp({ fallbacks: [{ ...toB, to: 'a' }] }, { a: [503] }, { deadline: 100 });
    expect(await failureOf(alone.router.call('x'))).toMatchObject({
      code: 'DEADLINE',
      retryAfterMs: 100,
    });
  });

  it('makes at most maxAttempts attempts', async () => {
    const { router, clock, calls } = setUp(
      { fallbacks: [{ ...toB, retry: 10 }] },
      { a: [503], b: ['ok'] },
      { maxAttempts: 3 },
    );
    const call = failureOf(router.call('x'));
    await clock.run();
    expect(await call).toMatchObject({ code: 'EXHAUSTED', attempts: [{}, {}, {}] });
    expect(calls).toHaveLength(3);
    // No wait for an attempt that is not made.
    expect(clock.monotonic()).toBe(200);
  });

  it('skips the wait where another provider may be tried at once, by option', async () => {
    const { router, calls, clock } = setUp(
      { fallbacks: [toB] },
      { a: [503], b: [500, 'ok'] },
      { skipWaits: true },
    );
    const call = router.call('x');
    await clock.run();
    const { attempts } = await call;
    // From b there is no fallback, so its retry is waited for.
    expect(calls).toEqual(['a at 0', 'b at 0', 'b at 100']);
    expect(attempts[1]?.explanation.steps).toEqual([
      '3. Applied fallback rule without further retries, 0/2 retry attempts used',
    ]);
  });

  it('ends at once when the caller aborts: before, in an attempt, in a wait', async () => {
    const aborted = { code: 'ABORTED', cause: 'enough' };
    const { router, attempts, calls, clock } = setUp(
      { fallbacks: [toB] },
      { a: [never, 503], b: ['ok'] },
    );
    expect(
      await failureOf(router.call('x', {}, { signal: AbortSignal.abort('enough') })),
    ).toMatchObject(aborted);
    expect(calls).toEqual([]);
    const inAttempt = new AbortController();
    const call = failureOf(router.call('x', {}, { signal: inAttempt.signal }));
    await clock.advance(0);
    inAttempt.abort('enough');
    expect(await call).toMatchObject({ ...aborted, attempts: [{ outcome: 'abandoned' }] });
    expect(attempts[0]?.signal.reason).toBe('enough');
    const inWait = new AbortController();
    const waiting = failureOf(router.call('x', {}, { signal: inWait.signal }));
    await clock.advance(50);
    inWait.abort('enough');
    expect(await waiting).toMatchObject({ ...aborted, attempts: [{ status: '503' }] });
    expect(clock.pending).toBe(0);
  }, 10_000);
});

describe('the breaker and the pauses', () => {
  const breaker = {
    enabled: true,
    failure_threshold: 2,
    success_threshold: 1,
    timeout_ms: 1000,
    half_open_max_calls: 1,
  };
  const once = { ...toB, retry: 0 };

  it('opens after failures in a row, sends calls elsewhere, and lets one probe through', async () => {
    const { router, calls, clock } = setUp(
      {
        providers: [
          { name: 'a', weight: 99 },
          { name: 'b', weight: 1 },
        ],
        fallbacks: [once],
        circuit_breaker: breaker,
      },
      { a: [500, 'ETIMEDOUT', 'ok'], b: ['ok'] },
    );
    await router.call('x');
    await router.call('x');
    expect(router.health()).toMatchObject({
      a: { state: 'open', outUntilMs: clock.now() + 1000, calls: 2, failures: 2, failureRate: 1 },
      b: { state: 'closed', outUntilMs: undefined, failureRate: 0 },
    });
    calls.length = 0;
    const { explanation } = await router.call('x');
    expect(calls).toEqual(['b at 0']);
    expect(explanation.steps).toEqual([
      '2. Applied weighted distribution: 1 providers, total weight: 1',
    ]);
    await clock.advance(1000);
    expect(router.health()['a']?.state).toBe('half_open');
    await router.call('x');
    expect(router.health()['a']?.state).toBe('closed');
  });

  it('does not retry a provider whose breaker has just opened', async () => {
    const { router } = setUp(
      { fallbacks: [toB], circuit_breaker: { ...breaker, failure_threshold: 1 } },
      { a: [500], b: ['ok'] },
    );
    const { attempts } = await router.call('x');
    expect(attempts.map(({ explanation }) => explanation.reason)).toEqual([
      'weighted',
      'circuit_breaker_fallback',
    ]);
  });

  it('leaves the probe alone while it runs: other calls go elsewhere', async () => {
    let answer: (value: unknown) => void = () => undefined;
    const probe = new Promise((resolve) => {
      answer = resolve;
    });
    const providers = [
      { name: 'a', weight: 99 },
      { name: 'b', weight: 1 },
    ];
    const { router, clock } = setUp(
      { providers, fallbacks: [once], circuit_breaker: { ...breaker, failure_threshold: 1 } },
      { a: [500, probe], b: ['ok'] },
    );
    await router.call('x');
    await clock.advance(1000);
    const first = router.call('x');
    expect(await router.call('x')).toMatchObject({ provider: 'b' });
    answer('back');
    expect(await first).toMatchObject({ provider: 'a', value: 'back' });
  });

  it('counts neither 4xx nor rate limits nor what the caller aborts', async () => {
    const { router, clock } = setUp(
      { circuit_breaker: { ...breaker, failure_threshold: 1 } },
      { a: [400, 404, 429, 'X', new SyntaxError('x'), never] },
    );
    for (let i = 0; i < 5; i++) await failureOf(router.call('x'));
    const controller = new AbortController();
    const call = failureOf(router.call('x', {}, { signal: controller.signal }));
    await clock.advance(0);
    controller.abort();
    await call;
    expect(router.health()['a']).toMatchObject({ state: 'closed', calls: 5, inFlight: 0 });
  });

  it('does not take a 4xx for a success either', async () => {
    const { router } = setUp({ circuit_breaker: breaker }, { a: [500, 404, 429, 500] });
    for (let i = 0; i < 4; i++) await failureOf(router.call('x'));
    expect(router.health()['a']?.state).toBe('open');
  });

  it('says when a provider may be back where all are out', async () => {
    const { router, clock } = setUp(
      { circuit_breaker: { ...breaker, failure_threshold: 1 } },
      { a: [500] },
    );
    await failureOf(router.call('x'));
    await clock.advance(400);
    expect(await failureOf(router.call('x'))).toMatchObject({
      code: 'NO_PROVIDERS',
      retryAfterMs: 600,
      attempts: [],
    });
  });

  it('goes to the fallback of a provider that is out where no other has a weight', async () => {
    const { router, calls } = setUp(
      {
        fallbacks: [{ when: { status: '5xx' }, to: 'b', retry: 3 }],
        circuit_breaker: { ...breaker, failure_threshold: 1 },
      },
      { a: [500], b: ['ok'] },
    );
    await router.call('x');
    calls.length = 0;
    const { explanation } = await router.call('x');
    expect(calls).toEqual(['b at 0']);
    expect(explanation).toMatchObject({ reason: 'circuit_breaker_fallback', priority: 20 });
    const limited = Object.assign(errorOf(429), { retryAfterMs: 5000 });
    const paused = setUp(
      { fallbacks: [{ when: { status: 'rate_limit' }, to: 'b', retry: 0 }] },
      { a: [limited], b: ['ok'] },
    );
    await paused.router.call('x');
    await paused.router.call('x');
    expect(paused.calls).toEqual(['a at 0', 'b at 0', 'b at 0']);
    const nowhere = await failureOf(paused.router.call('x', { open_providers: ['b'] }));
    expect(nowhere).toMatchObject({ code: 'NO_PROVIDERS', retryAfterMs: 5000 });
  });

  it('pauses a provider that asks for it with a 429, for others only, and of two pauses the later end counts', async () => {
    const limited = (seconds: number) =>
      Object.assign(errorOf(429), { headers: { 'retry-after': String(seconds) } });
    const { router, calls, clock } = setUp(
      {
        providers: [
          { name: 'a', weight: 99 },
          { name: 'b', weight: 1 },
        ],
        fallbacks: [{ ...toB, retry: 0 }],
        circuit_breaker: breaker,
      },
      { a: [limited(60), limited(5), 'ok'], b: ['ok'] },
    );
    await Promise.all([router.call('x'), router.call('x')]);
    expect(router.health()['a']).toMatchObject({
      state: 'cooling',
      outUntilMs: clock.now() + 60_000,
    });
    calls.length = 0;
    await router.call('x');
    await clock.advance('59s');
    await router.call('x');
    expect(calls).toEqual(['b at 0', 'b at 59000']);
    await clock.advance('1s');
    await router.call('x');
    expect(calls[2]).toBe('a at 60000');
    expect(router.health()['a']?.state).toBe('closed');
  });

  it('cuts a pause to maxCooldown', async () => {
    const limited = Object.assign(errorOf(429), { retryAfterMs: 1e12 });
    const { router, clock } = setUp({}, { a: [limited] }, { maxCooldown: '1m' });
    await failureOf(router.call('x'));
    expect(router.health()['a']?.outUntilMs).toBe(clock.now() + 60_000);
  });

  it('passes over a fallback whose breaker refuses', async () => {
    const fallbacks = ['b', 'c'].map((to) => ({ when: {}, to, retry: 0 }));
    const { router, clock, calls } = setUp(
      { fallbacks, circuit_breaker: { ...breaker, failure_threshold: 1 } },
      { a: [400], b: [500, never], c: ['ok'] },
    );
    await router.call('x');
    await clock.advance(1000);
    // The probe of b hangs, so its breaker admits nobody else, though it is not open.
    void router.call('x');
    await clock.advance(0);
    calls.length = 0;
    expect(await router.call('x')).toMatchObject({ provider: 'c' });
    expect(calls.map((each) => each[0])).toEqual(['a', 'c']);
  });

  it('has latencies of the last calls', async () => {
    const clock = virtualClock();
    const slow = () =>
      new Promise((resolve) => {
        clock.setTimer(() => resolve('ok'), 40);
      });
    const { router } = setUp({}, { a: [slow, 'ok'] }, {}, clock);
    expect(router.health()['a']).toMatchObject({ calls: 0, failureRate: 0, latencyMs: undefined });
    const call = router.call('x');
    await clock.advance(0);
    expect(router.health()['a']?.inFlight).toBe(1);
    await clock.run();
    await call;
    for (let i = 0; i < 9; i++) await router.call('x');
    expect(router.health()['a']).toMatchObject({
      calls: 10,
      inFlight: 0,
      latencyMs: { p50: 0, p95: 40, p99: 40 },
    });
  });
});

describe('the budget', () => {
  it('lets a call go to the fallback at once when it is used up, or ends it', async () => {
    const budget = createBudget({ capacity: 5, cost: 5, timeoutCost: 5 });
    const { router, clock, calls } = setUp(
      { fallbacks: [toB] },
      { a: [503], b: ['ok'] },
      { budget },
    );
    const call = router.call('x');
    await clock.run();
    await call;
    expect(calls).toEqual(['a at 0', 'a at 100', 'b at 100']);
    expect(budget.tokens).toBe(1);
    const alone = setUp({ fallbacks: [{ ...toB, to: 'a' }] }, { a: [503] }, { budget });
    expect(await failureOf(alone.router.call('x'))).toMatchObject({
      code: 'BUDGET',
      attempts: [{}],
    });
  });
});

describe('hedging', () => {
  const fallbacks = [{ when: { status: 'timeout' }, to: 'b', retry: 2 }];

  it('starts the fallback beside a slow attempt; the first answer wins and the loser is aborted', async () => {
    const { router, calls, attempts, clock } = setUp(
      { fallbacks },
      { a: [never], b: ['ok'] },
      { hedgeAfter: 200 },
    );
    const call = router.call('x');
    await clock.run();
    const result = await call;
    expect(result).toMatchObject({ provider: 'b', explanation: { reason: 'fallback' } });
    expect(calls).toEqual(['a at 0', 'b at 200']);
    expect(attempts[0]?.signal.aborted).toBe(true);
    expect(attempts[1]?.signal.aborted).toBe(false);
    expect(result.attempts.map(({ outcome, hedge }) => `${outcome} ${hedge}`)).toEqual([
      'abandoned undefined',
      'ok true',
    ]);
    expect(router.health()['a']).toMatchObject({ inFlight: 0, calls: 0 });
  });

  it('keeps the first attempt where it answers first, and starts none where it is quick', async () => {
    const clock = virtualClock();
    const after = (ms: number, value: unknown) => () =>
      new Promise((resolve) => {
        clock.setTimer(() => resolve(value), ms);
      });
    const disposed = vi.fn();
    const { router, calls, attempts } = setUp(
      { fallbacks },
      {
        a: [after(300, 'first'), after(10, 'quick')],
        b: [after(400, { [Symbol.dispose]: disposed })],
      },
      { hedgeAfter: 200 },
      clock,
    );
    const call = router.call('x');
    await clock.run();
    expect(await call).toMatchObject({ value: 'first', provider: 'a' });
    expect(attempts[1]?.signal.aborted).toBe(true);
    expect(disposed).toHaveBeenCalledTimes(1);
    const quick = router.call('x');
    await clock.run();
    await quick;
    expect(calls).toHaveLength(3);
  });

  it('does not count the loser that had its answer ready when it was abandoned', async () => {
    const disposed = vi.fn();
    const events: string[] = [];
    const lateValue = { [Symbol.dispose]: disposed };
    const { router, clock } = setUp(
      { fallbacks },
      {
        a: [
          ({ signal }) =>
            new Promise((resolve) => {
              signal.addEventListener('abort', () => resolve(lateValue));
            }),
        ],
        b: ['ok'],
      },
      {
        hedgeAfter: 200,
        on: (event) => {
          if (event.type === 'success') events.push(event.provider);
        },
      },
    );
    const call = router.call('x');
    await clock.run();
    expect(await call).toMatchObject({
      provider: 'b',
      attempts: [{ outcome: 'abandoned' }, { outcome: 'ok' }],
    });
    expect(events).toEqual(['b']);
    expect(disposed).toHaveBeenCalledTimes(1);
  });

  it('waits for the other one where one fails, and goes on from the hedge where both do', async () => {
    const clock = virtualClock();
    const fails = (ms: number, status: number) => () =>
      new Promise((_, reject) => {
        clock.setTimer(() => reject(errorOf(status)), ms);
      });
    const { router, calls } = setUp(
      { fallbacks: [...fallbacks, { when: { status: '5xx' }, to: 'c', retry: 0 }] },
      { a: [fails(300, 500)], b: [fails(200, 502)], c: ['ok'] },
      { hedgeAfter: 200 },
      clock,
    );
    const call = router.call('x');
    await clock.run();
    expect(await call).toMatchObject({
      provider: 'c',
      attempts: [{ status: '500' }, { status: '502' }, {}],
    });
    expect(calls).toEqual(['a at 0', 'b at 200', 'c at 400']);
  });

  it('disposes once of every value that was refused, but of the last', async () => {
    const clock = virtualClock();
    const disposed: string[] = [];
    const refusedAfter = (ms: number, name: string) => () =>
      new Promise((resolve) => {
        const value = { name, [Symbol.dispose]: () => disposed.push(name) };
        clock.setTimer(() => resolve(value), ms);
      });
    const { router } = setUp(
      { fallbacks: [...fallbacks, { when: {}, to: 'c', retry: 0 }] },
      {
        a: [refusedAfter(300, 'a')],
        b: [refusedAfter(200, 'b')],
        c: [refusedAfter(10, 'c')],
      },
      { hedgeAfter: 200, refuse: () => 'odd' },
      clock,
    );
    const call = failureOf(router.call('x'));
    await clock.run();
    expect((await call).result).toMatchObject({ name: 'c' });
    expect(disposed.toSorted()).toEqual(['a', 'b']);
  });

  it('starts nothing where a timeout leads nowhere, and nothing after an abort', async () => {
    const clock = virtualClock();
    const slow = () =>
      new Promise((resolve) => {
        clock.setTimer(() => resolve('ok'), 500);
      });
    const { router, calls } = setUp({}, { a: [slow] }, { hedgeAfter: 200 }, clock);
    const call = router.call('x');
    await clock.run();
    await call;
    expect(calls).toHaveLength(1);
    const other = setUp({ fallbacks }, { a: [never], b: [never] }, { hedgeAfter: 200 });
    const controller = new AbortController();
    const aborted = failureOf(other.router.call('x', {}, { signal: controller.signal }));
    await other.clock.advance(300);
    controller.abort();
    expect(await aborted).toMatchObject({
      code: 'ABORTED',
      attempts: [{ outcome: 'abandoned' }, { outcome: 'abandoned' }],
    });
  });
});

describe('sticky sessions', () => {
  const providers = ['a', 'b', 'c'].map((name) => ({ name, weight: 30 }));
  const sticky = { enabled: true, session_key: 'user', ttl: '10m' };
  const ok = { a: ['ok'], b: ['ok'], c: ['ok'] };

  it('lead a session to the provider that answered it last, until they expire', async () => {
    const { router, clock } = setUp({ providers, sticky }, ok);
    const { provider } = await router.call('x', { user: 'u1' });
    const reasons = new Set<string>();
    for (let i = 0; i < 20; i++) {
      await clock.advance('9m');
      const again = await router.call('x', { user: 'u1' });
      expect(again.provider).toBe(provider);
      reasons.add(again.explanation.reason);
    }
    expect(reasons).toEqual(new Set(['sticky']));
    await clock.advance('10m');
    expect((await router.call('x', { user: 'u1' })).explanation.reason).toBe('weighted');
  });

  it('are apart for other users and tenants, and not made without a key', async () => {
    const { router } = setUp({ providers, sticky }, ok);
    await router.call('x', { user: 'u1', tenant_id: 't1' });
    for (const context of [
      { user: 'u2', tenant_id: 't1' },
      { user: 'u1', tenant_id: 't2' },
      { user: 'u1' },
      {},
      {},
    ]) {
      expect((await router.call('x', context)).explanation.reason).toBe('weighted');
    }
    expect((await router.call('x', { user: 'u1', tenant_id: 't1' })).explanation.reason).toBe(
      'sticky',
    );
  });

  it('move to the provider that answered after a fallback, and go where nobody did', async () => {
    const store = memorySticky();
    const set = vi.spyOn(store, 'set');
    const drop = vi.spyOn(store, 'delete');
    const { router, clock } = setUp(
      { sticky, fallbacks: [{ ...toB, retry: 0 }] },
      { a: ['ok', 500, 500], b: ['ok', 500] },
      { sticky: store },
      virtualClock(Date.now()),
    );
    await router.call('x', { user: 'u' });
    await router.call('x', { user: 'u' });
    expect(set.mock.calls.map(([, { provider }]) => provider)).toEqual(['a', 'b']);
    expect(set.mock.calls[0]?.[1].expires_at_ms).toBe(clock.now() + 600_000);
    await failureOf(router.call('x', { user: 'u' }));
    expect(drop).toHaveBeenCalledTimes(1);
  });

  it('cost a call nothing but themselves where the store fails, hangs or answers nonsense', async () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const fail = () => {
      throw new Error('down');
    };
    const stores: StickyStore[] = [
      { get: fail, set: fail, delete: fail },
      {
        get: () => Promise.reject(new Error('down')),
        set: () => Promise.reject(new Error('down')),
        delete: fail,
      },
      { get: () => never, set: () => never, delete: fail },
      { get: () => ({ provider: 5 }) as never, set: () => undefined, delete: fail },
      { get: () => Promise.resolve(null), set: () => undefined, delete: fail },
    ];
    for (const store of stores) {
      const { router, clock } = setUp({ providers, sticky }, ok, { sticky: store });
      const call = router.call('x', { user: 'u' });
      await clock.run();
      expect((await call).explanation.reason).toBe('weighted');
    }
    expect(report).toHaveBeenCalledTimes(4);
    report.mockRestore();
  });

  it('in memory are bounded, the one used least recently goes first, and expired ones are swept', () => {
    let now = 0;
    const store = memorySticky({ maxSessions: 3, now: () => now });
    const session = (until: number) => ({ provider: 'a', expires_at_ms: until });
    for (const key of ['1', '2', '3']) void store.set(key, session(100));
    void store.get('1');
    void store.set('4', session(50));
    expect(['1', '2', '3', '4'].map((key) => store.get(key) !== undefined)).toEqual([
      true,
      false,
      true,
      true,
    ]);
    now = 50;
    expect(store.get('4')).toBeUndefined();
    void store.delete('1');
    expect(store.get('1')).toBeUndefined();
    expect(store.get('3')).toEqual(session(100));
    now = 200;
    void store.set('5', session(300));
    now = 0;
    expect(store.get('3')).toBeUndefined();
  });
});

describe('events', () => {
  it('tell of decisions, attempts, failures and the end; a listener that throws changes nothing', async () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const events: RouteEvent[] = [];
    const on = (event: RouteEvent) => {
      events.push(event);
      throw new Error('a bug of the listener');
    };
    const { router } = setUp(
      { fallbacks: [{ ...toB, retry: 0 }] },
      { a: [500], b: ['ok', 400] },
      { on },
    );
    await router.call('x', { request_id: 'r' });
    expect(events.map(({ type }) => type)).toEqual([
      'decision',
      'attempt',
      'failure',
      'decision',
      'attempt',
      'success',
    ]);
    expect(new Set(events.map(({ requestId }) => requestId))).toEqual(new Set(['r']));
    events.length = 0;
    await failureOf(router.call('x'));
    expect(events.at(-1)).toMatchObject({ type: 'giveUp', error: { code: 'NO_FALLBACK' } });
    report.mockRestore();
  });
});

describe('options that are wrong', () => {
  it('are listed all at once', () => {
    const policy = { version: '1.0', weights: { primary: 100 } };
    const options = {
      providers: { primry: () => 1 },
      deadline: 'soon',
      maxAttempt: 3,
      on: 5,
      sticky: {},
      clock: null,
      stream: { idleTimeout: 0, isEnd: 'x' },
    };
    expect(() => createRouter(policy, options as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        faults: [
          expect.objectContaining({ path: 'deadline', code: 'INVALID_DURATION' }),
          expect.objectContaining({
            path: 'maxAttempt',
            code: 'UNKNOWN_FIELD',
            message: expect.stringContaining("'maxAttempts'"),
          }),
          expect.objectContaining({ path: 'stream.idleTimeout' }),
          expect.objectContaining({ path: 'on' }),
          expect.objectContaining({ path: 'stream.isEnd' }),
          expect.objectContaining({ path: 'sticky' }),
          expect.objectContaining({ path: 'clock' }),
          expect.objectContaining({ path: 'providers.primary', code: 'NOT_A_FUNCTION' }),
          expect.objectContaining({
            path: 'providers.primry',
            code: 'UNKNOWN_PROVIDER',
            message: expect.stringContaining("Did you mean 'primary'?"),
          }),
        ],
      }),
    );
    expect(() => createRouter(policy, undefined as never)).toThrow('providers.primary');
  });

  it('of a call are refused with a code', async () => {
    const { router } = setUp({}, { a: ['ok'] });
    await expect(router.call('x', null as never)).rejects.toMatchObject({
      code: 'INVALID_CONTEXT',
    });
    await expect(router.call('x', { open_providers: 'a' as never })).rejects.toMatchObject({
      code: 'INVALID_CONTEXT',
    });
    await expect(router.call('x', { request_id: {} as never })).rejects.toMatchObject({
      code: 'INVALID_CONTEXT',
    });
    await expect(router.call('x', { current_provider: 'z' })).rejects.toMatchObject({
      code: 'UNKNOWN_PROVIDER',
    });
  });

  it('respects the open providers that a caller names', async () => {
    const { router } = setUp(
      {
        providers: [
          { name: 'a', weight: 99 },
          { name: 'b', weight: 1 },
        ],
      },
      { a: ['ok'], b: ['ok'] },
    );
    expect(await router.call('x', { open_providers: ['a'] })).toMatchObject({ provider: 'b' });
    expect(await failureOf(router.call('x', { open_providers: ['a', 'b'] }))).toMatchObject({
      code: 'NO_PROVIDERS',
    });
  });
});

describe('the types', () => {
  it('of input and value come from the providers', () => {
    const router = createRouter(
      { version: '1.0', weights: { a: 50, b: 50 } },
      {
        providers: {
          a: (input: { id: number }) => Promise.resolve(input.id),
          b: (input: { name: string }, { signal, provider }) =>
            `${input.name} ${provider} ${signal.aborted}`,
        },
        refuse: (value) => (typeof value === 'number' ? undefined : 500),
      },
    );
    expectTypeOf(router.call).parameter(0).toEqualTypeOf<{ id: number } & { name: string }>();
    expectTypeOf<Awaited<ReturnType<typeof router.call>>['value']>().toEqualTypeOf<
      number | string
    >();
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBreaker } from './circuit/breaker.ts';
import { createBudget } from './limits/budget.ts';
import type { Clock } from './clock.ts';
import { decide } from './decide.ts';
import { isRetryError, type RetryError } from './errors.ts';
import { definePolicy } from './policy/policy.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryEvent } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const ms = (max: number) => fc.integer({ min: 0, max });
const limit = fc.option(fc.integer({ min: 1, max: 1500 }), { nil: undefined });

const policies = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 6 }),
  strategy: fc.constantFrom('exponential' as const, 'linear' as const, 'fixed' as const),
  base: ms(300),
  cap: ms(600),
  jitter: fc.constantFrom('none' as const, 'up' as const, 'full' as const, 'equal' as const),
  attemptTimeout: limit,
  deadline: limit,
  maxUncounted: fc.integer({ min: 0, max: 4 }),
  idempotent: fc.boolean(),
});

/** How one execution ends: after how long, and with what. */
const executions = fc.record({
  takesMs: fc.oneof(fc.constant(-1), ms(400)),
  ends: fc.constantFrom('ok', 'refused', 'transient', 'permanent', 'busy', 'uncounted'),
});

const worlds = fc.record({
  policy: policies,
  executions: fc.array(executions, { minLength: 12, maxLength: 12 }),
  /** Whether results are judged at all. */
  isPicky: fc.boolean(),
  abortAt: fc.option(ms(2000), { nil: undefined }),
  /** Between two steps of the call: so many microtasks after an execution began. */
  abortSoon: fc.option(
    fc.record({ execution: fc.nat({ max: 2 }), microtasks: fc.nat({ max: 15 }) }),
    { nil: undefined },
  ),
  budget: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  breaker: fc.option(
    fc.record({
      failures: fc.integer({ min: 1, max: 3 }),
      openFor: fc.integer({ min: 1, max: 500 }),
    }),
    { nil: undefined },
  ),
});

type World = typeof worlds extends fc.Arbitrary<infer W> ? W : never;

const errors: Record<string, object> = {
  transient: { code: 'ECONNRESET' },
  busy: { status: 429, retryAfterMs: 150 },
  uncounted: { code: 'SNOOZE' },
  permanent: { code: 'ENOENT' },
};

/** Plays one call to its end on the virtual clock, and writes down all that can be seen of it. */
async function play(world: World) {
  const clock = virtualClock();
  // Any moment but zero, which hides mistakes.
  await clock.advance(12_345);
  const sinceMs = () => clock.monotonic() - 12_345;
  const controller = new AbortController();
  const { signal } = controller;
  const events: { event: RetryEvent; atMs: number }[] = [];
  const starts: { attempt: Attempt; atMs: number; aborted: boolean; abortsItself: boolean }[] = [];
  const results: { disposed: number }[] = [];
  let [timers, listeners, running, mostRunning] = [0, 0, 0, 0];

  const watched: Clock = {
    now: clock.now,
    monotonic: clock.monotonic,
    setTimer(callback, delayMs) {
      timers += 1;
      const fired = () => {
        timers -= 1;
        callback();
      };
      return clock.setTimer(fired, delayMs);
    },
    clearTimer(timer) {
      timers -= 1;
      clock.clearTimer(timer);
    },
  };
  for (const [name, step] of [
    ['addEventListener', 1],
    ['removeEventListener', -1],
  ] as const) {
    const usual = signal[name].bind(signal) as (type: string, listener: unknown) => void;
    signal[name] = (type: string, listener: unknown) => {
      listeners += step;
      usual(type, listener);
    };
  }

  async function abortSoon(microtasks: number): Promise<void> {
    for (let i = 0; i < microtasks; i++) await Promise.resolve();
    controller.abort();
  }

  function work(attempt: Attempt): unknown {
    const { takesMs, ends } = world.executions[starts.length % 12] as World['executions'][number];
    const { execution, microtasks = 0 } = world.abortSoon ?? {};
    const isTheOne = execution === starts.length;
    const { aborted } = signal;
    if (isTheOne) void abortSoon(microtasks);
    const abortsItself = signal.aborted && !aborted;
    starts.push({ attempt, atMs: sinceMs(), aborted, abortsItself });
    const end = () => {
      if (ends in errors) throw Object.assign(new Error(ends), errors[ends]);
      const result = { ends, disposed: 0, [Symbol.dispose]: () => void (result.disposed += 1) };
      results.push(result);
      return result;
    };
    if (takesMs < 0) return end();
    running += 1;
    mostRunning = Math.max(mostRunning, running);
    attempt.signal.addEventListener('abort', () => (running -= 1));
    return new Promise((resolve, reject) => {
      clock.setTimer(() => {
        if (!attempt.signal.aborted) running -= 1;
        try {
          resolve(end());
        } catch (error) {
          reject(error);
        }
      }, takesMs);
    });
  }

  if (world.abortAt !== undefined) clock.setTimer(() => controller.abort(), world.abortAt);
  const call = retry(work as (attempt: Attempt) => Promise<{ ends: string }>, world.policy, {
    clock: watched,
    signal,
    on: (event) => events.push({ event, atMs: sinceMs() }),
    classify: (error) =>
      (error as Error).message === 'uncounted' ? { counted: false } : undefined,
    retryIf: world.isPicky ? { result: ({ ends }) => ends === 'refused' } : undefined,
    budget: world.budget ? createBudget({ capacity: world.budget, cost: 1 }) : undefined,
    breaker: world.breaker ? createBreaker({ clock, ...world.breaker }) : undefined,
  });

  let settledAtMs: number | undefined;
  let left: { timers: number; listeners: number } | undefined;
  const note = (settled: { result: unknown } | { error: unknown }) => {
    settledAtMs = sinceMs();
    left = { timers, listeners };
    return settled;
  };
  const outcome = call.then(
    (result) => note({ result }),
    (error: unknown) => note({ error }),
  );
  await clock.run();
  expect(settledAtMs).toBeDefined();
  return {
    events,
    starts,
    results,
    mostRunning,
    left,
    pending: clock.pending,
    settledAtMs: settledAtMs as unknown as number,
    outcome: await outcome,
  };
}

function check(law: (trace: Awaited<ReturnType<typeof play>>, world: World) => void) {
  return fc.assert(
    fc.asyncProperty(worlds, async (world) => {
      law(await play(world), world);
    }),
    { numRuns: 300 },
  );
}

describe('whatever happens, a call', () => {
  it('settles, and leaves no timer and no listener behind', () =>
    check(({ left, pending }) => {
      expect(left).toEqual({ timers: 0, listeners: 0 });
      expect(pending).toBe(0);
    }));

  it('never executes more often than the policy allows, and one attempt at a time', () =>
    check(({ starts, mostRunning }, { policy }) => {
      expect(starts.length).toBeLessThanOrEqual(policy.maxAttempts + policy.maxUncounted);
      expect(mostRunning).toBeLessThanOrEqual(1);
      let last = 0;
      for (const { attempt } of starts) {
        expect(attempt.attempt - last).toBeOneOf(last === 0 ? [1] : [0, 1]);
        expect(attempt.attempt).toBeLessThanOrEqual(policy.maxAttempts);
        last = attempt.attempt;
      }
    }));

  it('starts nothing after an abort, after the deadline, or after it settled', () =>
    check(({ starts, settledAtMs }, { policy, abortAt = Infinity }) => {
      const { deadline = Infinity } = policy;
      for (const { atMs, aborted } of starts) {
        expect(aborted).toBe(false);
        expect(atMs).toBeLessThan(deadline);
        expect(atMs).toBeLessThanOrEqual(abortAt);
        expect(atMs).toBeLessThanOrEqual(settledAtMs);
      }
      expect(settledAtMs).toBeLessThanOrEqual(Math.min(deadline, abortAt));
    }));

  it('waits exactly as long as was decided, and decides the same when asked again', () =>
    check(({ events, settledAtMs, outcome }, { policy }) => {
      const defined = definePolicy(policy);
      for (const [index, { event, atMs }] of events.entries()) {
        if (event.type === 'attempt' || event.type === 'success') continue;
        expect(decide(defined, event.facts)).toEqual(event.decision);
        if (event.type === 'giveUp') continue;
        expect(event.delayMs).toBe(event.decision.delayMs);
        const next = events[index + 1];
        const aborted = (outcome as { error?: RetryError }).error?.code === 'ABORTED';
        if (aborted && index === events.length - 2) expect(next?.atMs).toBe(settledAtMs);
        else expect(next?.atMs).toBe(atMs + event.delayMs);
      }
    }));

  it('tells of every attempt once, of every failure once, and of its end once', () =>
    check(({ events, starts, outcome }) => {
      const types = events.map(({ event }) => event.type);
      const count = (type: string) => types.filter((each) => each === type).length;
      expect(count('attempt')).toBe(starts.length);
      expect(count('success')).toBe('result' in outcome ? 1 : 0);
      expect(count('giveUp')).toBe('result' in outcome ? 0 : 1);
      expect(types.at(-1)).toBeOneOf(['success', 'giveUp']);
      if ('result' in outcome) return;

      const failures = events.flatMap(({ event }, index) => {
        if (event.type !== 'wait' && event.type !== 'giveUp') return [];
        // A failure follows its attempt; what the breaker refused or the caller aborted does not.
        return events[index - 1]?.event.type === 'attempt' && !event.facts.aborted ? [event] : [];
      });
      const { error } = outcome;
      if (!isRetryError(error)) return expect(failures).toHaveLength(1);
      expect(error.attempts).toBe(starts.length);
      expect(error.history.map((record) => [record.attempt, record.failure])).toEqual(
        failures.map((event) => [event.attempt, event.facts.failure]),
      );
      expect(error.history.map((record) => record.delayMs)).toEqual(
        failures.map((event) => (event.type === 'wait' ? event.delayMs : undefined)),
      );
    }));

  it('gives each result to the caller or disposes of it, once', () =>
    check(({ results, outcome }) => {
      const kept =
        'result' in outcome ? outcome.result : (outcome.error as Partial<RetryError>).result;
      for (const result of results) expect(result.disposed).toBe(result === kept ? 0 : 1);
    }));

  it('aborts the signal of an attempt only when it is cut off, never when it worked', () =>
    check(({ starts, outcome, events }) => {
      const cut = events.filter(
        ({ event }) =>
          (event.type === 'wait' || event.type === 'giveUp') &&
          (event.facts.aborted || event.facts.failure.code === 'TIMEOUT'),
      ).length;
      // What aborts before it returns may have a result all the same.
      const others = starts.filter(({ abortsItself }) => !abortsItself);
      const aborted = others.filter(({ attempt }) => attempt.signal.aborted).length;
      expect(aborted).toBeLessThanOrEqual(cut);
      const last = starts.at(-1);
      if ('result' in outcome) expect(last?.attempt.signal.aborted).toBe(last?.abortsItself);
      expect(new Set(starts.map(({ attempt }) => attempt.signal)).size).toBe(starts.length);
      expect(new Set(starts.map(({ attempt }) => attempt.idempotencyKey)).size).toBeLessThan(2);
    }));
});

import { describe, expect, it, vi } from 'vitest';
import { createBreaker } from '../circuit/breaker.ts';
import { createBudget } from '../limits/budget.ts';
import { createBulkhead } from '../limits/bulkhead.ts';
import { isConfigError } from '../errors.ts';
import { retrier, retry, retryable } from '../retry.ts';
import type { Attempt, Runtime } from './runtime.ts';
import { virtualClock } from '../virtual-clock.ts';

/** What is said of a runtime, one line per fault; nothing where it is taken. */
async function faultsOf(runtime: unknown): Promise<string[]> {
  const work = vi.fn(() => 1);
  try {
    await retry(work, {}, runtime as Runtime);
    return [];
  } catch (error) {
    const isRefused = isConfigError(error) && error.code === 'INVALID_CONFIG';
    if (!isRefused || work.mock.calls.length > 0) throw error;
    return error.faults.map(({ path, message }) => `${path}: ${message}`);
  }
}

describe('a runtime with a fault', () => {
  it('is told of the fault alone, and not of what is right', async () => {
    const right = { clock: virtualClock(), key: 'k', signal: undefined };
    expect(await faultsOf({ ...right, budget: 5 })).toEqual([
      expect.stringMatching(/^budget: 5 is not /),
    ]);
  });
});

describe('a misspelt name in the runtime', () => {
  it.each([
    ['shouldRetry', 'retryIf', 'retryIf: (error, attempt) => true'],
    ['retryif', 'retryIf', 'retryIf: (error, attempt) => true'],
    ['retry', 'retryIf', 'retryIf: (error, attempt) => true'],
    ['onRetry', 'on', 'on: { wait: ({ error, attempt }) => {} }'],
    ['onFailedAttempt', 'on', 'on: { wait: ({ error, attempt }) => {} }'],
    ['onGiveUp', 'on', 'on: { giveUp: ({ error, attempt }) => {} }'],
    ['abortSignal', 'signal', 'signal'],
    ['circuitBreaker', 'breaker', 'breaker'],
    ['idempotencyKey', 'key', 'key'],
  ])('%s: did you mean %s, with what to write', async (written, meant, example) => {
    expect(await faultsOf({ [written]: () => true })).toEqual([
      `${written}: there is no such field. Did you mean '${meant}'? Write { ${example} }.`,
    ]);
  });

  it.each([
    ['sginal', 'signal'],
    ['beforeretry', 'beforeRetry'],
  ])('%s: did you mean %s', async (written, meant) => {
    expect(await faultsOf({ [written]: () => true })).toEqual([
      `${written}: there is no such field. Did you mean '${meant}'?`,
    ]);
  });

  it.each(['maxAttempts', 'deadline', 'retryOn', 'overrides'])(
    'is sent to the policy where it is data: %s',
    async (name) => {
      expect(await faultsOf({ [name]: 5 })).toEqual([
        `${name}: is a field of the policy. Give it there: the policy is the argument before this one.`,
      ]);
    },
  );

  it('is refused also where it is a name of every object', async () => {
    const own = JSON.parse('{ "__proto__": 1, "constructor": 1, "toString": 1 }') as object;
    expect((await faultsOf(own)).map((line) => line.split(':')[0])).toEqual([
      '__proto__',
      'constructor',
      'toString',
    ]);
  });

  it('inside on and retryIf is refused as well', async () => {
    expect(
      await faultsOf({ on: { retry() {}, giveup() {} }, retryIf: { results: () => true } }),
    ).toEqual([
      "on.retry: there is no such field. Did you mean 'wait'?",
      "on.giveup: there is no such field. Did you mean 'giveUp'?",
      "retryIf.results: there is no such field. Did you mean 'result'?",
    ]);
  });
});

describe('a value in the runtime that cannot work', () => {
  it.each([
    ['signal', {}, 'this object has no method `addEventListener`. Pass the `.signal` of an'],
    ['signal', new AbortController(), 'this is an AbortController. Pass its `.signal`.'],
    ['signal', 5, '5 is not an object. Pass the `.signal` of an AbortController.'],
    ['key', 5, '5 is not a text.'],
    ['classify', 'transient', "'transient' is not a function that gets the error."],
    ['retryIf', 5, '5 is not a function, or an object of functions by name (error, result).'],
    ['retryIf', true, 'true is not a function'],
    ['beforeRetry', {}, 'an object is not a function'],
    ['budget', { capacity: 5 }, 'this object has no method `spend`. Make it with createBudget().'],
    ['breaker', 5, '5 is not an object. Make it with createBreaker().'],
    ['bulkhead', {}, 'Make it with createBulkhead().'],
    ['on', 'x', "'x' is not a function, or an object of functions by name (attempt, wait, "],
    ['on', [], 'a list of 0 is not a function'],
    ['clock', {}, 'Make it with virtualClock().'],
    ['random', 0.5, '0.5 is not a function that returns a number from 0 to 1.'],
    ['unref', 'yes', "'yes' is not true or false."],
    ['parent', {}, 'an object is not an attempt'],
  ])('%s: %j', async (name, value, message) => {
    const faults = await faultsOf({ [name]: value });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(`${name}: `);
    expect(faults[0]).toContain(message);
  });

  it('in on or retryIf is named by its path', async () => {
    const faults = await faultsOf({ on: { wait: 'log' }, retryIf: { error: 5, result: null } });
    expect(faults).toEqual([
      "on.wait: 'log' is not a function.",
      'retryIf.error: 5 is not a function.',
    ]);
  });

  it.each([
    ['null', null],
    ['a number', 5],
    ['a function', () => 1],
    ['a signal by itself', new AbortController().signal],
    ['a map', new Map()],
    ['a list', []],
    ['a promise', Promise.resolve()],
  ])('%s is not a runtime', async (_, runtime) => {
    const faults = await faultsOf(runtime);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/^: .* is not an object of options, such as/);
  });

  it('is listed with every other fault at once', async () => {
    expect(await faultsOf({ shouldRetry: 1, on: 'x', key: 7, signal: 1 })).toHaveLength(4);
  });
});

describe('a runtime that is fine', () => {
  it('may have every part, or leave any of them undefined or null', async () => {
    const clock = virtualClock();
    let parent: Attempt | undefined;
    await retry((attempt) => (parent = attempt));
    const whole: Required<Runtime> = {
      signal: new AbortController().signal,
      key: 'order-17',
      classify: () => undefined,
      retryIf: { error: undefined, result: () => false },
      beforeRetry: () => {},
      budget: createBudget(),
      breaker: createBreaker({ clock }),
      bulkhead: createBulkhead({ maxConcurrent: 1 }),
      on: { attempt() {}, wait() {}, success() {}, giveUp() {} },
      clock,
      random: () => 0.5,
      unref: true,
      parent,
    };
    expect(await faultsOf(whole)).toEqual([]);
    expect(await faultsOf({ ...whole, on() {}, retryIf: () => true })).toEqual([]);
    for (const nothing of [undefined, null]) {
      const empty = Object.fromEntries(Object.keys(whole).map((name) => [name, nothing]));
      expect(await faultsOf(empty)).toEqual([]);
    }
    expect(await faultsOf({})).toEqual([]);
  });

  it('may be an object of a class, or one without a prototype', async () => {
    class Mine {
      key = 'mine';
    }
    expect(await faultsOf(new Mine())).toEqual([]);
    expect(await faultsOf(Object.assign(Object.create(null), { key: 'x' }))).toEqual([]);
  });
});

describe('retrier and retryable', () => {
  const wrong = { shouldRetry: () => true } as Runtime;

  it('check their runtime at once', () => {
    expect(() => retrier({}, wrong)).toThrow("Did you mean 'retryIf'?");
    expect(() => retryable(() => 1, {}, wrong)).toThrow("Did you mean 'retryIf'?");
  });

  it('check the runtime of one call too', async () => {
    const call = retrier();
    await expect(call(() => 1, wrong)).rejects.toThrow("Did you mean 'retryIf'?");
  });
});

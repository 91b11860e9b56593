import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Clock } from './clock.ts';
import type { FailureClass } from './failure/failure.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryEvent, Runtime } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

const fail = () => Promise.reject(reset());
const never = () => new Promise<never>(() => {});

const unhandled: unknown[] = [];
const note = (error: unknown) => unhandled.push(error);

beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', note);
});
afterEach(async () => {
  // Node reports a rejection that nobody handles after the microtasks of this turn.
  await new Promise(setImmediate);
  process.off('unhandledRejection', note);
  if (unhandled.length > 0) throw new AggregateError(unhandled, 'rejections that nobody handled');
});

async function outcome<T>(
  fn: (attempt: Attempt) => T,
  runtime: Runtime<Awaited<T>>,
  policy: Policy = steady,
): Promise<unknown> {
  const clock = virtualClock();
  const call = retry(fn, policy, { clock, ...runtime });
  const [settled] = await Promise.all([call.catch((error: unknown) => error), clock.run()]);
  expect(clock.pending).toBe(0);
  return settled;
}

/** With nothing to watch, with a deadline and with a signal: the ways through a call. */
const ways: [string, Policy, () => Runtime][] = [
  ['alone', steady, () => ({})],
  ['with a deadline', { ...steady, deadline: '1h' }, () => ({})],
  ['with a timeout', { ...steady, attemptTimeout: '1h' }, () => ({})],
  ['with a signal', steady, () => ({ signal: new AbortController().signal })],
];

describe.each(ways)('an async callback %s', (_, policy, more) => {
  it.each([
    ['a function', (verdict: boolean | undefined) => async () => verdict],
    ['an object', (verdict: boolean | undefined) => ({ error: async () => verdict })],
  ])('retryIf by %s is awaited', async (_form, as) => {
    const error = reset();
    const failing = vi.fn(() => Promise.reject(error));
    expect(await outcome(failing, { ...more(), retryIf: as(false) }, policy)).toBe(error);
    expect(failing).toHaveBeenCalledTimes(1);
    const bug = new TypeError('bug');
    const buggy = () => Promise.reject(bug);
    expect(await outcome(buggy, { ...more(), retryIf: as(true) }, policy)).toMatchObject({
      code: 'EXHAUSTED',
      attempts: 4,
    });
    expect(await outcome(buggy, { ...more(), retryIf: as(undefined) }, policy)).toBe(bug);
  });

  it('retryIf.result is awaited', async () => {
    const retryIf = { result: async (value: string) => value !== 'try 3' };
    const fn = ({ attempt }: Attempt) => `try ${attempt}`;
    expect(await outcome(fn, { ...more(), retryIf }, policy)).toBe('try 3');
  });

  it('classify is awaited', async () => {
    const failing = vi.fn(() => Promise.reject(new Error('odd')));
    const classify = async (): Promise<FailureClass> => 'business';
    expect(await outcome(failing, { ...more(), classify }, policy)).toMatchObject({
      message: 'odd',
    });
    expect(failing).toHaveBeenCalledTimes(1);
    const coded = async () => ({ class: 'transient', code: 'ODD' }) as const;
    expect(await outcome(failing, { ...more(), classify: coded }, policy)).toMatchObject({
      code: 'EXHAUSTED',
      history: [{ failure: { code: 'ODD' } }, {}, {}, {}],
    });
    const none = async () => undefined;
    expect(await outcome(failing, { ...more(), classify: none }, policy)).toMatchObject({
      attempts: 4,
    });
  });

  it.each<[string, Runtime<number>, () => number | Promise<number>]>([
    ['retryIf', { retryIf: () => Promise.reject(new Error('bad')) }, fail],
    ['retryIf.error', { retryIf: { error: () => Promise.reject(new Error('bad')) } }, fail],
    ['retryIf.result', { retryIf: { result: () => Promise.reject(new Error('bad')) } }, () => 1],
    ['classify', { classify: () => Promise.reject(new Error('bad')) }, fail],
  ])('%s that rejects ends the call with its error', async (_name, runtime, fn) => {
    const settled = await outcome(fn, { ...more(), ...runtime }, policy);
    expect(settled).toEqual(new Error('bad'));
  });
});

describe('an async callback', () => {
  it('is not called where the call works', async () => {
    const retryIf = vi.fn(() => Promise.reject(new Error('bad')));
    expect(await outcome(() => 'fine', { retryIf, classify: retryIf })).toBe('fine');
    expect(retryIf).not.toHaveBeenCalled();
  });

  it('takes any thenable', async () => {
    const thenable = {
      // oxlint-disable-next-line unicorn/no-thenable
      then: (resolve: (value: boolean) => void) => resolve(false),
    } as unknown as Promise<boolean>;
    expect(await outcome(fail, { retryIf: () => thenable })).toMatchObject({ message: 'reset' });
  });

  it('has its time counted by the deadline, and the wait begins after it', async () => {
    const clock = virtualClock();
    const starts: number[] = [];
    const work = () => {
      starts.push(clock.monotonic());
      return fail();
    };
    const retryIf = () =>
      new Promise<undefined>((resolve) => {
        clock.setTimer(() => resolve(undefined), 50);
      });
    const call = retry(work, { ...steady, deadline: 500 }, { clock, retryIf });
    const settled = call.catch((error: unknown) => error);
    await clock.run();
    // 50 ms to judge, then the wait: 100 and 200 ms. The third wait would pass the deadline.
    expect(starts.map((at) => at - starts[0]!)).toEqual([0, 150, 400]);
    expect(await settled).toMatchObject({ code: 'DEADLINE', attempts: 3 });
  });

  it('does not keep a signal of an attempt that has worked from staying as it is', async () => {
    const controller = new AbortController();
    let given: AbortSignal | undefined;
    const fn = ({ signal }: Attempt) => {
      given = signal;
      return 4;
    };
    const retryIf = { result: async () => false };
    const call = retry(fn, { deadline: '1h' }, { signal: controller.signal, retryIf });
    await expect(call).resolves.toBe(4);
    controller.abort();
    expect(given?.aborted).toBe(false);
  });
});

describe.each<[string, Runtime<number>, () => number | Promise<number>]>([
  ['retryIf', { retryIf: never }, fail],
  ['retryIf.result', { retryIf: { result: never } }, () => 1],
  ['classify', { classify: never, retryIf: () => true }, fail],
])('while %s is pending', (_, runtime, fn) => {
  it('an abort ends the call at once, and aborts the signal of the attempt', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const events: string[] = [];
    let given: AbortSignal | undefined;
    const call = retry(
      ({ signal }) => {
        given = signal;
        return fn();
      },
      { ...steady, deadline: '1h' },
      {
        ...runtime,
        clock,
        signal: controller.signal,
        on: ({ type }: RetryEvent) => events.push(type),
      },
    );
    await clock.advance(1);
    controller.abort(new Error('left'));
    await expect(call).rejects.toMatchObject({
      code: 'ABORTED',
      attempts: 1,
      cause: { message: 'left' },
    });
    expect(given?.reason).toMatchObject({ message: 'left' });
    expect(events).toEqual(['attempt', 'giveUp']);
    expect(clock.pending).toBe(0);
  });

  it('the deadline ends the call at once', async () => {
    const clock = virtualClock();
    let given: AbortSignal | undefined;
    const call = retry(
      ({ signal }) => {
        given = signal;
        return fn();
      },
      { ...steady, deadline: 500, attemptTimeout: 100 },
      { ...runtime, clock },
    );
    const settled = call.catch((error: unknown) => error);
    await clock.advance(499);
    expect(given?.aborted).toBe(false);
    await clock.advance(1);
    expect(await settled).toMatchObject({ code: 'DEADLINE', attempts: 1, history: [{}] });
    expect(given?.reason).toMatchObject({ name: 'TimeoutError' });
    expect(clock.pending).toBe(0);
  });
});

describe('a callback that is too late', () => {
  it('ends the call by the deadline, also where the timer of the deadline fires a moment early', async () => {
    const virtual = virtualClock();
    const setTimer: typeof virtual.setTimer = (callback, ms) => virtual.setTimer(callback, ms - 1);
    const clock = { ...virtual, setTimer };
    const policy = { base: 0, jitter: 'none', deadline: 10 } as const;
    const settled = retry(fail, policy, { clock, retryIf: never }).catch((e: unknown) => e);
    await virtual.advance(9);
    expect(await settled).toMatchObject({ code: 'DEADLINE', attempts: 1 });
  });

  it('may reject unheard', async () => {
    const clock = virtualClock();
    let reject: ((error: Error) => void) | undefined;
    const retryIf = () =>
      new Promise<boolean>((_, no) => {
        reject = no;
      });
    const settled = retry(fail, { deadline: 10 }, { clock, retryIf }).catch((e: unknown) => e);
    await clock.advance(10);
    expect(await settled).toMatchObject({ code: 'DEADLINE' });
    reject?.(new Error('too late'));
  });

  it('of classify keeps retryIf from being asked', async () => {
    const clock = virtualClock();
    const retryIf = vi.fn(() => true);
    const runtime = { clock, retryIf, classify: never };
    const settled = retry(fail, { deadline: 10 }, runtime).catch((e: unknown) => e);
    await clock.advance(10);
    expect(await settled).toMatchObject({ code: 'DEADLINE' });
    expect(retryIf).not.toHaveBeenCalled();
  });

  it('leaves a result that nobody has judged in the error, where time is up', async () => {
    const clock = virtualClock();
    const dispose = vi.fn();
    const result = { [Symbol.dispose]: dispose };
    const retryIf = { result: never };
    const settled = retry(() => result, { deadline: 10 }, { clock, retryIf }).catch(
      (e: unknown) => e,
    );
    await clock.advance(10);
    expect(await settled).toMatchObject({ code: 'DEADLINE', result });
    expect(dispose).not.toHaveBeenCalled();
  });

  it('has its result disposed of where the caller has left', async () => {
    const controller = new AbortController();
    const dispose = vi.fn();
    const retryIf = { result: never };
    const fn = () => ({ [Symbol.dispose]: dispose });
    const call = retry(fn, steady, { signal: controller.signal, retryIf });
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(dispose).toHaveBeenCalledTimes(1);
  });
});

describe('an async listener', () => {
  it('that rejects never breaks the work, nor the process', async () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => {});
    const on = () => Promise.reject(new Error('bad listener'));
    const fn = ({ attempt }: Attempt) => (attempt === 1 ? fail() : 'fine');
    expect(await outcome(fn, { on })).toBe('fine');
    await new Promise(setImmediate);
    expect(report).toHaveBeenCalledTimes(4);
    report.mockRestore();
  });
});

describe('an async callback that is asked after the deadline', () => {
  it('sets no timer of a negative time, of which Node.js would warn', async () => {
    const host = virtualClock();
    const timers: number[] = [];
    let lateMs = 0;
    const clock: Clock = {
      now: () => host.now(),
      monotonic: () => host.monotonic() + lateMs,
      setTimer(callback, ms) {
        timers.push(ms);
        return host.setTimer(callback, ms);
      },
      clearTimer: (timer) => host.clearTimer(timer),
    };
    const busy = () => {
      lateMs = 10_000;
      throw new Error('too late');
    };
    const call = retry(busy, { deadline: '5s' }, { clock, retryIf: async () => true });
    const [error] = await Promise.all([call.catch((thrown: unknown) => thrown), host.run()]);
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 1 });
    expect(timers.filter((ms) => ms < 0)).toEqual([]);
    expect(timers).toContain(0);
  });
});

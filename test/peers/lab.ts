/** What every experiment needs: time that stands still until it is moved, work that fails, a watched promise. */
import { vi } from 'vitest';
import type { Library } from './table.ts';

/** By part of the trait: whether the library was seen to have it. */
export type Findings = Record<string, boolean>;
export type Experiment = () => Promise<Findings>;
export type Experiments = Record<Library, Experiment>;

export type Signalled<T> = (signal?: AbortSignal) => Promise<T>;

/** The libraries know no virtual clock, so the globals are replaced. `setImmediate` is not: effect runs on it. */
export function stopTime(): void {
  // A whole second, since an HTTP date has no ms.
  vi.useFakeTimers({
    now: Date.UTC(2026, 0, 1),
    toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'],
  });
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Moves from timer to timer, and lets everything happen in between: nothing here depends on real time. */
export async function advance(ms: number): Promise<void> {
  for (let leftMs = ms; leftMs >= 0; leftMs -= LONGEST_TIMER_MS) {
    const arrival = vi.fn();
    setTimeout(arrival, Math.min(leftMs, LONGEST_TIMER_MS));
    while (arrival.mock.calls.length === 0) {
      await settle();
      vi.advanceTimersToNextTimer();
    }
  }
  await settle();
}

/** Lets everything happen that needs no time. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}

export interface Outcome<T> {
  state: 'pending' | 'resolved' | 'rejected';
  value?: T;
  error?: unknown;
  /** Ms after the watch began. */
  atMs: number;
}

export function watch<T>(promise: Promise<T>): Outcome<T> {
  const startedAt = Date.now();
  const outcome: Outcome<T> = { state: 'pending', atMs: Infinity };
  promise.then(
    (value) => Object.assign(outcome, { state: 'resolved', value, atMs: Date.now() - startedAt }),
    (error: unknown) =>
      Object.assign(outcome, { state: 'rejected', error, atMs: Date.now() - startedAt }),
  );
  return outcome;
}

/** Work that remembers when it was called, and with which signals. */
export interface Work<T = string> extends Signalled<T> {
  /** Ms after it was made. */
  readonly calls: number[];
  readonly signals: (AbortSignal | undefined)[];
}

/** Work whose n-th call does what `script` says. */
export function work<T = string>(
  script: (call: number, signal: AbortSignal | undefined) => Promise<T> | T,
): Work<T> {
  const madeAt = Date.now();
  const calls: number[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const run = async (signal?: AbortSignal): Promise<T> => {
    signals.push(signal);
    return script(calls.push(Date.now() - madeAt), signal);
  };
  return Object.assign(run, { calls, signals });
}

/** Work that fails so many times, then succeeds. */
export function failing(times = Infinity, error: () => unknown = () => new Error('down')): Work {
  return work((call) => {
    if (call <= times) throw error();
    return 'done';
  });
}

/** A promise that ends only with its signal, as a call of `fetch` does. */
export function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error));
  });
}

/** The delays for which a call asked, each of them over at once. */
export async function delaysOf(call: () => Promise<unknown>): Promise<number[]> {
  const delays: number[] = [];
  const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((
    callback: () => void,
    ms: number,
  ) => {
    delays.push(ms);
    return setImmediate(callback);
  }) as unknown as typeof setTimeout);
  try {
    await call().catch(() => {});
  } finally {
    timers.mockRestore();
  }
  return delays;
}

/** Of several ways to hold a library, the one that shows most. */
export async function best(...ways: readonly Experiment[]): Promise<Findings> {
  const held = (findings: Findings) => Object.values(findings).filter(Boolean).length;
  const all: Findings[] = [];
  for (const way of ways) all.push(await way());
  return all.reduce((one, other) => (held(other) > held(one) ? other : one));
}

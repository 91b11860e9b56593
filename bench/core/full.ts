/** Everything at once: an attempt timeout, a deadline, a signal and one listener. */
import {
  ExponentialBackoff,
  handleAll,
  retry as cockatielRetry,
  timeout,
  TimeoutStrategy,
  wrap,
} from 'cockatiel';
import { Effect, Schedule } from 'effect';
import { definePolicy, retry } from 'redrive';
import type { Contestant } from '../harness.ts';
import { race } from '../race.ts';
import { type Case, type Result, times, type Verdict } from '../result.ts';
import { ANSWER, checker, listener, signalledWork, work } from './work.ts';

const [baseMs, capMs, retries, attemptMs, deadlineMs] = [200, 30_000, 3, 5000, 60_000];

export const full: Case = {
  name: 'full',
  about: 'attempt timeout, deadline, a signal, a listener for success; the work awaits once',
  async run(effort) {
    const result = await race(fullContestants(false), effort);
    return { ...result, verdicts: judge(result), notes };
  },
};

export const fullSignal: Case = {
  name: 'full-signal',
  about: 'the same; the work also looks at the signal it is given',
  async run(effort) {
    const result = await race(fullContestants(true), effort);
    return { ...result, verdicts: judge(result), notes };
  },
};

const notes = [
  'cockatiel: wrap(timeout, retry, timeout), aggressive, which rejects in time as redrive does',
  'cockatiel-lean: wrap(retry, timeout), cooperative: no deadline, and it waits for work that ignores its signal',
  'left out, having no attempt timeout: p-retry, exponential-backoff, async-retry',
];

/** `signalled`: the work uses the signal of its attempt, which some make only then. */
export function fullContestants(signalled: boolean): Contestant[] {
  const { signal } = new AbortController();
  const calls: Record<string, () => Promise<number>> = {
    redrive: redriveCall(signal, signalled),
    cockatiel: cockatielCall(signal, signalled),
    'cockatiel-lean': leanCockatielCall(signal, signalled),
    effect: effectCall(signal, signalled),
  };
  const check = checker(1, 1);
  return Object.entries(calls).map(([name, call]) => ({ name, call, expected: ANSWER, check }));
}

function redriveCall(signal: AbortSignal, signalled: boolean): () => Promise<number> {
  const policy = definePolicy({
    maxAttempts: retries + 1,
    base: baseMs,
    cap: capMs,
    attemptTimeout: attemptMs,
    deadline: deadlineMs,
  });
  const runtime = { signal, on: { success: listener } };
  return signalled
    ? () => retry((attempt) => signalledWork(attempt.signal), policy, runtime)
    : () => retry(work, policy, runtime);
}

function cockatielCall(signal: AbortSignal, signalled: boolean): () => Promise<number> {
  const options = { strategy: TimeoutStrategy.Aggressive, abortOnReturn: false };
  const retrying = cockatielRetrying();
  const policy = wrap(timeout(deadlineMs, options), retrying, timeout(attemptMs, options));
  return signalled
    ? () => policy.execute((context) => signalledWork(context.signal), signal)
    : () => policy.execute(work, signal);
}

function leanCockatielCall(signal: AbortSignal, signalled: boolean): () => Promise<number> {
  const options = { strategy: TimeoutStrategy.Cooperative, abortOnReturn: false };
  const policy = wrap(cockatielRetrying(), timeout(attemptMs, options));
  return signalled
    ? () => policy.execute((context) => signalledWork(context.signal), signal)
    : () => policy.execute(work, signal);
}

function cockatielRetrying(): ReturnType<typeof cockatielRetry> {
  const backoff = new ExponentialBackoff({ initialDelay: baseMs, maxDelay: capMs });
  const retrying = cockatielRetry(handleAll, { maxAttempts: retries, backoff });
  retrying.onSuccess(listener);
  return retrying;
}

function effectCall(signal: AbortSignal, signalled: boolean): () => Promise<number> {
  // It makes a signal only for a function that has a parameter for it.
  const once = Effect.tryPromise({
    try: signalled ? (own) => signalledWork(own) : () => work(),
    catch: (error) => error,
  });
  const program = once.pipe(
    Effect.timeout(attemptMs),
    Effect.retry({
      times: retries,
      schedule: Schedule.exponential(baseMs).pipe(Schedule.jittered),
    }),
    Effect.timeout(deadlineMs),
    Effect.tap(Effect.sync(listener)),
  );
  const options = { signal };
  return () => Effect.runPromise(program, options);
}

function judge({ redrive, peers }: Result): Verdict[] {
  return ['cockatiel', 'cockatiel-lean'].map((name) => {
    const lead = Number(peers[name]) / redrive;
    return { target: `faster than ${name}`, measured: times(lead), met: lead > 1 };
  });
}

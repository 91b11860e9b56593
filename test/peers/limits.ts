/** Traits about time: aborts, timeouts, deadlines, signals, long waits. */
import {
  ConstantBackoff,
  handleAll,
  retry as cockatielRetry,
  timeout as cockatielTimeout,
  TimeoutStrategy,
  wrap,
} from 'cockatiel';
import { Duration, Effect, Schedule } from 'effect';
import pRetry from 'p-retry';
import { retry } from 'redrive';
import { asyncRetry, attempt, type Caller, plain } from './callers.ts';
import {
  advance,
  best,
  type Experiments,
  failing,
  type Findings,
  type Signalled,
  untilAborted,
  watch,
  work,
} from './lab.ts';

const DAY_MS = 86_400_000;

export const abort: Experiments = {
  Redrive: () => abortInWait(plain.Redrive),
  'p-retry': () => abortInWait(plain['p-retry']),
  cockatiel: () => abortInWait(plain.cockatiel),
  'async-retry': () => abortInWait(plain['async-retry']),
  'exponential-backoff': () => abortInWait(plain['exponential-backoff']),
  effect: () => abortInWait(plain.effect),
};

async function abortInWait(call: Caller): Promise<Findings> {
  const job = failing();
  const controller = new AbortController();
  const outcome = watch(call(job, { waitMs: 1000, signal: controller.signal }));
  await advance(50);
  controller.abort(new Error('enough'));
  await advance(0);
  const waitEnds = outcome.state === 'rejected';
  await advance(10_000);
  return { waitEnds, nothingStarts: job.calls.length === 1 };
}

export const attemptTimeout: Experiments = {
  Redrive: () =>
    hangOnce((job) =>
      retry(({ signal }) => job(signal), { base: 10, jitter: 'none', attemptTimeout: 100 }),
    ),
  // What comes nearest: a time for everything.
  'p-retry': () => hangOnce((job) => pRetry(() => job(), { minTimeout: 10, maxRetryTime: 100 })),
  cockatiel: () =>
    hangOnce((job) =>
      wrap(
        cockatielRetry(handleAll, { maxAttempts: 2, backoff: new ConstantBackoff(10) }),
        cockatielTimeout(100, TimeoutStrategy.Aggressive),
      ).execute(({ signal }) => job(signal)),
    ),
  'async-retry': () =>
    hangOnce((job) => asyncRetry(() => job(), { minTimeout: 10, maxRetryTime: 100 })),
  'exponential-backoff': () => hangOnce((job) => plain['exponential-backoff'](job, { waitMs: 10 })),
  effect: () =>
    hangOnce((job) =>
      Effect.runPromise(
        attempt(job).pipe(
          Effect.timeout(100),
          Effect.retry({ times: 2, schedule: Schedule.spaced(10) }),
        ),
      ),
    ),
};

async function hangOnce(call: (job: Signalled<string>) => Promise<string>): Promise<Findings> {
  const job = work((count) => (count === 1 ? new Promise<never>(() => {}) : 'done'));
  const outcome = watch(call(job));
  await advance(1000);
  return {
    attemptEnds: outcome.state === 'resolved',
    signalAborts: job.signals[0]?.aborted === true,
  };
}

interface Deadline {
  deadlineMs: number;
  waitMs: number;
}

type DeadlineCaller = (job: Signalled<string>, by: Deadline) => Promise<string>;

const MANY = 1000;

export const deadline: Experiments = {
  Redrive: () =>
    deadlines((job, { deadlineMs, waitMs }) =>
      retry(({ signal }) => job(signal), {
        maxAttempts: MANY,
        strategy: 'fixed',
        base: waitMs,
        jitter: 'none',
        deadline: deadlineMs,
      }),
    ),
  'p-retry': () =>
    deadlines((job, { deadlineMs, waitMs }) => {
      // `AbortSignal.timeout` cannot be run in made-up time.
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error('timeout')), deadlineMs);
      const { signal } = controller;
      return pRetry(() => job(signal), {
        retries: MANY,
        minTimeout: waitMs,
        factor: 1,
        maxRetryTime: deadlineMs,
        signal,
      });
    }),
  cockatiel: () =>
    deadlines((job, { deadlineMs, waitMs }) =>
      wrap(
        cockatielTimeout(deadlineMs, TimeoutStrategy.Aggressive),
        cockatielRetry(handleAll, { maxAttempts: MANY, backoff: new ConstantBackoff(waitMs) }),
      ).execute(({ signal }) => job(signal)),
    ),
  'async-retry': () =>
    deadlines((job, { deadlineMs, waitMs }) =>
      asyncRetry(() => job(), {
        retries: MANY,
        minTimeout: waitMs,
        maxTimeout: waitMs,
        randomize: false,
        maxRetryTime: deadlineMs,
      }),
    ),
  'exponential-backoff': () =>
    deadlines((job, { waitMs }) => plain['exponential-backoff'](job, { retries: MANY, waitMs })),
  effect: () =>
    best(
      () =>
        deadlines((job, { deadlineMs, waitMs }) =>
          deadlineEffect(
            job,
            deadlineMs,
            Schedule.spaced(waitMs).pipe(Schedule.upTo({ duration: deadlineMs })),
          ),
        ),
      // A schedule's elapsed time begins with the first failure, so even this waits in vain.
      () =>
        deadlines((job, { deadlineMs, waitMs }) =>
          deadlineEffect(
            job,
            deadlineMs,
            Schedule.spaced(waitMs).pipe(
              Schedule.while(
                ({ elapsed, duration }) => elapsed + Duration.toMillis(duration) < deadlineMs,
              ),
            ),
          ),
        ),
    ),
};

function deadlineEffect(
  job: Signalled<string>,
  deadlineMs: number,
  schedule: Schedule.Schedule<unknown>,
): Promise<string> {
  return Effect.runPromise(attempt(job).pipe(Effect.retry(schedule), Effect.timeout(deadlineMs)));
}

async function deadlines(call: DeadlineCaller): Promise<Findings> {
  const endless = watch(call(failing(), { deadlineMs: 1000, waitMs: 100 }));
  await advance(1200);

  const hanging = work((_, signal) => untilAborted(signal));
  const hung = watch(call(hanging, { deadlineMs: 1000, waitMs: 100 }));
  await advance(1000);
  const attemptEnds = hung.state === 'rejected' && hanging.signals[0]?.aborted === true;

  // After 900 of its 1000 ms an attempt fails: a wait of 200 leads nowhere.
  const slow = work(async () => {
    await new Promise((resolve) => {
      setTimeout(resolve, 900);
    });
    throw new Error('down');
  });
  const late = watch(call(slow, { deadlineMs: 1000, waitMs: 200 }));
  await advance(10_000);
  return {
    retryingStops: endless.state === 'rejected' && endless.atMs <= 1100,
    attemptEnds,
    nothingStartsAfter: slow.calls.length === 1,
    noPointlessWait: late.atMs === 900,
  };
}

export const signal: Experiments = {
  Redrive: () => signals((job) => retry(({ signal: own }) => job(own), { base: 10 })),
  // These hand a number, or nothing, to the function.
  'p-retry': () => signals(plain['p-retry']),
  'async-retry': () => signals(plain['async-retry']),
  'exponential-backoff': () => signals(plain['exponential-backoff']),
  cockatiel: () =>
    signals((job) =>
      wrap(
        cockatielRetry(handleAll, { maxAttempts: 2 }),
        cockatielTimeout(60_000, { strategy: TimeoutStrategy.Aggressive, abortOnReturn: false }),
      ).execute(({ signal: own }) => job(own)),
    ),
  effect: () => signals((job) => Effect.runPromise(Effect.retry(attempt(job), { times: 2 }))),
};

async function signals(call: (job: Signalled<string>) => Promise<string>): Promise<Findings> {
  const job = failing(1);
  watch(call(job));
  await advance(100_000);
  const [first, second] = job.signals;
  return {
    fresh: first !== undefined && second !== undefined && first !== second,
    keptAfterSuccess: second?.aborted === false,
  };
}

export const longWaits: Experiments = {
  Redrive: () => waitThirtyDays(plain.Redrive),
  'p-retry': () => waitThirtyDays(plain['p-retry']),
  cockatiel: () => waitThirtyDays(plain.cockatiel),
  'async-retry': () => waitThirtyDays(plain['async-retry']),
  'exponential-backoff': () => waitThirtyDays(plain['exponential-backoff']),
  effect: () => waitThirtyDays(plain.effect),
};

/** A timer past 2^31-1 ms ends after 1 ms, here as in Node. */
async function waitThirtyDays(call: Caller): Promise<Findings> {
  const job = failing(1);
  watch(call(job, { waitMs: 30 * DAY_MS }));
  await advance(1000);
  const notAtOnce = job.calls.length === 1;
  await advance(31 * DAY_MS);
  return { notAtOnce, inFull: job.calls[1] === 30 * DAY_MS };
}

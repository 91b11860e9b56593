/** Traits about sparing the other side: budgets, Retry-After, jitter, breakers, nesting. */
import {
  BrokenCircuitError,
  circuitBreaker,
  ConsecutiveBreaker,
  ConstantBackoff,
  ExponentialBackoff,
  fullJitterGenerator,
  halfJitterGenerator,
  handleAll,
  handleType,
  handleWhenResult,
  retry as cockatielRetry,
  wrap,
} from 'cockatiel';
import { Duration, Effect, Schedule } from 'effect';
import { FetchHttpClient, HttpClient } from 'effect/http';
import { CircuitBreaker, RateLimiter } from 'effect/persistence';
import pRetry, { AbortError } from 'p-retry';
import { createBreaker, createBudget, definePolicy, retry } from 'redrive';
import { asyncRetry, attempt, jittered, plain } from './callers.ts';
import {
  advance,
  best,
  delaysOf,
  type Experiments,
  failing,
  type Findings,
  type Signalled,
  watch,
  work,
  type Work,
} from './lab.ts';

type Call = (job: Signalled<string>) => Promise<string>;

export const budget: Experiments = {
  Redrive: () => {
    const shared = createBudget({ capacity: 10, cost: 1, timeoutCost: 1, refund: 1 });
    return storm((job) => retry(() => job(), { base: 100, jitter: 'none' }, { budget: shared }));
  },
  'p-retry': () => storm((job) => plain['p-retry'](job, { retries: 3 })),
  cockatiel: () =>
    best(
      () => storm((job) => plain.cockatiel(job, { retries: 3 })),
      () => {
        // It opens after as many failures as the budget would allow.
        const shared = wrap(
          cockatielRetry(handleAll, { maxAttempts: 3, backoff: new ConstantBackoff(100) }),
          circuitBreaker(handleAll, {
            halfOpenAfter: 3_600_000,
            breaker: new ConsecutiveBreaker(30),
          }),
        );
        return storm((job) => shared.execute(() => job()));
      },
    ),
  'async-retry': () => storm((job) => plain['async-retry'](job, { retries: 3 })),
  'exponential-backoff': () => storm((job) => plain['exponential-backoff'](job, { retries: 3 })),
  effect: async () => {
    const limiter = await Effect.runPromise(
      RateLimiter.make.pipe(Effect.provide(RateLimiter.layerStoreMemory)),
    );
    const token = limiter.consume({ key: 'retries', limit: 10, window: '1 hour' });
    const allowed = Effect.match(token, { onFailure: () => false, onSuccess: () => true });
    return storm((job) =>
      Effect.runPromise(
        Effect.retry(attempt(job), {
          times: 3,
          schedule: Schedule.spaced(100),
          while: () => allowed,
        }),
      ),
    );
  },
};

/** Twenty calls that may each retry three times, where ten retries in all should be made. */
async function storm(call: Call): Promise<Findings> {
  const down = failing();
  for (let i = 0; i < 20; i++) watch(call(down));
  await advance(10_000);
  const afterStorm = down.calls.length;
  // A call that comes later is still made, once.
  watch(call(down));
  await advance(10_000);
  const bounded = afterStorm === 30 && down.calls.length === 31;

  for (let i = 0; i < 20; i++) watch(call(failing(0)));
  await advance(1000);
  const again = failing(1);
  watch(call(again));
  await advance(1000);
  return { bounded, refilled: bounded && again.calls.length === 2 };
}

interface HttpCallers {
  /** Calls a server, and retries its answer 503. */
  fetching: (server: () => Promise<Response>) => Promise<unknown>;
  /** Retries what some other HTTP library throws. */
  throwing: (job: () => Promise<string>) => Promise<string>;
}

export const retryAfter: Experiments = {
  Redrive: () =>
    told({
      fetching: (server) => retry(server, { base: 10 }, { retryIf: { result: ({ ok }) => !ok } }),
      throwing: (job) => retry(job, { base: 10 }),
    }),
  'p-retry': () => told(throwingOnly((job) => plain['p-retry'](job, { waitMs: 10 }))),
  cockatiel: () =>
    told({
      fetching: (server) =>
        cockatielRetry(
          handleWhenResult((result) => !(result as Response).ok),
          { maxAttempts: 2, backoff: new ExponentialBackoff({ initialDelay: 10 }) },
        ).execute(server),
      throwing: (job) => plain.cockatiel(job, { waitMs: 10 }),
    }),
  'async-retry': () => told(throwingOnly((job) => plain['async-retry'](job, { waitMs: 10 }))),
  'exponential-backoff': () =>
    told(throwingOnly((job) => plain['exponential-backoff'](job, { waitMs: 10 }))),
  effect: () =>
    told({
      fetching: (server) =>
        Effect.gen(function* () {
          const client = yield* HttpClient.HttpClient;
          const patient = HttpClient.retryTransient(client, {
            times: 2,
            schedule: Schedule.spaced(10),
          });
          return yield* patient.get('https://api.example/orders');
        }).pipe(
          Effect.provide(FetchHttpClient.layer),
          Effect.provideService(FetchHttpClient.Fetch, server),
          Effect.runPromise,
        ),
      throwing: (job) => plain.effect(job, { waitMs: 10 }),
    }),
};

/** Without retries on a result, an answer that is no success has to be thrown. */
function throwingOnly(throwing: HttpCallers['throwing']): HttpCallers {
  return {
    throwing,
    fetching: (server) =>
      throwing(async () => {
        const response = await server();
        if (!response.ok) {
          throw Object.assign(new Error('refused'), { status: response.status, response });
        }
        return response.text();
      }),
  };
}

async function told({ fetching, throwing }: HttpCallers): Promise<Findings> {
  const seconds = serverThatSays('2');
  watch(fetching(seconds));
  const date = serverThatSays(new Date(Date.now() + 2000).toUTCString());
  watch(fetching(date));
  const headers = { 'retry-after': '2' };
  const thrown = failing(1, () => Object.assign(new Error('slow down'), { status: 429, headers }));
  watch(throwing(() => thrown()));
  await advance(10_000);
  return { seconds: waited(seconds), date: waited(date), anyError: waited(thrown) };
}

function serverThatSays(wait: string): Work<Response> {
  const headers = { 'retry-after': wait, date: new Date().toUTCString() };
  return work((call) => (call === 1 ? new Response('', { status: 503, headers }) : new Response()));
}

function waited({ calls }: Work<unknown>): boolean {
  const [, second = 0] = calls;
  return calls.length === 2 && second >= 2000 && second <= 2200;
}

/** So long that in whole ms a spread delay is on the cap by chance once in a thousand times at most. */
const growth = { retries: 12, baseMs: 100_000, capMs: 1_000_000 };

export const jitterAtCap: Experiments = {
  Redrive: async () => {
    const shares: number[] = [];
    for (const jitter of ['up', 'around', 'add', 'full', 'equal', 'decorrelated'] as const) {
      const policy = definePolicy({
        maxAttempts: growth.retries + 1,
        base: growth.baseMs,
        cap: growth.capMs,
        jitter,
      });
      shares.push(await shareAtCap((job) => retry(() => job(), policy)));
    }
    return {
      someJitter: shares.every(isSmall),
      usualJitter: isSmall(await shareAtCap((job) => jittered.Redrive(job, growth))),
    };
  },
  'p-retry': () => oneJitter(jittered['p-retry']),
  cockatiel: async () => {
    const shares: number[] = [];
    for (const generator of [fullJitterGenerator, halfJitterGenerator]) {
      const backoff = new ExponentialBackoff({
        initialDelay: growth.baseMs,
        maxDelay: growth.capMs,
        generator,
      });
      const policy = cockatielRetry(handleAll, { maxAttempts: growth.retries, backoff });
      shares.push(await shareAtCap((job) => policy.execute(job)));
    }
    return {
      someJitter: shares.every(isSmall),
      usualJitter: isSmall(await shareAtCap((job) => jittered.cockatiel(job, growth))),
    };
  },
  'async-retry': () => oneJitter(jittered['async-retry']),
  'exponential-backoff': () => oneJitter(jittered['exponential-backoff']),
  effect: () => oneJitter(jittered.effect),
};

async function oneJitter(call: typeof jittered.Redrive): Promise<Findings> {
  const spread = isSmall(await shareAtCap((job) => call(job, growth)));
  return { someJitter: spread, usualJitter: spread };
}

/** How many of the delays that have reached the cap are exactly there. */
async function shareAtCap(call: (job: () => Promise<string>) => Promise<string>): Promise<number> {
  const atCap: boolean[] = [];
  for (let i = 0; i < 30; i++) {
    const delays = await delaysOf(() => call(failing()));
    // From the ninth on, every jitter's raw delay is far past the cap.
    atCap.push(...delays.slice(8).map((ms) => ms === growth.capMs));
  }
  return atCap.filter(Boolean).length / atCap.length;
}

function isSmall(share: number): boolean {
  if (share > 0.05 && share < 0.9) throw new Error(`${share} at the cap is neither few nor most`);
  return share <= 0.05;
}

const OPEN_MS = 10_000;

export const breaker: Experiments = {
  Redrive: () => {
    const shared = createBreaker({ failures: 1, openFor: OPEN_MS });
    return outage((job) =>
      retry(
        () => job(),
        { maxAttempts: 3, strategy: 'fixed', base: 100, jitter: 'none' },
        { breaker: shared },
      ),
    );
  },
  'p-retry': () => outage(plain['p-retry']),
  cockatiel: () => {
    const composed = wrap(
      cockatielRetry(handleAll, { maxAttempts: 2, backoff: new ConstantBackoff(100) }),
      cockatielRetry(handleType(BrokenCircuitError), {
        maxAttempts: 2,
        backoff: new ConstantBackoff(OPEN_MS),
      }),
      circuitBreaker(handleAll, { halfOpenAfter: OPEN_MS, breaker: new ConsecutiveBreaker(1) }),
    );
    return outage((job) => composed.execute(() => job()));
  },
  'async-retry': () => outage(plain['async-retry']),
  'exponential-backoff': () => outage(plain['exponential-backoff']),
  effect: () =>
    outage((job) =>
      Effect.gen(function* () {
        const shared = yield* CircuitBreaker.make({
          tripPolicy: CircuitBreaker.consecutive(1),
          openDuration: OPEN_MS,
        });
        return yield* attempt(job).pipe(
          shared.execute({ key: 'server' }),
          Effect.retry({ schedule: untilClosed, while: isRejection, times: 2 }),
          Effect.retry({ schedule: Schedule.spaced(100), times: 2 }),
        );
      }).pipe(Effect.scoped, Effect.provide(CircuitBreaker.layerStoreMemory()), Effect.runPromise),
    ),
};

const untilClosed = Schedule.spaced(100).pipe(
  Schedule.setInputType<unknown>(),
  Schedule.modifyDelay(({ duration, input }) =>
    Effect.succeed(
      isRejection(input) && input.reason._tag === 'CircuitOpen'
        ? Duration.max(duration, input.reason.retryAfter)
        : duration,
    ),
  ),
);

function isRejection(error: unknown): error is CircuitBreaker.CircuitBreakerError {
  return error instanceof CircuitBreaker.CircuitBreakerError;
}

/** A server that is down for half of the time for which its breaker opens, and a call with three attempts. */
async function outage(call: (job: () => Promise<string>) => Promise<string>): Promise<Findings> {
  const recoversAt = Date.now() + OPEN_MS / 2;
  const server = work(() => {
    if (Date.now() < recoversAt) throw new Error('down');
    return 'done';
  });
  const outcome = watch(call(server));
  await advance(10 * OPEN_MS);
  return {
    callsNothing: server.calls.filter((atMs) => atMs < OPEN_MS).length === 1,
    costsNothing: outcome.state === 'resolved',
  };
}

const three = definePolicy({ maxAttempts: 3, base: 10 });

export const nested: Experiments = {
  Redrive: () =>
    nest((job, outer) =>
      retry((parent) => {
        outer();
        return retry(() => job(), three, { parent });
      }, three),
    ),
  'p-retry': () =>
    best(
      () => nest(plainly(plain['p-retry'])),
      () =>
        nest((job, outer) =>
          pRetry(() => {
            outer();
            return plain['p-retry'](job).catch((error: unknown) => {
              throw new AbortError(error as Error);
            });
          }),
        ),
    ),
  cockatiel: () => nest(plainly(plain.cockatiel)),
  'async-retry': () =>
    best(
      () => nest(plainly(plain['async-retry'])),
      () =>
        nest((job, outer) =>
          asyncRetry(async (bail) => {
            outer();
            return plain['async-retry'](job).catch((error: unknown) => {
              bail(error);
              return '';
            });
          }),
        ),
    ),
  'exponential-backoff': () => nest(plainly(plain['exponential-backoff'])),
  effect: () =>
    best(
      () => nest(plainly(plain.effect)),
      () =>
        nest((job, outer) => {
          const inner = Effect.retry(attempt(job), { times: 2 });
          const call = Effect.andThen(Effect.sync(outer), Effect.orDie(inner));
          return Effect.runPromise(Effect.retry(call, { times: 2 }));
        }),
    ),
};

type Nest = (job: Signalled<string>, outer: () => void) => Promise<string>;

function plainly(call: (typeof plain)['Redrive']): Nest {
  return (job, outer) =>
    call(() => {
      outer();
      return call(() => job());
    });
}

/** Switching the outer call off would make three executions too, but all in its first attempt. */
async function nest(call: Nest): Promise<Findings> {
  const job = failing();
  let outer = 0;
  watch(call(job, () => (outer += 1)));
  await advance(60_000);
  return { leftToOuter: job.calls.length === 3 && outer === 3 };
}

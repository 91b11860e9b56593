/** Traits about what comes back: results, errors, bodies. */
import { handleAll, handleWhenResult, retry as cockatielRetry } from 'cockatiel';
import { Effect, Schedule } from 'effect';
import { FetchHttpClient, HttpClient, HttpClientResponse } from 'effect/http';
import { retry } from 'redrive';
import { attempt, type Caller, plain } from './callers.ts';
import { advance, type Experiments, failing, type Findings, settle, watch, work } from './lab.ts';

interface Answer {
  status: number;
}

export const onResult: Experiments = {
  Redrive: () => refuse((job) => retry(job, { base: 10 }, { retryIf: { result: isRefused } })),
  'p-retry': () => refuse(plain['p-retry']),
  cockatiel: () =>
    refuse((job) =>
      cockatielRetry(handleAll.orWhenResult(isRefused), { maxAttempts: 2 }).execute(job),
    ),
  'async-retry': () => refuse(plain['async-retry']),
  'exponential-backoff': () => refuse(plain['exponential-backoff']),
  effect: () =>
    refuse((job) => Effect.runPromise(Effect.repeat(attempt(job), { times: 2, while: isRefused }))),
};

function isRefused(result: unknown): boolean {
  return (result as Answer | undefined)?.status === 503;
}

async function refuse(call: (job: () => Promise<Answer>) => Promise<Answer>): Promise<Findings> {
  const job = work((count) => ({ status: count < 3 ? 503 : 200 }));
  const outcome = watch(call(job));
  await advance(10_000);
  return { retried: outcome.value?.status === 200 && job.calls.length === 3 };
}

export const history: Experiments = {
  Redrive: () => collect(plain.Redrive),
  'p-retry': () => collect(plain['p-retry']),
  cockatiel: () => collect(plain.cockatiel),
  'async-retry': () => collect(plain['async-retry']),
  'exponential-backoff': () => collect(plain['exponential-backoff']),
  // Not through `runPromise`, which would keep one error of a cause that might hold several.
  effect: () =>
    collect(async (job) => {
      const exit = await Effect.runPromiseExit(Effect.retry(attempt(job), { times: 2 }));
      throw new Error('failed', { cause: exit });
    }),
};

async function collect(call: Caller): Promise<Findings> {
  const errors = [new Error('first'), new Error('second'), new Error('third')];
  const job = work<never>((count) => {
    throw errors[count - 1] ?? new Error('too many');
  });
  const outcome = watch(call(() => job()));
  await advance(10_000);
  const found = reachable(outcome.error);
  if (!found.has(errors[2])) throw new Error('not even the last error was found');
  return { allErrors: errors.every((error) => found.has(error)) };
}

/** All that can be reached through properties, own ones and getters. */
function reachable(value: unknown, found = new Set<unknown>(), depth = 0): Set<unknown> {
  if (Object(value) !== value || found.has(value) || depth > 6) return found;
  found.add(value);
  for (const key of Reflect.ownKeys(value as object)) {
    reachable((value as Record<PropertyKey, unknown>)[key], found, depth + 1);
  }
  return found;
}

export const bugs: Experiments = {
  Redrive: () => choosy(plain.Redrive),
  'p-retry': () => choosy(plain['p-retry']),
  cockatiel: () => choosy(plain.cockatiel),
  'async-retry': () => choosy(plain['async-retry']),
  'exponential-backoff': () => choosy(plain['exponential-backoff']),
  effect: async () => ({
    typeErrors: (await isDefect(typeError)) && (await isRetried(plain.effect, fetchFailed)),
    otherBugs: (await isDefect(referenceError)) && (await isRetried(plain.effect, connectionReset)),
    inAsyncFunctions: await tellsApart(plain.effect, typeError, fetchFailed),
  }),
};

const typeError = () => new TypeError('order.total is not a function');
const referenceError = () => new ReferenceError('total is not defined');
const connectionReset = () =>
  Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
const fetchFailed = () => new TypeError('fetch failed', { cause: connectionReset() });

async function choosy(call: Caller): Promise<Findings> {
  const typeErrors = await tellsApart(call, typeError, fetchFailed);
  const otherBugs = await tellsApart(call, referenceError, connectionReset);
  return { typeErrors, otherBugs, inAsyncFunctions: typeErrors };
}

async function tellsApart(
  call: Caller,
  bug: () => Error,
  networkError: () => Error,
): Promise<boolean> {
  return !(await isRetried(call, bug)) && (await isRetried(call, networkError));
}

async function isRetried(call: Caller, error: () => Error): Promise<boolean> {
  const job = failing(Infinity, error);
  watch(call(() => job()));
  await advance(10_000);
  return job.calls.length === 3;
}

/** Only what may fail is a promise there; a bug in the code around it throws inside an effect. */
async function isDefect(bug: () => Error): Promise<boolean> {
  let calls = 0;
  const program = Effect.suspend((): Effect.Effect<string, unknown> => {
    calls += 1;
    throw bug();
  });
  watch(Effect.runPromise(Effect.retry(program, { times: 2 })));
  await advance(10_000);
  return calls === 1;
}

export const bodies: Experiments = {
  Redrive: () =>
    discard((server) =>
      retry(() => server(), { base: 10 }, { retryIf: { result: ({ ok }) => !ok } }),
    ),
  'p-retry': () => discard((server) => plain['p-retry'](() => server())),
  cockatiel: () =>
    discard((server) =>
      cockatielRetry(
        handleWhenResult((result) => !(result as Response).ok),
        { maxAttempts: 2 },
      ).execute(() => server()),
    ),
  'async-retry': () => discard((server) => plain['async-retry'](() => server())),
  'exponential-backoff': () => discard((server) => plain['exponential-backoff'](() => server())),
  effect: () =>
    discard((server) =>
      Effect.gen(function* () {
        const client = HttpClient.withScope(yield* HttpClient.HttpClient);
        return yield* client.get('https://api.example/orders').pipe(
          Effect.flatMap(HttpClientResponse.filterStatusOk),
          Effect.flatMap((response) => response.text),
          Effect.scoped,
          Effect.retry({ times: 2, schedule: Schedule.spaced(10) }),
        );
      }).pipe(
        Effect.provide(FetchHttpClient.layer),
        Effect.provideService(FetchHttpClient.Fetch, (_, init) =>
          server(init?.signal ?? undefined),
        ),
        Effect.runPromise,
      ),
    ),
};

type Server = (signal?: AbortSignal) => Promise<Response>;

async function discard(call: (server: Server) => Promise<unknown>): Promise<Findings> {
  let cancelled = false;
  const server = work((count, signal) => {
    if (count > 1) return new Response('done');
    const cancel = () => {
      cancelled = true;
    };
    // A fetch that is aborted cancels its body too.
    signal?.addEventListener('abort', cancel);
    return new Response(new ReadableStream({ cancel }), { status: 503 });
  });
  const outcome = watch(call(server));
  await advance(10_000);
  await settle();
  return { cancelled: cancelled && outcome.state === 'resolved' };
}

/** Traits about knowing beforehand, and afterwards: ports, policies as data, decisions that can be replayed. */
import {
  ExponentialBackoff,
  fullJitterGenerator,
  handleAll,
  retry as cockatielRetry,
} from 'cockatiel';
import { Duration, Effect, Fiber, Hash, Random, Schedule } from 'effect';
import { TestClock } from 'effect/testing';
import { backOff } from 'exponential-backoff';
import pRetry, { type Options } from 'p-retry';
import { decide, definePolicy, type Facts, parsePolicy, retry, type RetryEvent } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { asyncRetry, attempt, type Caller, jittered, jitteredEffect, plain } from './callers.ts';
import { delaysOf, type Experiments, failing, type Findings, settle, watch } from './lab.ts';

const HOUR_MS = 3_600_000;

/** Delays in whole ms that agree by chance only once in many thousand years of tests. */
const wide = { retries: 3, baseMs: 1_000_000, capMs: 10_000_000 };

const succeeds = async () => 'done';
const fails = async (): Promise<string> => {
  throw new Error('down');
};

export const ports: Experiments = {
  Redrive: async () => {
    const clock = virtualClock();
    const job = failing(1);
    const call = retry(() => job(), { strategy: 'fixed', base: '1h', jitter: 'none' }, { clock });
    const elapsedMs = await clock.run();
    return {
      clock: elapsedMs === HOUR_MS && (await call) === 'done',
      random: await repeats(() =>
        retry(fails, { base: wide.baseMs, cap: wide.capMs }, { random: seededRandom(7) }),
      ),
    };
  },
  'p-retry': () => nothingHandedIn(plain['p-retry'], jittered['p-retry']),
  cockatiel: () => nothingHandedIn(plain.cockatiel, jittered.cockatiel),
  'async-retry': () => nothingHandedIn(plain['async-retry'], jittered['async-retry']),
  'exponential-backoff': () =>
    nothingHandedIn(plain['exponential-backoff'], jittered['exponential-backoff']),
  effect: async () => {
    const program = Effect.gen(function* () {
      const retried = Effect.retry(attempt(failing(1)), Schedule.spaced('1 hour'));
      const fiber = yield* Effect.forkChild(retried);
      yield* Effect.promise(settle);
      yield* TestClock.adjust('1 hour');
      return yield* Fiber.join(fiber);
    });
    const result = await Effect.runPromise(Effect.provide(program, TestClock.layer()));
    return {
      clock: result === 'done',
      random: await repeats(() =>
        Effect.runPromise(jitteredEffect(fails, wide).pipe(Random.withSeed('7'))),
      ),
    };
  },
};

/** There is no place for a clock or a source of random numbers: only the globals could be replaced. */
async function nothingHandedIn(
  call: Caller,
  jitteredCall: typeof jittered.Redrive,
): Promise<Findings> {
  const job = failing(1);
  const outcome = watch(call(() => job(), { waitMs: HOUR_MS }));
  await settle();
  return {
    clock: outcome.state !== 'pending',
    random: await repeats(() => jitteredCall(fails, wide)),
  };
}

/** Two runs ask for the same delays, and more than one length of them. */
async function repeats(call: () => Promise<unknown>): Promise<boolean> {
  const [first, second] = [await delaysOf(call), await delaysOf(call)];
  return new Set(first).size > 1 && String(first) === String(second);
}

interface Configurable {
  /** Sets a call up by what was parsed from JSON, in the library's own words, and makes it. */
  configure: (json: never) => Promise<unknown>;
  /** Each has one wrong value: a number of attempts, or a delay. */
  wrongValues: readonly string[];
  misspelt: string;
  /** Of the policy that the JSON text means. */
  fingerprint: (json: never) => unknown;
  /** Twice the same policy, if not in the same words, and a different one. */
  policies: readonly [same: string, again: string, other: string];
}

export const data: Experiments = {
  Redrive: () =>
    configuring({
      configure: (json) => retry(succeeds, parsePolicy(json)),
      wrongValues: ['{"maxAttempts":"many"}', '{"base":-5}'],
      misspelt: '{"maxAttemps":3}',
      fingerprint: (json) => parsePolicy(json).fingerprint,
      policies: ['{"base":"1s","cap":"30s"}', '{"cap":30000,"base":1000}', '{"base":"2s"}'],
    }),
  'p-retry': () =>
    configuring({
      configure: (json: Options) => pRetry(succeeds, json),
      wrongValues: ['{"retries":"many"}', '{"minTimeout":-5}'],
      misspelt: '{"retires":3}',
      ...noPolicyObject,
    }),
  cockatiel: () => {
    const make = ({ maxAttempts, ...backoff }: { maxAttempts: number }) =>
      cockatielRetry(handleAll, { maxAttempts, backoff: new ExponentialBackoff(backoff) });
    return configuring({
      configure: async (json) => make(json).execute(succeeds),
      wrongValues: ['{"maxAttempts":"many"}', '{"maxAttempts":3,"initialDelay":-5}'],
      misspelt: '{"maxAttemps":3}',
      ...noPolicyObject,
    });
  },
  'async-retry': () =>
    configuring({
      configure: async (json) => asyncRetry(succeeds, json),
      wrongValues: ['{"retries":"many"}', '{"minTimeout":-5}'],
      misspelt: '{"retires":3}',
      ...noPolicyObject,
    }),
  'exponential-backoff': () =>
    configuring({
      configure: async (json) => backOff(succeeds, json),
      wrongValues: ['{"numOfAttempts":"many"}', '{"startingDelay":-5}'],
      misspelt: '{"numOfAttemps":3}',
      ...noPolicyObject,
    }),
  effect: () => {
    const schedule = ({ base }: { base: number }) => Schedule.exponential(base);
    return configuring({
      configure: async (json: { times: number; base: number }) =>
        Effect.runPromise(
          Effect.retry(attempt(succeeds), { times: json.times, schedule: schedule(json) }),
        ),
      wrongValues: ['{"times":"many","base":100}', '{"times":3,"base":-5}'],
      misspelt: '{"tims":3,"base":100}',
      fingerprint: (json) => Hash.hash(schedule(json)),
      policies: ['{"base":1000}', '{"base":1000}', '{"base":2000}'],
    });
  },
};

const noPolicyObject: Pick<Configurable, 'fingerprint' | 'policies'> = {
  fingerprint: () => undefined,
  policies: ['{}', '{}', '{}'],
};

async function configuring(library: Configurable): Promise<Findings> {
  const refuses = async (text: string) => {
    try {
      await library.configure(JSON.parse(text) as never);
      return false;
    } catch {
      return true;
    }
  };
  const verdicts: boolean[] = [];
  for (const text of library.wrongValues) verdicts.push(await refuses(text));
  const [same, again, other] = library.policies.map((text) =>
    library.fingerprint(JSON.parse(text) as never),
  );
  return {
    refusesValues: verdicts.every(Boolean),
    refusesNames: await refuses(library.misspelt),
    fingerprint: same !== undefined && same === again && same !== other,
  };
}

export const replay: Experiments = {
  Redrive: async () => {
    const policy = definePolicy({ base: wide.baseMs, cap: wide.capMs });
    const events: RetryEvent[] = [];
    const call = () => retry(fails, policy, { key: 'order-17', on: (event) => events.push(event) });
    const sameKeySameDelays = await repeats(call);
    const last = events.filter((event) => event.type === 'wait').at(-1);
    const facts = JSON.parse(JSON.stringify(last?.facts)) as Facts;
    const again = decide(policy, facts);
    return {
      sameKeySameDelays,
      fromItsRecord: again.action === 'retry' && again.delayMs === last?.delayMs,
    };
  },
  'p-retry': () => nothingToAsk(jittered['p-retry']),
  cockatiel: async () => {
    // Its generators can be asked, but draw anew each time.
    const options = { initialDelay: wide.baseMs, maxDelay: wide.capMs, exponent: 2 };
    const ask = () => fullJitterGenerator(2, { ...options, generator: fullJitterGenerator })[0];
    const [first, second] = [ask(), ask()];
    return { ...(await nothingToAsk(jittered.cockatiel)), fromItsRecord: first === second };
  },
  'async-retry': () => nothingToAsk(jittered['async-retry']),
  'exponential-backoff': () => nothingToAsk(jittered['exponential-backoff']),
  effect: async () => {
    const schedule = Schedule.exponential(wide.baseMs).pipe(Schedule.jittered);
    const steps: { now: number; delayMs: number }[] = [];
    const noted = Schedule.tap(schedule, ({ now, duration }) =>
      Effect.sync(() => steps.push({ now, delayMs: Duration.toMillis(duration) })),
    );
    const call = () =>
      Effect.retry(attempt(fails), { times: 3, schedule: noted }).pipe(
        Random.withSeed('order-17'),
        Effect.runPromise,
      );
    const sameKeySameDelays = await repeats(call);
    // The third decision of a call, asked for again with all that was noted of it.
    const third = steps[2] ?? { now: 0, delayMs: -1 };
    const [, again] = await Schedule.toStep(schedule).pipe(
      Effect.flatMap((step) => step(third.now, undefined)),
      Random.withSeed('order-17'),
      Effect.runPromise,
    );
    return { sameKeySameDelays, fromItsRecord: Duration.toMillis(again) === third.delayMs };
  },
};

/** No key can be given, and no function tells what was or would be decided. */
async function nothingToAsk(call: typeof jittered.Redrive): Promise<Findings> {
  return {
    sameKeySameDelays: await repeats(() => call(fails, wide)),
    fromItsRecord: false,
  };
}

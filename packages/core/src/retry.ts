import { AttemptContext } from './attempt.ts';
import { ConfigError, type Fault } from './errors.ts';
import { type DefinedPolicy, definePolicy } from './policy.ts';
import type { Policy } from './policy-fields.ts';
import { run } from './run.ts';
import type { Attempt, Runtime } from './runtime.ts';

/**
 * Calls a function until it works or the policy gives up.
 *
 * @example
 * const user = await retry(({ signal }) => fetchUser(42, signal), { maxAttempts: 5, deadline: '10s' });
 */
export function retry<T>(
  fn: (attempt: Attempt) => T,
  policy?: Policy,
  runtime?: Runtime<Awaited<T>>,
): Promise<Awaited<T>> {
  try {
    return start(fn, policy === undefined ? defaultPolicy() : definePolicy(policy), runtime);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** A reusable `retry`: the policy is checked once, here. */
export function retrier(policy?: Policy, runtime?: Runtime): Retrier {
  const checked = definePolicy(policy);
  return (fn, more) => retry(fn, checked, more ? { ...(runtime as object), ...more } : runtime);
}

export type Retrier = <T>(
  fn: (attempt: Attempt) => T,
  runtime?: Runtime<Awaited<T>>,
) => Promise<Awaited<T>>;

/** The same function with retries: its parameters, `this` and result type are kept. */
export function retryable<This, Args extends unknown[], T>(
  fn: (this: This, ...args: Args) => T,
  policy?: Policy,
  runtime?: Runtime<Awaited<T>>,
): (this: This, ...args: Args) => Promise<Awaited<T>> {
  assertFunction(fn);
  const checked = definePolicy(policy);
  return function (this: This, ...args: Args) {
    return start(() => fn.apply(this, args), checked, runtime);
  };
}

let usual: DefinedPolicy | undefined;

function defaultPolicy(): DefinedPolicy {
  return (usual ??= definePolicy());
}

function start<T>(
  fn: (attempt: Attempt) => T,
  policy: DefinedPolicy,
  runtime: Runtime<Awaited<T>> | undefined,
): Promise<Awaited<T>> {
  assertFunction(fn);
  if (policy.attemptTimeout !== undefined || policy.deadline !== undefined || isWatched(runtime)) {
    if (runtime) checkRuntime(runtime);
    return run(fn, policy, runtime);
  }
  // The fast path: nothing to watch, so a first attempt that works costs one small object and one `then`.
  const context = new AttemptContext(1, policy.maxAttempts, runtime);
  let result;
  try {
    result = fn(context);
  } catch (error) {
    return run(fn, policy, runtime, { context, error });
  }
  return (result instanceof Promise ? result : Promise.resolve(result)).then(
    undefined,
    (error: unknown) => run(fn, policy, runtime, { context, error }),
  ) as Promise<Awaited<T>>;
}

function isWatched(runtime: Runtime<never> | undefined): boolean {
  if (runtime === undefined) return false;
  const { signal, on, retryIf, budget, breaker, parent } = runtime;
  return (signal ?? on ?? retryIf ?? budget ?? breaker ?? parent) !== undefined;
}

/** A mistake here would else show as a TypeError from deep inside. */
function checkRuntime(runtime: Runtime<never>): void {
  const faults: Fault[] = [];
  for (const [name, method] of liveParts) {
    const part = runtime[name] as Record<string, unknown> | null | undefined;
    if (part != null && typeof part[method] !== 'function') {
      const message = `must be an object with the method ${method}, as from ${makers[name]}.`;
      faults.push({ path: name, code: 'INVALID_VALUE', message });
    }
  }
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', 'The runtime has faults:', faults);
}

const makers = {
  signal: 'an AbortController',
  budget: 'createBudget',
  breaker: 'createBreaker',
  clock: 'virtualClock',
};
const liveParts = [
  ['signal', 'addEventListener'],
  ['budget', 'spend'],
  ['breaker', 'admit'],
  ['clock', 'setTimer'],
] as const;

function assertFunction(fn: unknown): void {
  if (typeof fn === 'function') return;
  const got = fn === null ? 'null' : typeof fn;
  throw new ConfigError(
    'NOT_A_FUNCTION',
    `What is to be retried must be a function, called anew for each attempt; got ${got}. Write retry(() => work()), not retry(work()).`,
  );
}

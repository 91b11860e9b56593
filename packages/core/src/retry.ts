import { chance } from './decide.ts';
import { examine } from './failure/evidence.ts';
import { type DefinedPolicy, definePolicy } from './policy/policy.ts';
import type { Policy } from './policy/policy-fields.ts';
import type { Kit } from './run/run.ts';
import type { Attempt, Runtime } from './run/runtime.ts';
import { checkRuntime } from './run/runtime-check.ts';
import { start } from './run/start.ts';
import { isObject } from './options/fields.ts';
import { notAFunction } from './options/not-a-function.ts';

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
    assertFunction(fn);
    if (runtime !== undefined) checkRuntime(runtime);
    const checked = policy === undefined ? defaultPolicy() : definePolicy(policy);
    return start(fn, checked, kit, runtime);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** A reusable `retry`: the policy is checked once, here. */
export function retrier(policy?: Policy, runtime?: Runtime): Retrier {
  const checked = definePolicy(policy);
  if (runtime !== undefined) checkRuntime(runtime);
  return (fn, more) => {
    if (more === undefined) return retry(fn, checked, runtime);
    // What is no object would vanish in the spread: it is passed on, so that it is refused.
    return retry(fn, checked, isObject(more) ? { ...(runtime as object), ...more } : more);
  };
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
  if (runtime !== undefined) checkRuntime(runtime);
  return function (this: This, ...args: Args) {
    return start(() => fn.apply(this, args), checked, kit, runtime);
  };
}

const kit: Kit = { examine, chance };

let usual: DefinedPolicy | undefined;

function defaultPolicy(): DefinedPolicy {
  return (usual ??= definePolicy());
}

function assertFunction(fn: unknown): void {
  if (typeof fn !== 'function') throw notAFunction(fn);
}

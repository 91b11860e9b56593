/**
 * The same `retry` on the same loop, for bundles where every kilobyte counts. A policy is taken as it is written, without
 * checks, and errors are not classified: every error has the class `unknown`, so it is retried unless `neverOn`, `retryIf`
 * or `classify` says otherwise. Only an AbortError is not. Whatever else is needed can be imported from `redrive`: a bundler takes
 * no more than that.
 */
import { durationMs } from './policy/duration.ts';
import type { Failure } from './failure/failure.ts';
import type { Values } from './options/fields.ts';
import { complete, CompletePolicy } from './policy/policy.ts';
import type { Policy } from './policy/policy-fields.ts';
import type { Retrier } from './retry.ts';
import { type Kit, run } from './run/run.ts';
import type { Attempt, Runtime } from './run/runtime.ts';
import { systemRandom } from './system.ts';

export type { AttemptRecord, RetryError } from './errors.ts';
export type { Failure, FailureClass } from './failure/failure.ts';
export type { Policy } from './policy/policy-fields.ts';
export type { Retrier } from './retry.ts';
export type {
  Attempt,
  BeforeRetry,
  Listeners,
  RetryEvent,
  RetryIf,
  Runtime,
} from './run/runtime.ts';

/** `retry` without the checks of policy and runtime, and without classification. */
export async function retry<T>(
  fn: (attempt: Attempt) => T,
  policy?: Policy,
  runtime?: Runtime<Awaited<T>>,
): Promise<Awaited<T>> {
  return run(asFunction(fn), asWritten(policy), kit, runtime);
}

/** `retrier` without the checks of policy and runtime, and without classification. */
export function retrier(policy?: Policy, runtime?: Runtime): Retrier {
  const known = asWritten(policy);
  return (fn, more) => retry(fn, known, more ? { ...(runtime as object), ...more } : runtime);
}

/** `retryable` without the checks of policy and runtime, and without classification. */
export function retryable<This, Args extends unknown[], T>(
  fn: (this: This, ...args: Args) => T,
  policy?: Policy,
  runtime?: Runtime<Awaited<T>>,
): (this: This, ...args: Args) => Promise<Awaited<T>> {
  const known = asWritten(policy);
  asFunction(fn);
  return function (this: This, ...args: Args) {
    return retry(() => fn.apply(this, args), known, runtime);
  };
}

let usual: CompletePolicy | undefined;

/** A policy from `definePolicy` is taken as it is. It is needed for overrides, which must be checked. */
function asWritten(policy: Policy | undefined): CompletePolicy {
  if (policy instanceof CompletePolicy) return policy;
  if (policy === undefined) return (usual ??= asWritten({}));
  const values: Values = {};
  for (const [name, value] of Object.entries(policy)) {
    values[name] = name === 'schedule' ? (value as unknown[]).map(inMs) : inMs(value);
  }
  if (values['overrides']) throw new TypeError('overrides need definePolicy.');
  return new CompletePolicy(complete(values));
}

function inMs(value: unknown): unknown {
  const ms = typeof value === 'string' ? durationMs(value) : NaN;
  return ms >= 0 ? ms : value;
}

function asFunction<F>(fn: F): F {
  if (typeof fn === 'function') return fn;
  throw new TypeError('Write retry(() => work()), not retry(work()).');
}

const kit: Kit = {
  // Kept in the facts, so that the decision of an event can be made again.
  chance: (facts) => (facts.random ??= systemRandom()),
  /** What an error says of itself at first sight. */
  examine(thrown) {
    try {
      const { name, message, code, status, retryAfterMs } = Object(thrown) as Values;
      const kind = name === 'AbortError' ? 'technical' : 'unknown';
      return { class: kind, names: [name], message, code, status, retryAfterMs } as Failure;
    } catch {
      // A getter or a proxy threw: then nothing is known.
      return { class: 'unknown' };
    }
  },
};

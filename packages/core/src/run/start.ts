import { AttemptContext } from './attempt.ts';
import type { CompletePolicy } from '../policy/policy.ts';
import { type Kit, run } from './run.ts';
import type { Attempt, Runtime } from './runtime.ts';

/** Starts a call: by the fast path where nothing has to be watched, else in the loop. */
export function start<T>(
  fn: (attempt: Attempt) => T,
  policy: CompletePolicy,
  kit: Kit,
  runtime: Runtime<Awaited<T>> | undefined,
): Promise<Awaited<T>> {
  if (policy.attemptTimeout !== undefined || policy.deadline !== undefined || isWatched(runtime)) {
    return run(fn, policy, kit, runtime);
  }
  // The fast path: nothing to watch, so a first attempt that works costs one small object and one `then`.
  const context = new AttemptContext(1, policy.maxAttempts, runtime);
  let result;
  try {
    result = fn(context);
  } catch (error) {
    return run(fn, policy, kit, runtime, { context, error });
  }
  return (result instanceof Promise ? result : Promise.resolve(result)).then(
    undefined,
    (error: unknown) => run(fn, policy, kit, runtime, { context, error }),
  ) as Promise<Awaited<T>>;
}

function isWatched(runtime: Runtime<never> | undefined): boolean {
  if (runtime === undefined) return false;
  const { signal, on, retryIf, budget, breaker, bulkhead, parent } = runtime;
  return (signal ?? on ?? retryIf ?? budget ?? breaker ?? bulkhead ?? parent) !== undefined;
}

/** The retry of cockatiel, and the same by the rows of its table in the guide. Both are made from one description. */
import {
  ConstantBackoff,
  ExponentialBackoff,
  fullJitterGenerator,
  halfJitterGenerator,
  handleAll,
  handleType,
  handleWhen,
  handleWhenResult,
  type IBackoffFactory,
  IterableBackoff,
  noJitterGenerator,
  retry as cockatielRetry,
} from 'cockatiel';
import { isRetryError, type Policy, retry, type Runtime } from 'redrive';

export class NetworkError extends Error {}

export interface Described {
  handles?: 'all' | 'NetworkError' | 'when' | 'result' | 'all or result';
  maxAttempts?: number;
  constant?: number;
  list?: number[];
  exponential?: { initialDelay?: number; maxDelay?: number; generator: 'none' | 'full' | 'half' };
}

export type Call = (
  fn: (attempt: number) => Promise<unknown>,
  signal?: AbortSignal,
) => Promise<unknown>;

const isBusy = (result: unknown) => result === 'busy';
const isNetworkError = (error: unknown) => error instanceof NetworkError;

export function cockatielCall(described: Described): Call {
  const { handles = 'all', maxAttempts } = described;
  const handled = {
    all: handleAll,
    NetworkError: handleType(NetworkError),
    when: handleWhen(isNetworkError),
    result: handleWhenResult(isBusy),
    'all or result': handleAll.orWhenResult(isBusy),
  }[handles];
  const backoff = backoffOf(described);
  const policy = cockatielRetry(handled, {
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(backoff && { backoff }),
  });
  return (fn, signal) => policy.execute(({ attempt }) => fn(attempt + 1), signal);
}

function backoffOf({
  constant,
  list,
  exponential,
}: Described): IBackoffFactory<unknown> | undefined {
  if (constant !== undefined) return new ConstantBackoff(constant);
  if (list) return new IterableBackoff(list);
  if (!exponential) return undefined;
  const { generator, ...delays } = exponential;
  const generators = {
    none: noJitterGenerator,
    full: fullJitterGenerator,
    half: halfJitterGenerator,
  };
  return new ExponentialBackoff({ ...delays, generator: generators[generator] });
}

export function cockatielShim(described: Described): Call {
  const { handles = 'all', maxAttempts } = described;
  const byHandler: Record<typeof handles, [Policy, Runtime]> = {
    all: [{ retryOn: ['any'] }, {}],
    NetworkError: [{ retryOn: ['NetworkError'] }, {}],
    when: [{}, { retryIf: isNetworkError }],
    result: [{}, { retryIf: { result: isBusy, error: () => false } }],
    'all or result': [{ retryOn: ['any'] }, { retryIf: { result: isBusy } }],
  };
  const [what, when] = byHandler[handles];
  const policy: Policy = {
    ...what,
    ...delaysOf(described),
    maxAttempts: maxAttempts === undefined ? 1_000_000_000 : maxAttempts + 1,
  };
  const runtime: Runtime = { ...when, random: Math.random };
  return async (fn, signal) => {
    try {
      return await retry(({ attempt }) => fn(attempt), policy, { ...runtime, signal });
    } catch (error) {
      if (!isRetryError(error)) throw error;
      if ('result' in error) return error.result;
      throw error.cause;
    }
  };
}

function delaysOf({ constant, list, exponential }: Described): Policy {
  if (constant !== undefined) return { strategy: 'fixed', base: constant, jitter: 'none' };
  if (list) return { schedule: list, jitter: 'none' };
  if (!exponential) return { base: 0 };
  const { initialDelay = 128, maxDelay = 30_000, generator } = exponential;
  const jitter = ({ none: 'none', full: 'full', half: 'equal' } as const)[generator];
  return { base: initialDelay, cap: maxDelay, jitter };
}

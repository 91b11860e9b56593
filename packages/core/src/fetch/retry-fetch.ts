import { specificity } from '../decide.ts';
import { ConfigError, type Fault, isRetryError } from '../errors.ts';
import { examine } from '../failure/evidence.ts';
import { show } from '../options/faults.ts';
import { isObject } from '../options/fields.ts';
import { type DefinedPolicy, definePolicy } from '../policy/policy.ts';
import { type Policy, policyFields } from '../policy/policy-fields.ts';
import { retry } from '../retry.ts';
import type { RetryIf, Runtime } from '../run/runtime.ts';
import { explainRuntime } from '../run/runtime-check.ts';
import { type FetchInit, type FetchInput, shapeOf } from './request-shape.ts';
import { ResponseError } from './response-error.ts';

export interface RetryFetchOptions extends Runtime<Response> {
  /** The last response where it is still a failure: returned, as `fetch` would (the default), or thrown. */
  lastResponse?: 'return' | 'throw' | undefined;
  /**
   * The request may be sent twice. By default by its method: not a POST or PATCH, unless it has an `Idempotency-Key`. One that
   * may not is tried again only where it surely was not executed, as by `idempotent: false` of a policy, which always holds.
   */
  idempotent?: boolean | undefined;
  /** Instead of the global `fetch`. */
  fetch?: ((input: FetchInput, init?: FetchInit) => Promise<Response>) | undefined;
}

/**
 * `fetch` with retries: a network error, 408, 425, 429 and 5xx are failures. `Retry-After` is honoured, the bodies of responses that are
 * not used are cancelled, and only what can be sent again is sent again.
 *
 * @example
 * const response = await retryFetch('https://example.com/orders', { headers }, { maxAttempts: 5, attemptTimeout: '5s' });
 */
export async function retryFetch(
  input: FetchInput,
  init?: FetchInit,
  policy?: Policy,
  options: RetryFetchOptions = {},
): Promise<Response> {
  const { lastResponse = 'return', idempotent, fetch: ownFetch, ...runtime } = check(options, init);
  const shape = shapeOf(input, init);
  const given = definePolicy(policy);
  const mayRepeat = given.idempotent && (idempotent ?? shape.isIdempotent);
  const signal = joined(shape.signal, runtime.signal);
  const send = ownFetch ?? globalThis.fetch;
  try {
    return await retry(
      async (attempt) => {
        const signals = joined(attempt.signal, signal);
        const response = await send(shape.input(), { ...shape.init, signal: signals ?? null });
        if (!isFailure(response, given)) return response;
        throw new ResponseError(response, shape.method, shape.url);
      },
      mayRepeat ? given : definePolicy({ ...policy, idempotent: false }),
      { ...runtime, signal, retryIf: verdict(runtime.retryIf, shape.isOneShot) },
    );
  } catch (error) {
    const cause = isRetryError(error) ? error.cause : error;
    const failed = cause instanceof ResponseError && !cause.isReleased ? cause : undefined;
    if (failed && lastResponse === 'return') return failed.response;
    throw error;
  } finally {
    shape.release();
  }
}

function check(options: RetryFetchOptions, init: FetchInit | undefined): RetryFetchOptions {
  const { lastResponse, idempotent, fetch, ...runtime } = Object(options) as RetryFetchOptions;
  const faults: Fault[] = [];
  explainRuntime(isObject(options) ? runtime : options, faults, ownNames);
  // `fetch` ignores what it does not know, so a policy in the wrong place would be lost without a word.
  for (const name in init) {
    if (!Object.hasOwn(policyFields, name)) continue;
    const message = `is a field of the policy, the third argument: retryFetch(input, {}, { ${name}: ... }).`;
    faults.push({ path: `init.${name}`, code: 'UNKNOWN_FIELD', message });
  }
  const wrong = (path: string, value: unknown, wanted: string) => {
    if (value !== undefined)
      faults.push({ path, code: 'INVALID_VALUE', message: `${show(value)} is not ${wanted}.` });
  };
  if (lastResponse !== 'return' && lastResponse !== 'throw')
    wrong('lastResponse', lastResponse, `'return' or 'throw'`);
  if (typeof idempotent !== 'boolean') wrong('idempotent', idempotent, 'true or false');
  if (typeof fetch !== 'function') wrong('fetch', fetch, 'a function');
  if (faults.length > 0)
    throw new ConfigError('INVALID_CONFIG', 'The options of retryFetch have faults:', faults);
  return options;
}

const ownNames = ['lastResponse', 'idempotent', 'fetch'];

/** A status of 400 and more that is transient, or that the policy names. */
function isFailure(response: Response, { retryOn }: DefinedPolicy): boolean {
  if (response.status < 400) return false;
  const failure = examine(response);
  return failure.class === 'transient' || specificity(retryOn, failure) > 0;
}

/** A stream that was sent cannot be sent again, whatever anybody says. */
function verdict(
  own: Runtime<Response>['retryIf'],
  isOneShot: boolean,
): RetryIf<Response> | undefined {
  const given = typeof own === 'function' ? { error: own } : own;
  return isOneShot ? { error: () => false } : given;
}

/** The attempt's signal ends with the attempt, but an abort of the caller's reaches a body that is still being read. */
function joined(
  one: AbortSignal | undefined,
  other: AbortSignal | undefined,
): AbortSignal | undefined {
  return one && other ? AbortSignal.any([one, other]) : (one ?? other);
}

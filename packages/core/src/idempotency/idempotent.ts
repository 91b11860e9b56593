import { ConfigError } from '../errors.ts';
import { show } from '../options/faults.ts';
import { isThenable } from '../run/notify.ts';
import { freshId } from '../system.ts';
import { ask } from './ask.ts';
import { type Call, claim, type Claimed, letGo, storeFailed } from './claim.ts';
import { keyAudit } from './events.ts';
import { IdempotencyError } from './idempotency-error.ts';
import { assertKey, fingerprintOf } from './key.ts';
import { Lease, leaseLost } from './lease.ts';
import { type IdempotentOptions, noOptions, readIdempotentOptions } from './options.ts';
import { failureOutcome, outcomeOf, resultOf } from './outcome.ts';
import {
  type IdempotencyStore,
  isIdempotencyStore,
  type MaybePromise,
  type NewRecord,
  type Outcome,
} from './store.ts';

/** What the work gets. */
export interface Claim {
  /** Aborted when the claim is lost, or by the caller's signal. */
  readonly signal: AbortSignal;
  /**
   * Grows with every claim of the key: a system that remembers the largest one can refuse an owner that comes late.
   * Undefined where the work runs unprotected.
   */
  readonly fencingToken: number | undefined;
}

/**
 * Runs the work once for a key, in all processes that share the store, and gives its result to everybody who asks.
 *
 * The work runs again only after a failure, after the result has expired, or after a crash before the result was
 * recorded (see `afterCrash`). Results are stored as JSON: later callers get what JSON makes of them.
 *
 * @example await idempotent(store, key, ({ signal }) => charge(order, signal), { payload: order });
 */
export function idempotent<T>(
  store: IdempotencyStore,
  key: string,
  fn: (claim: Claim) => T,
  options: IdempotentOptions = noOptions,
): Promise<Awaited<T>> {
  try {
    const call = callOf(store, key, fn, options);
    const claimed = claim(call);
    const result = isThenable(claimed)
      ? claimed.then((late) => proceed(call, fn, late))
      : proceed(call, fn, claimed);
    return Promise.resolve(result);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Everything is checked before anything happens. */
function callOf(
  store: IdempotencyStore,
  key: string,
  fn: unknown,
  options: IdempotentOptions,
): Call {
  if (typeof fn !== 'function') {
    const guess = typeof store === 'string' ? ' Is the store missing?' : '';
    throw new ConfigError(
      'NOT_A_FUNCTION',
      `idempotent(store, key, fn): the third argument must be a function, and is ${show(fn)}.${guess}`,
    );
  }
  assertKey(key);
  assertStore(store);
  const settings = readIdempotentOptions(options);
  const audit = keyAudit(settings, key);
  const fingerprint = fingerprintOf(options.payload);
  return { store, key, owner: ownerToken(), fingerprint, settings, audit, sentAtMs: 0 };
}

function proceed<T>(
  call: Call,
  fn: (claim: Claim) => T,
  claimed: Claimed,
): MaybePromise<Awaited<T>> {
  switch (claimed.state) {
    case 'done':
      return resultOf(claimed) as Awaited<T>;
    case 'unprotected': {
      const signal = call.settings.signal ?? new AbortController().signal;
      return fn({ signal, fencingToken: undefined }) as Awaited<T>;
    }
    case 'claimed':
      return perform(call, fn, claimed);
  }
}

/** Runs the work under its claim, and records what came of it. No promise is made for what is there at once. */
function perform<T>(
  call: Call,
  fn: (claim: Claim) => T,
  { fencingToken }: Extract<Claimed, { state: 'claimed' }>,
): MaybePromise<Awaited<T>> {
  const lease = new Lease(call);
  let result: T;
  try {
    result = fn(new LeasedClaim(lease, fencingToken));
  } catch (error) {
    return failed(call, lease, fencingToken, error);
  }
  if (!isThenable(result)) return succeeded(call, lease, fencingToken, result as Awaited<T>);
  return Promise.resolve(result).then(
    (late) => succeeded(call, lease, fencingToken, late as Awaited<T>),
    (error: unknown) => failed(call, lease, fencingToken, error),
  );
}

function succeeded<T>(call: Call, lease: Lease, fencingToken: number, result: T): MaybePromise<T> {
  lease.stop();
  const outcome = outcomeOf(result, call.settings.maxResultBytes);
  const recorded = record(call, lease, outcome);
  return isThenable(recorded)
    ? recorded.then((late) => resultAfter(call, late, outcome, fencingToken, result))
    : resultAfter(call, recorded, outcome, fencingToken, result);
}

function resultAfter<T>(
  { audit }: Call,
  recorded: Recorded,
  outcome: Outcome,
  fencingToken: number,
  result: T,
): T {
  if (recorded === 'lost') {
    audit.tell('lost', { fencing_token: fencingToken });
    const why =
      'Another caller took over, or the key was cleared, so this result was not recorded.';
    throw leaseLost(why, { result });
  }
  audit.tell(recorded === 'recorded' ? 'record' : 'unrecorded', { fencing_token: fencingToken });
  if (recorded === 'recorded' && outcome.kind === 'unstored') {
    audit.tell('unstored', { why: outcome.text });
    throw new IdempotencyError(
      'RESULT_NOT_STORED',
      `The work was done, but its result was not stored: ${outcome.text}. It is not run again. The error has the result.`,
      { result },
    );
  }
  return result;
}

async function failed(
  call: Call,
  lease: Lease,
  fencingToken: number,
  error: unknown,
): Promise<never> {
  lease.stop();
  await storeOrFree(call, lease, error);
  if (!lease.lost) throw error;
  call.audit.tell('lost', { fencing_token: fencingToken });
  throw leaseLost('', { cause: error });
}

class LeasedClaim implements Claim {
  readonly fencingToken: number;
  readonly #lease: Lease;

  constructor(lease: Lease, fencingToken: number) {
    this.#lease = lease;
    this.fencingToken = fencingToken;
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }
}

/** A failure is stored where that was asked for; otherwise the key is free again. */
async function storeOrFree(call: Call, lease: Lease, error: unknown): Promise<void> {
  const { settings, audit } = call;
  let isStored = false;
  try {
    isStored = !lease.lost && (await settings.storesFailure(error));
  } catch {
    // The error of the work says more than that of a predicate.
  }
  if (!isStored) return letGo(call);
  let recorded: Recorded = 'unrecorded';
  try {
    recorded = await record(call, lease, failureOutcome(error));
  } catch {
    // The same.
  }
  audit.tell(recorded === 'recorded' ? 'record' : 'unrecorded');
}

/**
 * Tries until the record is written, as long as the lease surely holds, and once in any case: the owner's token decides,
 * not the time.
 */
function record(call: Call, lease: Lease, outcome: Outcome): MaybePromise<Recorded> {
  const { store, key, owner, settings } = call;
  const { clock, metadata, expiresInMs, storeTimeoutMs: timeoutMs } = settings;
  const wanted: NewRecord = { outcome };
  if (metadata !== undefined) wanted.metadata = metadata;
  if (expiresInMs !== undefined) wanted.expiresInMs = expiresInMs;
  const patience = store.transactional
    ? { clock, timeoutMs, maxAttempts: 1 }
    : { clock, timeoutMs, forMs: timeoutMs, untilMs: lease.sureUntilMs };
  const isMine = ask(() => store.record(key, owner, wanted), patience);
  if (!isThenable(isMine)) return isMine ? 'recorded' : 'lost';
  return isMine.then(
    (late) => (late ? 'recorded' : 'lost'),
    (error: unknown) => {
      // In a transaction the effect is not done before the record is: the caller has to roll back.
      if (store.transactional) throw storeFailed(error, 'The caller must roll back.');
      return 'unrecorded';
    },
  );
}

type Recorded = 'recorded' | 'lost' | 'unrecorded';

let process: string | undefined;
let calls = 0;

/** Unlike any other in the world: random once per process, and then counted. */
export function ownerToken(): string {
  process ??= `${freshId()}-`;
  return process + ++calls;
}

const known = new WeakSet<IdempotencyStore>();

export function assertStore(store: unknown): asserts store is IdempotencyStore {
  if (known.has(store as IdempotencyStore)) return;
  if (!isIdempotencyStore(store)) {
    throw new ConfigError(
      'INVALID_CONFIG',
      'The first argument is no idempotency store: pass memoryIdempotency(), sqliteIdempotency(file), postgresIdempotency(url) or redisIdempotency(url).',
    );
  }
  known.add(store);
}

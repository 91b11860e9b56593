import { delayFor } from '../policy/backoff.ts';
import { ConfigError } from '../errors.ts';
import { saidBy } from '../options/faults.ts';
import { pause } from '../run/pause.ts';
import { unitRandom } from '../policy/random.ts';
import { freshId } from '../system.ts';
import { ask } from './ask.ts';
import { KeyAudit } from './events.ts';
import { IdempotencyError } from './idempotency-error.ts';
import { assertKey, fingerprintOf, isSamePayload } from './key.ts';
import { Lease, leaseLost } from './lease.ts';
import {
  type IdempotentOptions,
  type IdempotentSettings,
  noOptions,
  readIdempotentOptions,
} from './options.ts';
import { failureOutcome, outcomeOf, resultOf } from './outcome.ts';
import {
  type IdempotencyEntry,
  type IdempotencyStore,
  isIdempotencyStore,
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
export async function idempotent<T>(
  store: IdempotencyStore,
  key: string,
  fn: (claim: Claim) => T,
  options: IdempotentOptions = noOptions,
): Promise<Awaited<T>> {
  if (typeof fn !== 'function') {
    throw new ConfigError('NOT_A_FUNCTION', 'What is to be run once must be a function.');
  }
  assertKey(key);
  assertStore(store);
  const settings = readIdempotentOptions(options);
  const audit = new KeyAudit(settings.audit, settings.subject, key);
  const call: Call = {
    store,
    key,
    owner: ownerToken(),
    fingerprint: fingerprintOf(options.payload),
    settings,
    audit,
  };
  const claimed = await claim(call);
  if (claimed.state === 'done') return resultOf(claimed) as Awaited<T>;
  if (claimed.state === 'unprotected') {
    const signal = settings.signal ?? new AbortController().signal;
    return fn({ signal, fencingToken: undefined }) as Awaited<T>;
  }
  return perform(call, fn, claimed);
}

let process: string | undefined;
let calls = 0;

/** Unlike any other in the world: random once per process, and then counted. */
export function ownerToken(): string {
  process ??= freshId();
  return `${process}-${++calls}`;
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

/** One call of `idempotent`. */
interface Call {
  store: IdempotencyStore;
  key: string;
  owner: string;
  fingerprint: string;
  settings: IdempotentSettings;
  audit: KeyAudit;
}

type Claimed =
  | { state: 'claimed'; fencingToken: number; sentAtMs: number }
  | { state: 'unprotected' }
  | Extract<IdempotencyEntry, { state: 'done' }>;

const pauses = { base: 25, cap: 1000, jitter: 'equal' } as const;

/** The key, or the result of somebody else who had it. */
async function claim(call: Call): Promise<Claimed> {
  const { store, key, owner, fingerprint, settings, audit } = call;
  const { clock, leaseMs, takeOver, storeTimeoutMs, signal } = settings;
  const startedAtMs = clock.monotonic();
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    let sentAtMs = startedAtMs;
    let answer;
    try {
      const request = { key, owner, fingerprint, leaseMs, takeOver };
      const asked = () => {
        sentAtMs = clock.monotonic();
        return store.claim(request);
      };
      // After a statement that failed, a transaction takes no more: the first error is the one that says why.
      const once = store.transactional ? { maxAttempts: 1 } : {};
      answer = await ask(asked, { clock, timeoutMs: storeTimeoutMs, ...once });
    } catch (error) {
      // A claim whose answer was lost would else hold the key for a lease. A transaction is rolled back anyway.
      if (!store.transactional) void letGo(call);
      return unclaimed(call, error);
    }
    if (answer.state === 'claimed') {
      const { fencingToken, claims } = answer;
      if (signal?.aborted) {
        await letGo(call);
        throw signal.reason;
      }
      // Somebody else may have the key by now. A transaction has no lease.
      if (!store.transactional && clock.monotonic() - sentAtMs >= leaseMs) {
        void letGo(call);
        return unclaimed(call, new Error('its answer came after the lease was over'));
      }
      if (claims > 1) audit.tell('expired', { claims, fencing_token: fencingToken });
      return { state: 'claimed', fencingToken, sentAtMs };
    }
    if (!isSamePayload(fingerprint, answer.fingerprint)) throw mismatch(audit);
    if (answer.state === 'done') {
      audit.tell('hit');
      return answer;
    }
    if (answer.state === 'abandoned') throw abandoned(audit);
    const waitedMs = clock.monotonic() - startedAtMs;
    if (!settings.waits || waitedMs >= settings.maxWaitMs) {
      throw conflict(audit, answer.remainingMs, waitedMs);
    }
    if (attempt === 1) audit.tell('wait', { remaining_ms: Math.ceil(answer.remainingMs) });
    const pauseMs = delayFor(pauses, { attempt, random: unitRandom(0, owner, attempt) });
    // When the lease may be over is a good time to look. A store that says 0 does not know.
    const untilFreeMs = Math.ceil(answer.remainingMs) || Infinity;
    const leftMs = settings.maxWaitMs - waitedMs;
    await pause(clock, Math.min(pauseMs, untilFreeMs, leftMs), signal);
  }
}

/** Runs the work under its claim, and records what came of it. */
async function perform<T>(
  call: Call,
  fn: (claim: Claim) => T,
  { fencingToken, sentAtMs }: Extract<Claimed, { state: 'claimed' }>,
): Promise<Awaited<T>> {
  const { settings, audit } = call;
  const lease = new Lease({ ...call, ...settings, sentAtMs });
  let result: Awaited<T>;
  try {
    result = await fn(new LeasedClaim(lease, fencingToken));
  } catch (error) {
    lease.stop();
    await fail(call, lease, error);
    if (!lease.lost) throw error;
    audit.tell('lost', { fencing_token: fencingToken });
    throw leaseLost('', { cause: error });
  }
  lease.stop();
  const outcome = outcomeOf(result, settings.maxResultBytes);
  const recorded = await record(call, lease, outcome);
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

/** A failure is stored where that was asked for; otherwise the key is free again. */
async function fail(call: Call, lease: Lease, error: unknown): Promise<void> {
  const { settings, audit } = call;
  let isStored = false;
  try {
    isStored = !lease.lost && (await settings.storesFailure(error));
  } catch {
    // The error of the work says more than that of a predicate.
  }
  if (!isStored) return letGo(call);
  const recorded = await record(call, lease, failureOutcome(error)).catch(() => 'unrecorded');
  audit.tell(recorded === 'recorded' ? 'record' : 'unrecorded');
}

/**
 * Tries until the record is written, as long as the lease surely holds, and once in any case: the owner's token decides,
 * not the time.
 */
async function record(
  call: Call,
  lease: Lease,
  outcome: Outcome,
): Promise<'recorded' | 'lost' | 'unrecorded'> {
  const { store, key, owner, settings } = call;
  const { clock, metadata, expiresInMs, storeTimeoutMs } = settings;
  const wanted = {
    outcome,
    ...(metadata === undefined ? {} : { metadata }),
    ...(expiresInMs === undefined ? {} : { expiresInMs }),
  };
  const leftMs = Math.max(storeTimeoutMs, lease.sureUntilMs - clock.monotonic());
  const patience = store.transactional ? { maxAttempts: 1 } : { forMs: leftMs };
  try {
    const isMine = await ask(() => store.record(key, owner, wanted), {
      clock,
      timeoutMs: storeTimeoutMs,
      ...patience,
    });
    return isMine ? 'recorded' : 'lost';
  } catch (error) {
    // In a transaction the effect is not done before the record is: the caller has to roll back.
    if (store.transactional) throw storeFailed(error, 'The caller must roll back.');
    return 'unrecorded';
  }
}

/** Frees the key, trying for as long as one call may take. Where that fails, the end of the lease does. */
async function letGo({ store, key, owner, settings }: Call): Promise<void> {
  const { clock, storeTimeoutMs: timeoutMs } = settings;
  try {
    const patience = store.transactional ? { maxAttempts: 1 } : { forMs: timeoutMs };
    await ask(() => store.release(key, owner), { clock, timeoutMs, ...patience });
  } catch {
    // The caller gets the error of the work, which says more.
  }
}

function unclaimed({ store, audit, settings }: Call, error: unknown): { state: 'unprotected' } {
  const then = store.transactional ? ' The caller must roll back.' : '';
  const failed = storeFailed(error, `The work was not run.${then}`);
  audit.tell(settings.failOpen ? 'unprotected' : 'refused', { error: saidBy(failed.cause) });
  if (settings.failOpen) return { state: 'unprotected' };
  throw failed;
}

export function storeFailed(error: unknown, then: string): IdempotencyError {
  const { cause } = Object(error) as { cause?: unknown };
  const last = cause ?? error;
  return new IdempotencyError(
    'IDEMPOTENCY_STORE_FAILED',
    `The idempotency store could not be asked (${saidBy(last)}). ${then}`,
    { cause: last },
  );
}

function conflict(audit: KeyAudit, remainingMs: number, waitedMs: number): IdempotencyError {
  audit.tell('conflict', { state: 'held', waited_ms: Math.round(waitedMs) });
  const waited = waitedMs > 0 ? ` This call waited for ${Math.round(waitedMs)} ms.` : '';
  return new IdempotencyError(
    'IDEMPOTENCY_CONFLICT',
    `Another caller runs the work of this idempotency key now.${waited} Come back later for its result.`,
    { retryAfterMs: Math.ceil(remainingMs) },
  );
}

function abandoned(audit: KeyAudit): IdempotencyError {
  audit.tell('conflict', { state: 'abandoned' });
  return new IdempotencyError(
    'IDEMPOTENCY_ABANDONED',
    'An earlier caller began the work of this idempotency key and was not heard of again, so nobody knows whether it was done. Find out, then call clearIdempotency to let it run, or recordResult to mark it as done.',
  );
}

function mismatch(audit: KeyAudit): IdempotencyError {
  audit.tell('mismatch');
  return new IdempotencyError(
    'IDEMPOTENCY_MISMATCH',
    'This idempotency key was used with another payload before. Use a new key for new work.',
  );
}

export function assertStore(store: unknown): asserts store is IdempotencyStore {
  if (isIdempotencyStore(store)) return;
  throw new ConfigError(
    'INVALID_CONFIG',
    'The first argument is no idempotency store: pass memoryIdempotency(), sqliteIdempotency(file), postgresIdempotency(url) or redisIdempotency(url).',
  );
}

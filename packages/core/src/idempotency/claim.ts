import { delayFor } from '../policy/backoff.ts';
import { saidBy } from '../options/faults.ts';
import { isThenable } from '../run/notify.ts';
import { pause } from '../run/pause.ts';
import { unitRandom } from '../policy/random.ts';
import { ask } from './ask.ts';
import type { KeyAudit } from './events.ts';
import { IdempotencyError } from './idempotency-error.ts';
import { isSamePayload } from './key.ts';
import type { IdempotentSettings } from './options.ts';
import type {
  ClaimAnswer,
  ClaimRequest,
  IdempotencyEntry,
  IdempotencyStore,
  MaybePromise,
} from './store.ts';

/** One call of `idempotent`. */
export interface Call {
  store: IdempotencyStore;
  key: string;
  owner: string;
  fingerprint: string;
  settings: IdempotentSettings;
  audit: KeyAudit;
  /** When the claim was sent last, by the monotonic clock: the store's lease ends later than one counted from there. */
  sentAtMs: number;
}

export type Claimed =
  | Extract<ClaimAnswer, { state: 'claimed' }>
  | { state: 'unprotected' }
  | Extract<IdempotencyEntry, { state: 'done' }>;

type Held = Extract<IdempotencyEntry, { state: 'held' }>;

/** The key, or the result of somebody else who had it. At once where the store answers at once. */
export function claim(call: Call): MaybePromise<Claimed> {
  const tried = tryClaim(call);
  // The first try was sent then, unless it had to be repeated.
  const startedAtMs = call.sentAtMs;
  if (isThenable(tried)) return tried.then((late) => claimedBy(call, late, startedAtMs));
  return claimedBy(call, tried, startedAtMs);
}

function claimedBy(call: Call, tried: Claimed | Held, startedAtMs: number): MaybePromise<Claimed> {
  return tried.state === 'held' ? wait(call, tried, startedAtMs) : tried;
}

const pauses = { base: 25, cap: 1000, jitter: 'equal' } as const;

/** Until the one who holds the key is done, or gone. */
async function wait(call: Call, first: Held, startedAtMs: number): Promise<Claimed> {
  const { owner, settings, audit } = call;
  const { clock, signal } = settings;
  let held = first;
  for (let attempt = 1; ; attempt++) {
    const waitedMs = clock.monotonic() - startedAtMs;
    if (!settings.waits || waitedMs >= settings.maxWaitMs) {
      throw conflict(audit, held.remainingMs, waitedMs);
    }
    if (attempt === 1) audit.tell('wait', { remaining_ms: Math.ceil(held.remainingMs) });
    const pauseMs = delayFor(pauses, { attempt, random: unitRandom(0, owner, attempt) });
    // When the lease may be over is a good time to look. A store that says 0 does not know.
    const untilFreeMs = Math.ceil(held.remainingMs) || Infinity;
    const leftMs = settings.maxWaitMs - waitedMs;
    await pause(clock, Math.min(pauseMs, untilFreeMs, leftMs), signal);
    const tried = await tryClaim(call);
    if (tried.state !== 'held') return tried;
    held = tried;
  }
}

function tryClaim(call: Call): MaybePromise<Claimed | Held> {
  const { store, key, owner, fingerprint, settings } = call;
  const { clock, leaseMs, takeOver, storeTimeoutMs: timeoutMs, signal } = settings;
  signal?.throwIfAborted();
  const request: ClaimRequest = { key, owner, fingerprint, leaseMs, takeOver };
  const asked = () => {
    const sentAtMs = (call.sentAtMs = clock.monotonic());
    const answer = store.claim(request);
    if (!isThenable(answer) || store.transactional) return answer;
    return answer.then((late) => {
      const isOver = clock.monotonic() - sentAtMs >= leaseMs;
      if (late.state !== 'claimed' || !isOver) return late;
      // Somebody else may have the key by now. Asked once more, the store says who has it.
      throw new Error('its answer came after the lease was over');
    });
  };
  // After a statement that failed, a transaction takes no more: the first error is the one that says why.
  const maxAttempts = store.transactional ? 1 : undefined;
  const answer = ask(asked, { clock, timeoutMs, maxAttempts });
  if (!isThenable(answer)) return readAnswer(call, answer);
  return answer.then(
    (late) => readAnswer(call, late),
    (error: unknown) => {
      // A claim whose answer was lost would else hold the key for a lease. A transaction is rolled back anyway.
      if (!store.transactional) void letGo(call);
      return unclaimed(call, error);
    },
  );
}

function readAnswer(call: Call, answer: ClaimAnswer): MaybePromise<Claimed | Held> {
  const { fingerprint, settings, audit } = call;
  if (answer.state === 'claimed') {
    const { fencingToken, claims } = answer;
    if (settings.signal?.aborted) return letGoAborted(call, settings.signal);
    if (claims > 1) audit.tell('expired', { claims, fencing_token: fencingToken });
    return answer;
  }
  if (!isSamePayload(fingerprint, answer.fingerprint)) throw mismatch(audit);
  if (answer.state === 'abandoned') throw abandoned(audit);
  if (answer.state === 'done') audit.tell('hit');
  return answer;
}

async function letGoAborted(call: Call, signal: AbortSignal): Promise<never> {
  await letGo(call);
  throw signal.reason;
}

/** Frees the key, trying for as long as one call may take. Where that fails, the end of the lease does. */
export async function letGo({ store, key, owner, settings }: Call): Promise<void> {
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

import { ask } from './ask.ts';
import { keyAudit } from './events.ts';
import { IdempotencyError, type StoredFailure } from './idempotency-error.ts';
import { storeFailed } from './claim.ts';
import { assertStore, ownerToken } from './idempotent.ts';
import { assertKey, fingerprintOf } from './key.ts';
import { type IdempotentOptions, noOptions, readIdempotentOptions } from './options.ts';
import { outcomeOf } from './outcome.ts';
import type { IdempotencyStore, MaybePromise, StoredRecord } from './store.ts';

/** What is known of a key. */
export type IdempotencyStatus =
  | { state: 'absent' }
  /** Somebody runs the work now. */
  | { state: 'running'; remainingMs: number }
  /** Somebody began the work and was not heard of again. */
  | { state: 'abandoned' }
  /** The work was done. `isStored` is false where its result was too large or not JSON: then there is none. */
  | { state: 'done'; result: unknown; isStored: boolean; metadata?: unknown; recordedAtMs: number }
  | { state: 'failed'; failure: StoredFailure; metadata?: unknown; recordedAtMs: number };

export type ResultOptions = Pick<IdempotentOptions, 'storeTimeout' | 'audit' | 'subject' | 'clock'>;

export type RecordOptions = ResultOptions &
  Pick<IdempotentOptions, 'payload' | 'metadata' | 'expiresIn' | 'maxResultBytes'>;

/** Looks what is known of a key. A result that is found is audited as a hit. */
export async function checkIdempotency(
  store: IdempotencyStore,
  key: string,
  options: ResultOptions = noOptions,
): Promise<IdempotencyStatus> {
  const { audit, patience } = prepare(store, key, options);
  const entry = await told('Nothing is known of the key.', () =>
    ask(() => store.read(key), patience),
  );
  switch (entry?.state) {
    case undefined:
      return { state: 'absent' };
    case 'held':
      return { state: 'running', remainingMs: entry.remainingMs };
    case 'abandoned':
      return { state: 'abandoned' };
    case 'done':
      audit.tell('hit');
      return statusOf(entry);
  }
}

/**
 * Records a result without running anything. True: it is recorded now. False: the key has a result, which stays. A key
 * that somebody works on is a conflict; one that was abandoned is marked as done.
 */
export async function recordResult(
  store: IdempotencyStore,
  key: string,
  result: unknown,
  options: RecordOptions = noOptions,
): Promise<boolean> {
  const { audit, patience, settings } = prepare(store, key, options);
  const { metadata, expiresInMs, maxResultBytes, storeTimeoutMs } = settings;
  const outcome = outcomeOf(result, maxResultBytes);
  // Nothing has happened yet, so that there is no reason to keep a record without its value.
  if (outcome.kind === 'unstored') {
    throw new IdempotencyError('RESULT_NOT_STORED', `Nothing was recorded: ${outcome.text}.`);
  }
  const owner = ownerToken();
  const fingerprint = fingerprintOf(options.payload);
  const request = { key, owner, fingerprint, leaseMs: 4 * storeTimeoutMs, takeOver: true };
  const unknown = 'Whether the result was recorded is not known: check the key.';
  const answer = await told(unknown, () => ask(() => store.claim(request), patience));
  if (answer.state === 'done') return false;
  const wanted = {
    outcome,
    ...(metadata === undefined ? {} : { metadata }),
    ...(expiresInMs === undefined ? {} : { expiresInMs }),
  };
  const isMine =
    answer.state === 'claimed' &&
    (await told(unknown, () => ask(() => store.record(key, owner, wanted), patience)));
  if (!isMine) {
    audit.tell('conflict', { state: answer.state });
    throw new IdempotencyError(
      'IDEMPOTENCY_CONFLICT',
      'Another caller works on this idempotency key now, so nothing was recorded.',
    );
  }
  audit.tell('record');
  return true;
}

/**
 * Forgets a key, whatever is known of it: the next caller runs the work. An owner that runs it now loses its claim. False:
 * there was nothing to forget.
 */
export async function clearIdempotency(
  store: IdempotencyStore,
  key: string,
  options: ResultOptions = noOptions,
): Promise<boolean> {
  const { audit, patience } = prepare(store, key, options);
  // Asked once: it has no token, so a second time it would take the key from somebody who came in between.
  const wasThere = await told('Whether the key was cleared is not known: check it.', () =>
    ask(() => store.release(key), { ...patience, maxAttempts: 1 }),
  );
  audit.tell('clear', { was_there: wasThere });
  return wasThere;
}

/** The answer of the store, or an error that says what is not known now. */
async function told<T>(unknown: string, asked: () => MaybePromise<T>): Promise<T> {
  try {
    return await asked();
  } catch (error) {
    throw storeFailed(error, unknown);
  }
}

function prepare(store: IdempotencyStore, key: string, options: IdempotentOptions) {
  assertKey(key);
  assertStore(store);
  const settings = readIdempotentOptions(options);
  const { clock, storeTimeoutMs: timeoutMs } = settings;
  const audit = keyAudit(settings, key);
  return { audit, settings, patience: { clock, timeoutMs } };
}

function statusOf({ outcome, metadata, recordedAtMs }: StoredRecord): IdempotencyStatus {
  const { kind, text } = outcome;
  const more = {
    ...(metadata === undefined ? {} : { metadata: JSON.parse(metadata) as unknown }),
    recordedAtMs,
  };
  if (kind === 'failure') {
    return { state: 'failed', failure: JSON.parse(text) as StoredFailure, ...more };
  }
  const result: unknown = kind === 'value' ? JSON.parse(text) : undefined;
  return { state: 'done', result, isStored: kind !== 'unstored', ...more };
}

/**
 * What an idempotency store keeps under a key, and who may change it:
 *
 *     (absent) --claim--> held --record by its owner--> done --expired--> (absent)
 *        ^                 |  ^                          |
 *        |                 |  +- claim by another, once the lease is over (take-over)
 *        +--- release -----+                             |
 *        +--- release without an owner (clear) ----------+
 *
 * - `held` has an owner token, one per call of `idempotent`, and a lease. Renew, record and release by an owner change
 *   nothing where the token is not theirs: the token is the fence. So an owner that wakes up after its lease was taken
 *   over changes nothing, and one whose lease is over but was not taken over may still record.
 * - Every call may be repeated with the same token, since its answer may have been lost: a claim answers `claimed`
 *   again, a record true. A release without an owner is sent once: it would clear what came after it.
 * - The store alone says when a lease is over: by its server's clock, or, where it has none, because it saw no change of
 *   the entry for a whole lease by its own monotonic clock. The owner counts by its own monotonic clock from before it
 *   sent the claim, so it always stops first.
 * - Fencing tokens grow with every claim of a key.
 */
export interface IdempotencyStore {
  /**
   * True: claims are part of a transaction of the caller's, which ends them. No lease is renewed, and what the store
   * cannot do fails the call, so that the caller rolls back.
   */
  readonly transactional?: boolean;
  /** Takes the key where nobody has it, or says who does. Atomic: of any number of callers one gets it. */
  claim(request: ClaimRequest): MaybePromise<ClaimAnswer>;
  /** Starts the lease anew. False: the claim is not this owner's any more. */
  renew(key: string, owner: string, leaseMs: number): MaybePromise<boolean>;
  /** Makes the claim a result. False: the claim is not this owner's any more, and nothing was written. */
  record(key: string, owner: string, record: NewRecord): MaybePromise<boolean>;
  /** What is under the key. */
  read(key: string): MaybePromise<IdempotencyEntry | undefined>;
  /** Deletes the claim of this owner; without an owner whatever is there. False: there was nothing to delete. */
  release(key: string, owner?: string): MaybePromise<boolean>;
  /** Deletes results that have expired, at most so many; answers how many. */
  prune(limit: number): MaybePromise<number>;
  close?(): MaybePromise<void>;
}

export type MaybePromise<T> = T | PromiseLike<T>;

export interface ClaimRequest {
  key: string;
  /** Unlike any other: it tells this call from all others. */
  owner: string;
  /** Of the payload; empty where there is none to compare. */
  fingerprint: string;
  leaseMs: number;
  /** Whether to take over a claim whose lease is over. Never that of another payload. */
  takeOver: boolean;
}

export type ClaimAnswer =
  /** `claims` is over 1 where earlier owners lost their lease. */
  { state: 'claimed'; fencingToken: number; claims: number } | IdempotencyEntry;

export type IdempotencyEntry =
  /** Somebody works on it. `remainingMs`: until the lease may be over, as far as the store knows. */
  | { state: 'held'; fingerprint: string; remainingMs: number }
  /** The lease is over, and nobody took over: what became of the work is not known. */
  | { state: 'abandoned'; fingerprint: string }
  | StoredRecord;

export interface StoredRecord {
  state: 'done';
  fingerprint: string;
  outcome: Outcome;
  /** JSON. */
  metadata?: string;
  recordedAtMs: number;
}

export interface NewRecord {
  outcome: Outcome;
  /** JSON. */
  metadata?: string;
  /** Absent: the result is kept for good. */
  expiresInMs?: number;
}

/** What came of the work. `text` is the JSON of a value or of a failure, or says why a value was not stored. */
export interface Outcome {
  kind: 'value' | 'undefined' | 'unstored' | 'failure';
  text: string;
}

const methods = ['claim', 'renew', 'record', 'read', 'release', 'prune'] as const;

export function isIdempotencyStore(store: unknown): store is IdempotencyStore {
  const given = Object(store) as Record<string, unknown>;
  return methods.every((method) => typeof given[method] === 'function');
}

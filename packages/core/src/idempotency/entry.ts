import { isSamePayload } from './key.ts';
import type { ClaimRequest, IdempotencyEntry, NewRecord, Outcome } from './store.ts';

/** All that a store keeps of a key. Times are by the store's own clock. */
export interface KeyEntry {
  owner: string;
  fingerprint: string;
  fencingToken: number;
  /** Owners so far. */
  claims: number;
  leaseEndMs: number;
  outcome?: Outcome | undefined;
  metadata?: string;
  recordedAtMs: number;
  /** Infinity: never. */
  expiresAtMs: number;
}

/**
 * What a claim makes of a key: the entry to write, or the answer where somebody else has it. `found` must not have expired.
 * The token grows also where the entry before it is gone, since `tokenFloor` does.
 */
export function claimOf(
  found: KeyEntry | undefined,
  { owner, fingerprint, leaseMs, takeOver }: ClaimRequest,
  nowMs: number,
  tokenFloor: number,
): { entry: KeyEntry } | { answer: IdempotencyEntry } {
  if (found && (found.owner !== owner || found.outcome)) {
    const answer = answerOf(found, nowMs);
    const isFree =
      takeOver && answer.state === 'abandoned' && isSamePayload(found.fingerprint, fingerprint);
    if (!isFree) return { answer };
  }
  return {
    entry: {
      owner,
      fingerprint: fingerprint || (found?.fingerprint ?? ''),
      fencingToken: Math.max((found?.fencingToken ?? 0) + 1, tokenFloor),
      claims: found ? found.claims + (found.owner === owner ? 0 : 1) : 1,
      leaseEndMs: nowMs + leaseMs,
      // Its place is kept, so that a record in memory need not move the rest.
      outcome: undefined,
      recordedAtMs: 0,
      expiresAtMs: Infinity,
    },
  };
}

/** What others are told of an entry. */
export function answerOf(entry: KeyEntry, nowMs: number): IdempotencyEntry {
  const { fingerprint, outcome, metadata, recordedAtMs, leaseEndMs } = entry;
  if (outcome) {
    const more = metadata === undefined ? {} : { metadata };
    return { state: 'done', fingerprint, outcome, ...more, recordedAtMs };
  }
  if (leaseEndMs <= nowMs) return { state: 'abandoned', fingerprint };
  return { state: 'held', fingerprint, remainingMs: leaseEndMs - nowMs };
}

/** The entry once it is recorded. */
export function recordedOf(
  entry: KeyEntry,
  { outcome, metadata, expiresInMs = Infinity }: NewRecord,
  nowMs: number,
  wallMs: number,
): KeyEntry {
  const more = metadata === undefined ? {} : { metadata };
  return { ...entry, outcome, ...more, recordedAtMs: wallMs, expiresAtMs: nowMs + expiresInMs };
}

/** Whether an owner may still renew or release a claim: it is its own, and has no result yet. */
export function isHeldBy(entry: KeyEntry | undefined, owner: string): entry is KeyEntry {
  return entry?.owner === owner && !entry.outcome;
}

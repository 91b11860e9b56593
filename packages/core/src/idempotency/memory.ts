import type { Clock } from '../clock.ts';
import { systemClock } from '../system.ts';
import { IdempotencyError } from './idempotency-error.ts';
import { isSamePayload } from './key.ts';
import type {
  ClaimAnswer,
  ClaimRequest,
  IdempotencyEntry,
  IdempotencyStore,
  NewRecord,
  Outcome,
} from './store.ts';

export interface MemoryIdempotencyOptions {
  /** The keys that are kept at most (100 000). Past that a new key is refused: none is forgotten in silence. */
  maxKeys?: number | undefined;
  clock?: Clock | undefined;
}

interface Entry {
  owner: string;
  fingerprint: string;
  fencingToken: number;
  claims: number;
  /** By the monotonic clock, like `expiresAtMs`. */
  leaseEndMs: number;
  outcome?: Outcome;
  metadata?: string;
  recordedAtMs: number;
  expiresAtMs: number;
}

const MAX_KEYS = 100_000;

/** Keys in the memory of this process: for tests, and for effects that end with the process. */
export function memoryIdempotency(options: MemoryIdempotencyOptions = {}): IdempotencyStore {
  const { maxKeys = MAX_KEYS, clock = systemClock } = options;
  const entries = new Map<string, Entry>();
  let lastToken = 0;

  /** What has expired is gone. */
  function find(key: string): Entry | undefined {
    const entry = entries.get(key);
    if (!entry || clock.monotonic() < entry.expiresAtMs) return entry;
    entries.delete(key);
    return undefined;
  }

  function ownedBy(key: string, owner: string): Entry | undefined {
    const entry = find(key);
    return entry?.owner === owner ? entry : undefined;
  }

  function prune(limit: number): number {
    const nowMs = clock.monotonic();
    let pruned = 0;
    for (const [key, { expiresAtMs }] of entries) {
      if (pruned >= limit) break;
      if (expiresAtMs <= nowMs && entries.delete(key)) pruned += 1;
    }
    return pruned;
  }

  return {
    claim({ key, owner, fingerprint, leaseMs, takeOver }: ClaimRequest): ClaimAnswer {
      const found = find(key);
      if (found && (found.owner !== owner || found.outcome)) {
        const seen = entryOf(found, clock.monotonic());
        const isFree = seen.state === 'abandoned' && isSamePayload(found.fingerprint, fingerprint);
        if (!isFree || !takeOver) return seen;
      }
      if (!found && entries.size >= maxKeys && prune(maxKeys) === 0) throw full(maxKeys);
      const claims = found ? found.claims + (found.owner === owner ? 0 : 1) : 1;
      entries.set(key, {
        owner,
        fingerprint: fingerprint || (found?.fingerprint ?? ''),
        fencingToken: (lastToken += 1),
        claims,
        leaseEndMs: clock.monotonic() + leaseMs,
        recordedAtMs: 0,
        expiresAtMs: Infinity,
      });
      return { state: 'claimed', fencingToken: lastToken, claims };
    },
    renew(key, owner, leaseMs) {
      const entry = ownedBy(key, owner);
      if (!entry || entry.outcome) return false;
      entry.leaseEndMs = clock.monotonic() + leaseMs;
      return true;
    },
    record(key, owner, { outcome, metadata, expiresInMs = Infinity }: NewRecord) {
      const entry = ownedBy(key, owner);
      if (!entry) return false;
      entry.outcome = outcome;
      if (metadata !== undefined) entry.metadata = metadata;
      entry.recordedAtMs = clock.now();
      entry.expiresAtMs = clock.monotonic() + expiresInMs;
      return true;
    },
    read(key) {
      const entry = find(key);
      return entry && entryOf(entry, clock.monotonic());
    },
    release(key, owner) {
      const entry = find(key);
      if (!entry || (owner !== undefined && (entry.owner !== owner || entry.outcome))) return false;
      return entries.delete(key);
    },
    prune,
  };
}

function entryOf(entry: Entry, nowMs: number): IdempotencyEntry {
  const { fingerprint, outcome, metadata, recordedAtMs, leaseEndMs } = entry;
  if (outcome) {
    const more = metadata === undefined ? {} : { metadata };
    return { state: 'done', fingerprint, outcome, ...more, recordedAtMs };
  }
  if (leaseEndMs <= nowMs) return { state: 'abandoned', fingerprint };
  return { state: 'held', fingerprint, remainingMs: leaseEndMs - nowMs };
}

function full(maxKeys: number): IdempotencyError {
  return new IdempotencyError(
    'IDEMPOTENCY_STORE_FULL',
    `The memory store has ${maxKeys} keys, and none of them has expired. Give results an expiry (expiresIn), raise maxKeys, or use a store on disk.`,
  );
}

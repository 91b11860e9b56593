import type { Clock } from '../clock.ts';
import { systemClock } from '../system.ts';
import { answerOf, claimOf, isHeldBy, type KeyEntry } from './entry.ts';
import { IdempotencyError } from './idempotency-error.ts';
import type { ClaimAnswer, ClaimRequest, IdempotencyStore } from './store.ts';
import { checkOptions } from '../options/check-options.ts';
import type { Fields } from '../options/fields.ts';

export interface MemoryIdempotencyOptions {
  /** The keys that are kept at most (100 000). Past that a new key is refused: none is forgotten in silence. */
  maxKeys?: number | undefined;
  clock?: Clock | undefined;
}

const fields = {
  maxKeys: { kind: 'integer', min: 1, max: 100_000_000, default: 100_000 },
} as const satisfies Fields;

/** Keys in the memory of this process: for tests, and for effects that end with the process. */
export function memoryIdempotency(options: MemoryIdempotencyOptions = {}): IdempotencyStore {
  const checked = checkOptions('The options of memoryIdempotency', options, fields, ['clock']);
  const maxKeys = checked['maxKeys'] as number;
  const { clock = systemClock } = options;
  // Times in here are those of the monotonic clock: nobody else shares this store.
  const entries = new Map<string, KeyEntry>();
  let lastToken = 0;

  /** What has expired is gone. */
  function find(key: string): KeyEntry | undefined {
    const entry = entries.get(key);
    if (!entry || entry.expiresAtMs === Infinity) return entry;
    return clock.monotonic() < entry.expiresAtMs ? entry : undefined;
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
    claim(request: ClaimRequest): ClaimAnswer {
      const { key } = request;
      const found = find(key);
      const claimed = claimOf(found, request, clock.monotonic(), lastToken + 1);
      if ('answer' in claimed) return claimed.answer;
      if (!found && entries.size >= maxKeys && prune(maxKeys) === 0) throw full(maxKeys);
      const { entry } = claimed;
      const { fencingToken, claims } = entry;
      lastToken = fencingToken;
      entries.set(key, entry);
      return { state: 'claimed', fencingToken, claims };
    },
    renew(key, owner, leaseMs) {
      const entry = find(key);
      if (!isHeldBy(entry, owner)) return false;
      entry.leaseEndMs = clock.monotonic() + leaseMs;
      return true;
    },
    record(key, owner, record) {
      const entry = find(key);
      if (entry?.owner !== owner) return false;
      const { outcome, metadata, expiresInMs } = record;
      entry.outcome = outcome;
      if (metadata !== undefined) entry.metadata = metadata;
      if (expiresInMs !== undefined) entry.expiresAtMs = clock.monotonic() + expiresInMs;
      entry.recordedAtMs = clock.now();
      return true;
    },
    read(key) {
      const entry = find(key);
      return entry && answerOf(entry, clock.monotonic());
    },
    release(key, owner) {
      const entry = find(key);
      if (owner !== undefined && !isHeldBy(entry, owner)) return false;
      return entry !== undefined && entries.delete(key);
    },
    prune,
  };
}

function full(maxKeys: number): IdempotencyError {
  return new IdempotencyError(
    'IDEMPOTENCY_STORE_FULL',
    `The memory store has ${maxKeys} keys, and none of them has expired. Give results an expiry (expiresIn), raise maxKeys, or use a store on disk.`,
  );
}

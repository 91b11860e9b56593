import { describe, expect, it } from 'vitest';
import { answerOf, claimOf, isHeldBy, type KeyEntry, recordedOf } from './entry.ts';

const request = { key: 'k', owner: 'a', fingerprint: '', leaseMs: 100, takeOver: true };
const outcome = { kind: 'value', text: '1' } as const;

function claimed(changes: Partial<typeof request> = {}, found?: KeyEntry, nowMs = 0): KeyEntry {
  const result = claimOf(found, { ...request, ...changes }, nowMs, 7);
  if ('answer' in result) throw new Error('it was not claimed');
  return result.entry;
}

describe('an entry', () => {
  it('of a new key is held by its owner until the lease is over', () => {
    const entry = claimed();
    expect(entry).toMatchObject({ owner: 'a', fencingToken: 7, claims: 1, leaseEndMs: 100 });
    expect([isHeldBy(entry, 'a'), isHeldBy(entry, 'b'), isHeldBy(undefined, 'a')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(answerOf(entry, 40)).toMatchObject({ state: 'held', remainingMs: 60 });
    expect(answerOf(entry, 100)).toMatchObject({ state: 'abandoned' });
  });

  it('is taken over after its lease, with a larger token, and never that of another payload', () => {
    const entry = claimed({ fingerprint: 'p' });
    expect(claimed({ owner: 'b' }, entry, 100)).toMatchObject({
      owner: 'b',
      fingerprint: 'p',
      fencingToken: 8,
      claims: 2,
    });
    for (const refused of [
      { nowMs: 99, changes: {} },
      { nowMs: 100, changes: { takeOver: false } },
      { nowMs: 100, changes: { fingerprint: 'q' } },
    ]) {
      const by = { ...request, owner: 'b', ...refused.changes };
      expect(claimOf(entry, by, refused.nowMs, 7)).toHaveProperty('answer');
    }
  });

  it('may be claimed again by its owner, whose answer was lost', () => {
    expect(claimed({}, claimed(), 50)).toMatchObject({ claims: 1, leaseEndMs: 150 });
  });

  it('that is recorded says what was recorded, and for how long', () => {
    const plain = recordedOf(claimed(), { outcome }, 10, 1000);
    expect(plain).toMatchObject({ outcome, recordedAtMs: 1000, expiresAtMs: Infinity });
    expect(plain).not.toHaveProperty('metadata');
    expect(isHeldBy(plain, 'a')).toBe(false);
    const record = { outcome, metadata: '{}', expiresInMs: 5 };
    const expiring = recordedOf(claimed(), record, 10, 1000);
    expect(expiring.expiresAtMs).toBe(15);
    expect(answerOf(expiring, 10)).toEqual({
      state: 'done',
      fingerprint: '',
      outcome,
      metadata: '{}',
      recordedAtMs: 1000,
    });
    expect(claimOf(plain, request, 10, 7)).toEqual({ answer: answerOf(plain, 10) });
  });
});

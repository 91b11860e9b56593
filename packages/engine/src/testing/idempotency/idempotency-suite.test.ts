import { type IdempotencyStore, memoryIdempotency } from 'redrive';
import { expect, it } from 'vitest';
import { idempotencySuite } from './idempotency-suite.ts';

/** Whether a store keeps the promise of one case. */
async function keeps(store: IdempotencyStore, sentence: string): Promise<boolean> {
  const suite = idempotencySuite({ open: async () => ({ store, close: async () => undefined }) });
  const found = suite.find(({ name }) => name === sentence);
  if (!found) throw new Error(`There is no case "${sentence}".`);
  return found.run().then(
    () => true,
    () => false,
  );
}

type Break = (memory: IdempotencyStore) => Partial<IdempotencyStore>;

it.each<[string, string, Break]>([
  [
    'gives a key to everybody',
    'claim: of fifty at once gives the key to one',
    () => ({ claim: () => ({ state: 'claimed', fencingToken: 1, claims: 1 }) }),
  ],
  [
    'does not know an owner again',
    'claim: gives the same owner its key again, since the first answer may have been lost',
    (memory) => {
      let calls = 0;
      return { claim: (request) => memory.claim({ ...request, owner: `${++calls}` }) };
    },
  ],
  [
    'forgets the payload',
    'claim: tells others that the key is held, for how long at most, and with which payload',
    (memory) => ({ claim: (request) => memory.claim({ ...request, fingerprint: '' }) }),
  ],
  [
    'takes keys for equal that differ in case',
    'claim: keeps keys apart, however odd they are',
    (memory) => ({
      claim: (request) => memory.claim({ ...request, key: request.key.toLowerCase() }),
    }),
  ],
  [
    'always gives the same fencing token',
    'claim: gives larger tokens, also after the key was free again',
    (memory) => ({
      claim: async (request) => {
        const answer = await memory.claim(request);
        return answer.state === 'claimed' ? { ...answer, fencingToken: 1 } : answer;
      },
    }),
  ],
  [
    'lets everybody renew',
    'upkeep: renew by anybody else, or after the end, changes nothing',
    () => ({ renew: () => true }),
  ],
  ['renews nothing', 'upkeep: renew starts the lease anew', () => ({ renew: () => true })],
  [
    'lets everybody record',
    'upkeep: record by anybody else changes nothing',
    () => ({ record: () => true }),
  ],
  [
    'records once and no more',
    'upkeep: record says yes again to the same owner, since the first answer may have been lost',
    (memory) => {
      let calls = 0;
      return { record: (...args) => ++calls === 1 && memory.record(...args) };
    },
  ],
  [
    'makes null of undefined',
    'upkeep: record keeps undefined',
    (memory) => ({
      record: (key, owner, record) =>
        memory.record(key, owner, { ...record, outcome: { kind: 'value', text: 'null' } }),
    }),
  ],
  [
    'drops metadata',
    'claim: tells of a result, to its owner too',
    (memory) => ({
      record: (key, owner, { outcome }) => memory.record(key, owner, { outcome }),
    }),
  ],
  [
    'lets everybody release',
    'upkeep: release by anybody else changes nothing, nor after a result',
    (memory) => ({ release: (key) => memory.release(key) }),
  ],
  [
    'forgets only claims',
    'upkeep: release without an owner forgets whatever is there',
    (memory) => ({ release: (key, owner) => memory.release(key, owner ?? 'nobody') }),
  ],
  [
    'prunes what has not expired',
    'upkeep: prune finds nothing where nothing has expired',
    () => ({ prune: () => 1 }),
  ],
  [
    'prunes all at once',
    'upkeep: prune deletes what has expired, no more than was asked for, and nothing else',
    (memory) => ({ prune: () => memory.prune(1000) }),
  ],
  [
    'lets a late owner record over a cleared key',
    'effects: of a key that was cleared meanwhile are not recorded by the first owner',
    () => ({ record: () => true }),
  ],
])('the suite finds a store that %s', async (_, sentence, broken) => {
  const memory = memoryIdempotency();
  expect(await keeps(memory, sentence)).toBe(true);
  const fresh = memoryIdempotency();
  expect(await keeps({ ...fresh, ...broken(fresh) }, sentence)).toBe(false);
});

import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { type IdempotencyStore, idempotent } from 'redrive';
import { type KeyStage, LONG_MS, SHORT_MS } from './idempotency-stage.ts';
import type { IdempotencyNeed } from './idempotency-suite.ts';
import { raceInProcesses } from './idempotency-processes.ts';
import { type CaseTable, needing } from '../suite.ts';

type Method = 'claim' | 'renew' | 'record' | 'release';

/** A store of which some answers never arrive, though their calls took effect. */
function losing(store: IdempotencyStore, method: Method, times: number): IdempotencyStore {
  let left = times;
  const over =
    <Args extends unknown[], T>(name: Method, call: (...args: Args) => T) =>
    async (...args: Args): Promise<Awaited<T>> => {
      const answer = await call(...args);
      if (name === method && left-- > 0) throw new Error('the connection was lost');
      return answer;
    };
  return {
    claim: over('claim', store.claim.bind(store)),
    renew: over('renew', store.renew.bind(store)),
    record: over('record', store.record.bind(store)),
    release: over('release', store.release.bind(store)),
    read: store.read.bind(store),
    prune: store.prune.bind(store),
  };
}

/** Counts what is done. */
function counter() {
  let count = 0;
  return { effect: async () => ++count, count: () => count };
}

export const effectCases: CaseTable<KeyStage, IdempotencyNeed> = {
  'are one for fifty callers at once, and all get its result': async ({ store }) => {
    const { effect, count } = counter();
    const calls = Array.from({ length: 50 }, () => idempotent(store, 'k', effect));
    deepEqual(new Set(await Promise.all(calls)), new Set([1]));
    equal(count(), 1);
  },

  'are one, though the answer to the claim was lost': async ({ store }) => {
    const { effect, count } = counter();
    equal(await idempotent(losing(store, 'claim', 2), 'k', effect), 1);
    equal(await idempotent(store, 'k', effect), 1);
    equal(count(), 1);
  },

  'are one, though the answer to the record was lost': async ({ store }) => {
    const { effect, count } = counter();
    equal(await idempotent(losing(store, 'record', 2), 'k', effect), 1);
    equal(await idempotent(store, 'k', effect), 1);
    equal(count(), 1);
  },

  'are none where no answer to the claim arrives, and the key is free at once': async (stage) => {
    const { store, until } = stage;
    const { effect, count } = counter();
    await rejects(idempotent(losing(store, 'claim', 3), 'k', effect), {
      code: 'IDEMPOTENCY_STORE_FAILED',
    });
    equal(count(), 0);
    await until('a free key', async () => (await store.read('k')) === undefined);
  },

  'may be done again after a failure, though the answer to the release was lost': async ({
    store,
  }) => {
    const failing = idempotent(losing(store, 'release', 1), 'k', () =>
      Promise.reject(new Error('no funds')),
    );
    await rejects(failing, { message: 'no funds' });
    equal(await idempotent(store, 'k', () => 'paid'), 'paid');
  },

  'outlast the first lease while the work runs': async ({ store, until }) => {
    let end!: () => void;
    const done = new Promise<void>((resolve) => {
      end = resolve;
    });
    // Long enough for a machine that is busy to renew it in time.
    const leaseMs = 8 * SHORT_MS;
    const first = idempotent(store, 'k', () => done, { lease: leaseMs });
    await until('a claim', async () => (await store.read('k'))?.state === 'held');
    const started = performance.now();
    await until('the end of a lease', () => performance.now() - started > leaseMs);
    const conflict = { whileRunning: 'conflict' } as const;
    await rejects(
      idempotent(store, 'k', () => 'second', conflict),
      {
        code: 'IDEMPOTENCY_CONFLICT',
      },
    );
    end();
    equal(await first, undefined);
  },

  'of a key that was cleared meanwhile are not recorded by the first owner': async ({ store }) => {
    const first = idempotent(store, 'k', async () => {
      await store.release('k');
      equal(await idempotent(store, 'k', () => 'second'), 'second');
      return 'first';
    });
    await rejects(first, { code: 'IDEMPOTENCY_LEASE_LOST' });
    equal(await idempotent(store, 'k', () => 'third'), 'second');
  },

  ...needing<KeyStage, IdempotencyNeed>('shared', {
    'are one for callers of two stores': async ({ store, another }) => {
      const { effect, count } = counter();
      const stores = [store, await another!()];
      const calls = Array.from({ length: 20 }, (_, i) => idempotent(stores[i % 2]!, 'k', effect));
      deepEqual(new Set(await Promise.all(calls)), new Set([1]));
      equal(count(), 1);
    },

    'are seen by a store that is opened later': async ({ store, another }) => {
      await idempotent(store, 'k', () => ({ paid: true }), { metadata: 'm' });
      const later = await another!();
      deepEqual(await idempotent(later, 'k', () => 'again'), { paid: true });
      await store.claim({
        key: 'held',
        owner: 'a',
        fingerprint: '',
        leaseMs: LONG_MS,
        takeOver: true,
      });
      equal((await later.read('held'))?.state, 'held');
    },

    'are one for fifty callers in five processes': async ({ elsewhere }) => {
      const { effects, results } = await raceInProcesses(elsewhere!, 5, 10);
      equal(effects, 1);
      equal(results.length, 50);
      ok(new Set(results).size === 1, `${[...new Set(results)].join()}`);
    },
  }),
};

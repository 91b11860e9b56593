import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Outcome } from 'redrive';
import { claimUntil, type KeyStage, LONG_MS, SHORT_MS, value } from './idempotency-stage.ts';
import type { IdempotencyNeed } from './idempotency-suite.ts';
import { type CaseTable, each, needing } from '../suite.ts';

const outcomes: Record<string, Outcome> = {
  'a value': value,
  null: { kind: 'value', text: 'null' },
  'an odd text': { kind: 'value', text: JSON.stringify('ü 测试 🚀 \0 \ud800 \u2028 \\ " \'') },
  'a value of 256 KiB': { kind: 'value', text: JSON.stringify('x'.repeat(256 * 1024 - 2)) },
  undefined: { kind: 'undefined', text: '' },
  'a failure': { kind: 'failure', text: '{"name":"E","message":"no"}' },
  'a value that could not be stored': { kind: 'unstored', text: 'too large' },
};

export const upkeepCases: CaseTable<KeyStage, IdempotencyNeed> = {
  'renew starts the lease anew': async (stage) => {
    const { store, claim } = stage;
    await claim('a', { leaseMs: SHORT_MS });
    ok(await store.renew('k', 'a', LONG_MS));
    const answer = await claim('b');
    ok(answer.state === 'held');
    ok(answer.remainingMs > SHORT_MS && answer.remainingMs <= LONG_MS, `${answer.remainingMs}`);
  },

  'renew by anybody else, or after the end, changes nothing': async ({ store, claim }) => {
    equal(await store.renew('k', 'a', LONG_MS), false);
    await claim('a');
    equal(await store.renew('k', 'b', LONG_MS), false);
    await store.record('k', 'a', { outcome: value });
    equal(await store.renew('k', 'a', LONG_MS), false);
    equal((await store.read('k'))?.state, 'done');
  },

  'renew by an owner whose key was taken over changes nothing': async (stage) => {
    await stage.claim('a', { leaseMs: SHORT_MS });
    await claimUntil(stage, 'claimed', 'b');
    equal(await stage.store.renew('k', 'a', LONG_MS), false);
    ok(await stage.store.renew('k', 'b', LONG_MS));
  },

  ...each<string, KeyStage>(
    Object.keys(outcomes),
    (name) => `record keeps ${name}`,
    async (name, { store, claim }) => {
      await claim('a');
      ok(await store.record('k', 'a', { outcome: outcomes[name]! }));
      const found = await store.read('k');
      ok(found?.state === 'done');
      deepEqual(found.outcome, outcomes[name]);
      ok(!('metadata' in found));
    },
  ),

  'record says yes again to the same owner, since the first answer may have been lost': async ({
    store,
    claim,
  }) => {
    await claim('a');
    ok(await store.record('k', 'a', { outcome: value, metadata: '1' }));
    ok(await store.record('k', 'a', { outcome: value, metadata: '1' }));
    equal((await store.read('k'))?.state, 'done');
  },

  'record by anybody else changes nothing': async ({ store, claim }) => {
    equal(await store.record('k', 'a', { outcome: value }), false);
    equal(await store.read('k'), undefined);
    await claim('a');
    equal(await store.record('k', 'b', { outcome: value }), false);
    equal((await store.read('k'))?.state, 'held');
    await store.release('k', 'a');
    equal(await store.record('k', 'a', { outcome: value }), false);
  },

  'record is refused to an owner whose key was taken over, before and after the other is done':
    async (stage) => {
      const { store, claim } = stage;
      await claim('a', { leaseMs: SHORT_MS });
      await claimUntil(stage, 'claimed', 'b');
      equal(await store.record('k', 'a', { outcome: { kind: 'value', text: '"late"' } }), false);
      ok(await store.record('k', 'b', { outcome: value }));
      equal(await store.record('k', 'a', { outcome: { kind: 'value', text: '"late"' } }), false);
      const found = await store.read('k');
      ok(found?.state === 'done');
      deepEqual(found.outcome, value);
    },

  'record is taken after the lease, where nobody took over': async (stage) => {
    await stage.claim('a', { leaseMs: SHORT_MS });
    await claimUntil(stage, 'abandoned', 'b', { takeOver: false });
    ok(await stage.store.record('k', 'a', { outcome: value }));
    equal((await stage.claim('b')).state, 'done');
  },

  'record with an expiry is forgotten after it, and without one it is not': async (stage) => {
    const { store, claim, until } = stage;
    await claim('a', { key: 'short' });
    await claim('a');
    await store.record('k', 'a', { outcome: value });
    await store.record('short', 'a', { outcome: value, expiresInMs: SHORT_MS });
    equal((await store.read('short'))?.state, 'done');
    await until('the end of a result', async () => (await store.read('short')) === undefined);
    equal((await store.read('k'))?.state, 'done');
  },

  'read finds nothing where nothing is': async ({ store }) => {
    equal(await store.read('k'), undefined);
  },

  'read tells what a claim tells': async (stage) => {
    const { store, claim } = stage;
    await claim('a', { fingerprint: 'f' });
    const found = await store.read('k');
    ok(found?.state === 'held');
    equal(found.fingerprint, 'f');
    ok(found.remainingMs > 0 && found.remainingMs <= LONG_MS);
  },

  'release by its owner frees the key': async ({ store, claim }) => {
    await claim('a');
    ok(await store.release('k', 'a'));
    equal(await store.read('k'), undefined);
    equal(await store.release('k', 'a'), false);
    equal((await claim('b')).state, 'claimed');
  },

  'release by anybody else changes nothing, nor after a result': async ({ store, claim }) => {
    await claim('a');
    equal(await store.release('k', 'b'), false);
    equal((await store.read('k'))?.state, 'held');
    await store.record('k', 'a', { outcome: value });
    equal(await store.release('k', 'a'), false);
    equal((await store.read('k'))?.state, 'done');
  },

  'release without an owner forgets whatever is there': async ({ store, claim }) => {
    equal(await store.release('k'), false);
    await claim('a');
    ok(await store.release('k'));
    equal(await store.renew('k', 'a', LONG_MS), false);
    await claim('b');
    await store.record('k', 'b', { outcome: value });
    ok(await store.release('k'));
    equal((await claim('c')).state, 'claimed');
  },

  ...needing<KeyStage, IdempotencyNeed>('pruning', {
    'prune deletes what has expired, no more than was asked for, and nothing else': async (
      stage,
    ) => {
      const { store, claim, until } = stage;
      const keys = ['a', 'b', 'c', 'd', 'e'];
      for (const key of keys) {
        await claim('x', { key });
        await store.record(key, 'x', { outcome: value, expiresInMs: 1 });
      }
      await claim('x', { key: 'kept' });
      await store.record('kept', 'x', { outcome: value });
      await claim('x', { key: 'held', leaseMs: SHORT_MS });
      await claimUntil(stage, 'abandoned', 'y', { key: 'held', takeOver: false });
      await until('the end of the results', async () =>
        (await Promise.all(keys.map(async (key) => store.read(key)))).every(
          (one) => one === undefined,
        ),
      );
      equal(await store.prune(3), 3);
      equal(await store.prune(1000), 2);
      equal(await store.prune(1000), 0);
      equal((await store.read('kept'))?.state, 'done');
      equal((await store.read('held'))?.state, 'abandoned');
    },
  }),

  'prune finds nothing where nothing has expired': async ({ store, claim }) => {
    await claim('a');
    equal(await store.prune(1000), 0);
    equal(await store.prune(0), 0);
  },
};

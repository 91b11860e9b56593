import { deepEqual, equal, ok } from 'node:assert/strict';
import {
  claimUntil,
  type KeyStage,
  LONG_MS,
  SHORT_MS,
  tokenOf,
  value,
} from './idempotency-stage.ts';
import type { IdempotencyNeed } from './idempotency-suite.ts';
import type { CaseTable } from '../suite.ts';

export const claimCases: CaseTable<KeyStage, IdempotencyNeed> = {
  'gives a key that nobody has': async ({ claim }) => {
    const answer = await claim('a');
    ok(Number.isSafeInteger(tokenOf(answer)) && tokenOf(answer) > 0);
    deepEqual(answer, { state: 'claimed', fencingToken: tokenOf(answer), claims: 1 });
  },

  'tells others that the key is held, for how long at most, and with which payload': async ({
    claim,
  }) => {
    await claim('a', { fingerprint: 'f' });
    const answer = await claim('b', { fingerprint: 'other' });
    ok(answer.state === 'held');
    equal(answer.fingerprint, 'f');
    ok(answer.remainingMs > 0 && answer.remainingMs <= LONG_MS, `${answer.remainingMs}`);
  },

  'gives the same owner its key again, since the first answer may have been lost': async ({
    claim,
  }) => {
    await claim('a');
    const answer = await claim('a');
    ok(answer.state === 'claimed');
    equal(answer.claims, 1);
    equal((await claim('b')).state, 'held');
  },

  'of fifty at once gives the key to one': async ({ claim }) => {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => claim(`o${i}`)));
    equal(answers.filter(({ state }) => state === 'claimed').length, 1);
    equal(answers.filter(({ state }) => state === 'held').length, 49);
  },

  'keeps keys apart, however odd they are': async ({ store, claim }) => {
    const keys = [
      'a',
      'A',
      'a ',
      ' a',
      'ä',
      'a\u0308',
      '🔑',
      "'; --",
      '"\\\n\t',
      '__proto__',
      '*',
      'a.b',
      'a/b',
      '%',
      'x'.repeat(255),
      '🔑'.repeat(127),
    ];
    for (const key of keys) ok((await claim('a', { key })).state === 'claimed', key);
    for (const key of keys) equal((await store.read(key))?.state, 'held', key);
  },

  'gives a key to another when its lease is over, with a larger token': async (stage) => {
    const first = tokenOf(await stage.claim('a', { leaseMs: SHORT_MS }));
    const answer = await claimUntil(stage, 'claimed', 'b');
    ok(answer.state === 'claimed');
    equal(answer.claims, 2);
    ok(answer.fencingToken > first);
    equal((await stage.claim('a')).state, 'held');
  },

  'leaves a key whose lease is over to nobody where that is asked for': async (stage) => {
    const { store, claim } = stage;
    await claim('a', { leaseMs: SHORT_MS, fingerprint: 'f' });
    const answer = await claimUntil(stage, 'abandoned', 'b', { takeOver: false });
    deepEqual(answer, { state: 'abandoned', fingerprint: 'f' });
    equal((await store.read('k'))?.state, 'abandoned');
    ok(await store.record('k', 'a', { outcome: value }));
  },

  'takes over no key of another payload': async (stage) => {
    await stage.claim('a', { leaseMs: SHORT_MS, fingerprint: 'f' });
    const answer = await claimUntil(stage, 'abandoned', 'b', { fingerprint: 'g' });
    deepEqual(answer, { state: 'abandoned', fingerprint: 'f' });
  },

  'keeps the payload of a key that is taken over without one': async (stage) => {
    await stage.claim('a', { leaseMs: SHORT_MS, fingerprint: 'f' });
    await claimUntil(stage, 'claimed', 'b');
    const answer = await stage.claim('c', { fingerprint: 'g' });
    ok(answer.state === 'held');
    equal(answer.fingerprint, 'f');
  },

  'goes on where the payload was not known before': async (stage) => {
    await stage.claim('a', { leaseMs: SHORT_MS });
    await claimUntil(stage, 'claimed', 'b', { fingerprint: 'g' });
    const answer = await stage.claim('c');
    ok(answer.state === 'held');
    equal(answer.fingerprint, 'g');
  },

  'gives a key that is over to one of two': async (stage) => {
    const { claim, until } = stage;
    await claim('a', { leaseMs: SHORT_MS });
    const winners = new Set<string>();
    await until('a winner', async () => {
      const answers = await Promise.all(['b', 'c', 'd'].map((owner) => claim(owner)));
      answers.forEach(({ state }, i) => state === 'claimed' && winners.add('bcd'[i]!));
      return winners.size > 0;
    });
    equal(winners.size, 1);
  },

  'gives larger tokens, also after the key was free again': async ({ store, claim }) => {
    const tokens: number[] = [];
    for (const owner of ['a', 'b', 'c', 'd']) {
      tokens.push(tokenOf(await claim(owner)));
      await store.release('k', owner);
    }
    deepEqual(
      tokens,
      [...new Set(tokens)].sort((a, b) => a - b),
    );
  },

  'tells of a result, to its owner too': async ({ store, claim }) => {
    await claim('a', { fingerprint: 'f' });
    await store.record('k', 'a', { outcome: value, metadata: '["m"]' });
    for (const owner of ['a', 'b']) {
      const answer = await claim(owner, { fingerprint: 'g' });
      ok(answer.state === 'done');
      const { recordedAtMs, ...rest } = answer;
      deepEqual(rest, { state: 'done', fingerprint: 'f', outcome: value, metadata: '["m"]' });
      ok(Number.isSafeInteger(recordedAtMs) && recordedAtMs > 0, `${recordedAtMs}`);
    }
  },

  'gives a key whose result has expired to anybody': async (stage) => {
    const { store, claim } = stage;
    const first = tokenOf(await claim('a', { fingerprint: 'f' }));
    await store.record('k', 'a', { outcome: value, metadata: '1', expiresInMs: SHORT_MS });
    const answer = await claimUntil(stage, 'claimed', 'b', { fingerprint: 'g' });
    ok(answer.state === 'claimed');
    equal(answer.claims, 1);
    ok(answer.fencingToken > first);
    equal(await store.record('k', 'a', { outcome: value }), false);
    await store.record('k', 'b', { outcome: { kind: 'undefined', text: '' } });
    const done = await store.read('k');
    ok(done?.state === 'done');
    equal(done.fingerprint, 'g');
    equal(done.metadata, undefined);
  },
};

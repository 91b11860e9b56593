import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Schedule } from '../../ports/schedule.ts';
import type { StoreCases } from '../stage.ts';

export const stateCases: StoreCases = {
  'has none at first, and tells the time of the store': async ({ store, sameTime }) => {
    const { documents, nowMs } = await store.readState('');
    deepEqual(documents, []);
    ok(Number.isFinite(nowMs));
    sameTime((await store.readState('')).nowMs, nowMs);
  },

  'keeps what is written, under a version': async ({ store }) => {
    equal(await store.writeState('lane:a', { paused: true }, 0), true);
    const { documents } = await store.readState('lane:a');
    equal(documents.length, 1);
    const [{ key, value, version } = { key: '', value: 0, version: 0 }] = documents;
    deepEqual([key, value], ['lane:a', { paused: true }]);
    ok(Number.isSafeInteger(version) && version !== 0);
  },

  'replaces what was read': async ({ store }) => {
    await store.writeState('a', 1, 0);
    equal(await store.writeState('a', 2, await versionOf(store, 'a')), true);
    equal(await store.writeState('a', 3, await versionOf(store, 'a')), true);
    deepEqual(await values(store, 'a'), [3]);
  },

  'refuses to replace what somebody else has written meanwhile': async ({ store }) => {
    await store.writeState('a', 1, 0);
    const version = await versionOf(store, 'a');
    await store.writeState('a', 2, version);
    equal(await store.writeState('a', 3, version), false);
    deepEqual(await values(store, 'a'), [2]);
  },

  'refuses to make what is there': async ({ store }) => {
    await store.writeState('a', 1, 0);
    equal(await store.writeState('a', 2, 0), false);
    deepEqual(await values(store, 'a'), [1]);
  },

  'refuses to replace what is not there': async ({ store }) => {
    equal(await store.writeState('a', 1, 7), false);
    deepEqual(await values(store, ''), []);
  },

  'refuses the same version a second time': async ({ store }) => {
    await store.writeState('a', 1, 0);
    const version = await versionOf(store, 'a');
    equal(await store.writeState('a', 2, version), true);
    equal(await store.writeState('a', 2, version), false);
  },

  'reads those whose key begins so, in order': async ({ store }) => {
    for (const key of ['lane:b', 'lane:a', 'lane', 'policy:a', 'xlane:c']) {
      await store.writeState(key, key, 0);
    }
    deepEqual(await values(store, 'lane:'), ['lane:a', 'lane:b']);
    deepEqual(await values(store, 'lane'), ['lane', 'lane:a', 'lane:b']);
    equal((await values(store, '')).length, 5);
    deepEqual(await values(store, 'nothing'), []);
  },

  'takes the beginning of a key as it is written': async ({ store }) => {
    const keys = ['a%b', 'a_b', 'axb', 'A%B', 'a\\b', 'a*b', 'a?b', 'a[b]', "a'b", 'aüb'];
    for (const key of keys) await store.writeState(key, key, 0);
    for (const key of keys) deepEqual(await values(store, key.slice(0, -1)), [key]);
  },

  'keeps every kind of document': async ({ store }) => {
    const documents: unknown[] = [
      null,
      true,
      0,
      -1.5,
      2 ** 53 - 1,
      '',
      `ünï 测试 🚀 'single' "double" \\ \n`,
      [],
      {},
      { a: [1, { b: null }], 'x y': { z: [[]] } },
    ];
    for (const [i, document] of documents.entries())
      await store.writeState(`doc:${i}`, document, 0);
    for (const [i, document] of documents.entries()) {
      deepEqual(await values(store, `doc:${i}`), [document]);
    }
  },

  'keeps a document of 100 KB and a long key': async ({ store }) => {
    const key = `policy:${'k'.repeat(500)}`;
    const document = { text: 'x'.repeat(100_000) };
    await store.writeState(key, document, 0);
    deepEqual(await values(store, key), [document]);
  },

  'drops those whose version is still the one that was read': async ({ store }) => {
    for (const key of ['a', 'b', 'c']) await store.writeState(key, key, 0);
    const version = await versionOf(store, 'a');
    await store.writeState('b', 'newer', version);
    const documents = ['a', 'b', 'nothing'].map((key) => ({ key, version }));
    equal(await store.dropState(documents), 1);
    deepEqual(await values(store, ''), ['newer', 'c']);
    equal(await store.dropState(documents), 0);
    equal(await store.dropState([]), 0);
    equal(await store.writeState('a', 'again', 0), true);
  },

  'lets one of many that write at once win': async ({ store }) => {
    const made = await Promise.all(
      Array.from({ length: 10 }, (_, i) => store.writeState('a', i, 0)),
    );
    equal(made.filter(Boolean).length, 1);
    deepEqual(await values(store, 'a'), [made.indexOf(true)]);
    const version = await versionOf(store, 'a');
    const replaced = await Promise.all(
      Array.from({ length: 10 }, (_, i) => store.writeState('a', 100 + i, version)),
    );
    equal(replaced.filter(Boolean).length, 1);
    deepEqual(await values(store, 'a'), [100 + replaced.indexOf(true)]);
  },

  'lets one of many instances win': {
    needs: 'shared',
    run: async ({ store, second }) => {
      const stores = [store, await second()];
      for (let round = 0; round < 5; round++) {
        const version = round === 0 ? 0 : await versionOf(store, 'a');
        const won = await Promise.all(
          Array.from({ length: 8 }, (_, i) => stores[i % 2]!.writeState('a', [round, i], version)),
        );
        equal(won.filter(Boolean).length, 1);
        deepEqual(await values(stores[1]!, 'a'), [[round, won.indexOf(true)]]);
      }
    },
  },
};

async function values(store: Schedule, prefix: string): Promise<unknown[]> {
  return (await store.readState(prefix)).documents.map(({ value }) => value);
}

async function versionOf(store: Schedule, key: string): Promise<number> {
  return (await store.readState(key)).documents.find((one) => one.key === key)!.version;
}

import { deepEqual, equal } from 'node:assert/strict';
import {
  finished,
  found,
  HOUR,
  idsOf,
  newDelivery,
  newRecord,
  oddTexts,
  stored,
  T0,
} from './fixtures.ts';
import type { Cases } from './repository-suite.ts';

export const writeCases: Cases = {
  'writes the whole record as the next version': async ({ repository }) => {
    const first = await stored(repository, newRecord({ deliveries: { gone: newDelivery() } }));
    const next = {
      ...first,
      deliveries: { phone: newDelivery({ state: 'Retrying', lease: 'mine' }) },
      status: 'retrying' as const,
      retryCount: 1,
      wakeAtMs: T0 + 5 * HOUR,
      updatedAtMs: T0 + 1,
    };
    deepEqual(await repository.write([next]), [true]);
    deepEqual(await found(repository, first.id), { ...next, version: 2 });
    const over = { ...finished(next), version: 2 };
    deepEqual(await repository.write([over]), [true]);
    deepEqual(await found(repository, first.id), { ...over, version: 3 });
  },

  'writes odd device ids': async ({ repository }) => {
    let record = await stored(repository, newRecord());
    for (const text of oddTexts) {
      const deliveries = Object.fromEntries([
        ...Object.entries(record.deliveries),
        [text, newDelivery({ lease: text })],
      ]);
      deepEqual(await repository.write([{ ...record, deliveries }]), [true]);
      record = await found(repository, record.id);
    }
    deepEqual(Object.keys(record.deliveries).toSorted(), oddTexts.toSorted());
  },

  'refuses a version that is not the stored one, and changes nothing': async ({ repository }) => {
    const first = await stored(repository, newRecord());
    await repository.write([{ ...first, retryCount: 1 }]);
    const now = await found(repository, first.id);
    for (const version of [0, 1, 3, -1]) {
      deepEqual(await repository.write([{ ...now, version, retryCount: 9 }]), [false]);
    }
    deepEqual(await found(repository, first.id), now);
  },

  'refuses a record that is not there, and does not store it': async ({ repository }) => {
    const records = [newRecord(), newRecord({ version: 1 }), newRecord({ version: 7 })];
    deepEqual(await repository.write(records), [false, false, false]);
    deepEqual(await repository.find(idsOf(records)), [undefined, undefined, undefined]);
    deepEqual(await repository.list({ limit: 10 }), []);
  },

  'answers false when it is repeated after its answer was lost, and changes nothing': async ({
    repository,
  }) => {
    const first = await stored(repository, newRecord());
    const next = { ...first, retryCount: 1 };
    deepEqual(await repository.write([next]), [true]);
    deepEqual(await repository.write([next]), [false]);
    deepEqual(await found(repository, first.id), { ...next, version: 2 });
  },

  'writes each of a batch by itself': async ({ repository }) => {
    const records = await Promise.all(
      Array.from({ length: 6 }, () => stored(repository, newRecord())),
    );
    await repository.write([records[1]!, records[4]!]);
    const batch = records.map((record) => ({ ...record, retryCount: 5 }));
    deepEqual(await repository.write([...batch, newRecord({ version: 1 })]), [
      true,
      false,
      true,
      true,
      false,
      true,
      false,
    ]);
    const now = await repository.find(idsOf(records));
    deepEqual(
      now.map((record) => [record?.version, record?.retryCount]),
      [
        [2, 5],
        [2, 0],
        [2, 5],
        [2, 5],
        [2, 0],
        [2, 5],
      ],
    );
  },

  'writes the first of two of one version in a batch': async ({ repository }) => {
    const first = await stored(repository, newRecord());
    const batch = [1, 2, 3].map((retryCount) => ({ ...first, retryCount }));
    deepEqual(await repository.write(batch), [true, false, false]);
    equal((await found(repository, first.id)).retryCount, 1);
    equal((await found(repository, first.id)).version, 2);
  },

  'writes 500 in one call': {
    needs: 'complete',
    run: async ({ repository }) => {
      const records = Array.from({ length: 500 }, () => newRecord());
      const created = await repository.create(records);
      const next = created.map(({ record }, i) => ({ ...record, retryCount: i }));
      equal((await repository.write(next)).filter((isWritten) => isWritten).length, 500);
      const now = await repository.find(idsOf(records));
      deepEqual(
        now.map((record) => [record?.retryCount, record?.version]),
        next.map((_, i) => [i, 2]),
      );
    },
  },
};

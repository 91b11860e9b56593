import { deepEqual, equal } from 'node:assert/strict';
import {
  finished,
  found,
  HOUR,
  idsOf,
  newAttempt,
  newDelivery,
  newRecord,
  oddTexts,
  stored,
  T0,
  written,
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
    deepEqual(await written(repository, [next]), [true]);
    deepEqual(await found(repository, first.id), { ...next, version: 2 });
    const over = { ...finished(next), version: 2 };
    deepEqual(await written(repository, [over]), [true]);
    deepEqual(await found(repository, first.id), { ...over, version: 3 });
  },

  'writes odd device ids': async ({ repository }) => {
    let record = await stored(repository, newRecord());
    for (const text of oddTexts) {
      const deliveries = Object.fromEntries([
        ...Object.entries(record.deliveries),
        [text, newDelivery({ lease: text })],
      ]);
      deepEqual(await written(repository, [{ ...record, deliveries }]), [true]);
      record = await found(repository, record.id);
    }
    deepEqual(Object.keys(record.deliveries).toSorted(), oddTexts.toSorted());
  },

  'refuses a version that is not the stored one, and changes nothing': async ({ repository }) => {
    const first = await stored(repository, newRecord());
    await repository.write([{ ...first, retryCount: 1 }]);
    const now = await found(repository, first.id);
    for (const version of [0, 1, 3, -1, 1.5, NaN]) {
      deepEqual(await written(repository, [{ ...now, version, retryCount: 9 }]), [false]);
    }
    deepEqual(await found(repository, first.id), now);
  },

  'refuses a record that is not there, and does not store it': async ({ repository }) => {
    const records = [newRecord(), newRecord({ version: 1 }), newRecord({ version: 7 })];
    deepEqual(await written(repository, records), [false, false, false]);
    deepEqual(await repository.find(idsOf(records)), [undefined, undefined, undefined]);
    deepEqual(await repository.list({ limit: 10 }), []);
  },

  'answers false when it is repeated after its answer was lost, and changes nothing': async ({
    repository,
  }) => {
    const first = await stored(repository, newRecord());
    const next = { ...first, retryCount: 1 };
    deepEqual(await written(repository, [next]), [true]);
    deepEqual(await written(repository, [next]), [false]);
    deepEqual(await found(repository, first.id), { ...next, version: 2 });
  },

  'writes each of a batch by itself': async ({ repository }) => {
    const records = await Promise.all(
      Array.from({ length: 6 }, () => stored(repository, newRecord())),
    );
    await repository.write([records[1]!, records[4]!]);
    const batch = records.map((record) => ({ ...record, retryCount: 5 }));
    deepEqual(await written(repository, [...batch, newRecord({ version: 1 })]), [
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
    deepEqual(await written(repository, batch), [true, false, false]);
    equal((await found(repository, first.id)).retryCount, 1);
    equal((await found(repository, first.id)).version, 2);
  },

  'adds attempts with records, and those of others too': async ({ repository }) => {
    const [first, second] = [
      await stored(repository, newRecord()),
      await stored(repository, newRecord()),
    ];
    const attempts = [
      newAttempt({ notificationId: second.id }),
      newAttempt({ notificationId: first.id, errorCode: 'kept' }),
      newAttempt({ notificationId: first.id, errorCode: 'too late' }),
      newAttempt({ notificationId: first.id, deviceId: 'tablet' }),
      newAttempt({ notificationId: 'n' }),
    ];
    deepEqual(await repository.write([{ ...first, retryCount: 1 }], attempts), {
      records: [true],
      attempts: [true, true, false, true, true],
    });
    equal((await found(repository, first.id)).retryCount, 1);
    deepEqual(await repository.attempts(first.id, { limit: 10 }), [attempts[1], attempts[3]]);
    deepEqual(await repository.attempts(second.id, { limit: 10 }), [attempts[0]]);
    deepEqual(await repository.attempts('n', { limit: 10 }), [attempts[4]]);
  },

  'leaves out the attempts of a record that was not written': async ({ repository }) => {
    const [stale, good] = [
      await stored(repository, newRecord()),
      await stored(repository, newRecord()),
    ];
    const absent = newRecord({ version: 1 });
    await repository.write([stale]);
    const records = [stale, good, { ...good, retryCount: 9 }, { ...absent, version: NaN }];
    const attempts = [stale, good, absent].map(({ id }) => newAttempt({ notificationId: id }));
    deepEqual(await repository.write(records, attempts), {
      records: [false, true, false, false],
      attempts: [false, true, false],
    });
    deepEqual(await repository.attempts(stale.id, { limit: 10 }), []);
    deepEqual(await repository.attempts(good.id, { limit: 10 }), [attempts[1]]);
    deepEqual(await repository.attempts(absent.id, { limit: 10 }), []);
    const now = await found(repository, stale.id);
    deepEqual(await repository.write([now], attempts), {
      records: [true],
      attempts: [true, false, true],
    });
  },

  'writes 500 in one call': {
    needs: 'complete',
    run: async ({ repository }) => {
      const records = Array.from({ length: 500 }, () => newRecord());
      const created = await repository.create(records);
      const next = created.map(({ record }, i) => ({ ...record, retryCount: i }));
      equal((await written(repository, next)).filter((isWritten) => isWritten).length, 500);
      const now = await repository.find(idsOf(records));
      deepEqual(
        now.map((record) => [record?.retryCount, record?.version]),
        next.map((_, i) => [i, 2]),
      );
    },
  },
};

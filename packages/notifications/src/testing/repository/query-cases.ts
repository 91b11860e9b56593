import { deepEqual, equal } from 'node:assert/strict';
import type { NotificationRecord } from '../../model/notification.ts';
import type { NotificationQuery, NotificationRepository } from '../../ports/repository.ts';
import { finished, found, HOUR, idsOf, newRecord, stored, T0 } from './fixtures.ts';
import type { Cases } from './repository-suite.ts';

export const queryCases: Cases = {
  'due: gives those whose time has come, the earliest first': async ({ repository }) => {
    const times = [5, 1, 4, 2, 3].map((n) => newRecord({ wakeAtMs: T0 + n * HOUR }));
    await repository.create(times);
    const due = await repository.due(T0 + 4 * HOUR, 10);
    deepEqual(
      due.map(({ wakeAtMs }) => wakeAtMs),
      [1, 2, 3, 4].map((n) => T0 + n * HOUR),
    );
    deepEqual(due[0], { ...times[1], version: 1 });
    deepEqual(await repository.due(T0 + HOUR - 1, 10), []);
  },

  'due: gives no more than the limit, and those are the earliest': async ({ repository }) => {
    const records = Array.from({ length: 20 }, (_, i) => newRecord({ wakeAtMs: T0 + 20 - i }));
    await repository.create(records);
    const due = await repository.due(T0 + HOUR, 3);
    deepEqual(
      due.map(({ wakeAtMs }) => wakeAtMs),
      [T0 + 1, T0 + 2, T0 + 3],
    );
    deepEqual(await repository.due(T0 + HOUR, 0), []);
  },

  'due: never gives a record without a time, and follows what is written': async ({
    repository,
  }) => {
    const over = await stored(repository, finished(newRecord()));
    const record = await stored(repository, newRecord({ wakeAtMs: T0 }));
    deepEqual(idsOf(await repository.due(Number.MAX_SAFE_INTEGER, 10)), [record.id]);
    await repository.write([{ ...over, wakeAtMs: T0 + 1 }, finished(record)]);
    deepEqual(idsOf(await repository.due(T0 + 1, 10)), [over.id]);
    await repository.write([{ ...(await found(repository, over.id)), wakeAtMs: T0 + 2 }]);
    deepEqual(await repository.due(T0 + 1, 10), []);
  },

  'due: takes a time with a fraction of a ms': async ({ repository }) => {
    await repository.create([newRecord({ wakeAtMs: T0 + 1 })]);
    deepEqual(await repository.due(T0 + 0.9, 10), []);
    equal((await repository.due(T0 + 1.1, 10)).length, 1);
  },

  'list: gives the newest first, by creation and then by the codes of the id': async ({
    repository,
  }) => {
    const ids = ['b', 'B', 'ä', '🚀', 'a', '9', '10'];
    const records = ids.map((id) => newRecord({ id }));
    const later = newRecord({ createdAtMs: T0 + 1, updatedAtMs: T0 - 5 });
    const earlier = newRecord({ createdAtMs: T0 - 1 });
    await repository.create([later, ...records, earlier]);
    const sorted = ids.toSorted().toReversed();
    const expected = [later.id, ...sorted, earlier.id];
    deepEqual(idsOf(await repository.list({ limit: 100 })), expected);
    deepEqual(idsOf(await allOf(repository, { limit: 3 })), expected);
    deepEqual(await repository.list({ limit: 0 }), []);
  },

  'list: gives whole records': async ({ repository }) => {
    const record = await stored(repository, newRecord());
    deepEqual(await repository.list({ limit: 1 }), [record]);
  },

  'list: filters by status, priority and user, alone and together': async ({ repository }) => {
    const records = (['pending', 'failed'] as const).flatMap((status) =>
      (['critical', 'low'] as const).flatMap((priority) =>
        ['ann', 'bob'].map((userId) =>
          newRecord({
            id: `${status} ${priority} ${userId}`,
            status,
            notification: { priority, recipient: { userId } },
          }),
        ),
      ),
    );
    await repository.create(records);
    const filters: Omit<NotificationQuery, 'limit'>[] = [
      { status: 'failed' },
      { priority: 'low' },
      { userId: 'ann' },
      { status: 'failed', priority: 'low' },
      { status: 'pending', userId: 'bob' },
      { priority: 'critical', userId: 'ann' },
      { status: 'failed', priority: 'critical', userId: 'bob' },
      { status: 'expired' },
      { userId: 'ANN' },
      { userId: 'a\0' },
    ];
    for (const filter of filters) {
      const wanted = records
        .filter(({ status }) => (filter.status ?? status) === status)
        .filter(({ notification: { priority } }) => (filter.priority ?? priority) === priority)
        .filter(({ notification: { recipient } }) =>
          filter.userId === undefined ? true : filter.userId === recipient.userId,
        );
      const expected = idsOf(wanted).toSorted().toReversed();
      deepEqual(idsOf(await repository.list({ ...filter, limit: 100 })), expected);
      deepEqual(idsOf(await allOf(repository, { ...filter, limit: 1 })), expected);
    }
  },

  'list: follows the status that is written': async ({ repository }) => {
    const record = await stored(repository, newRecord());
    await repository.write([{ ...record, status: 'failed' }]);
    deepEqual(await repository.list({ status: 'pending', limit: 10 }), []);
    deepEqual(idsOf(await repository.list({ status: 'failed', limit: 10 })), [record.id]);
  },

  'list: gives none twice and leaves none out while records are added and written': async ({
    repository,
  }) => {
    const records = Array.from({ length: 12 }, (_, i) => newRecord({ createdAtMs: T0 + (i >> 2) }));
    await repository.create(records);
    const seen = await allOf(repository, { limit: 5 }, async () => {
      await repository.create([newRecord({ createdAtMs: T0 + 10 }), newRecord({ id: 'zzzz' })]);
      const [first] = await repository.find([records[0]!.id]);
      await repository.write([{ ...first!, status: 'retrying', updatedAtMs: T0 + HOUR }]);
    });
    equal(new Set(idsOf(seen)).size, seen.length);
    for (const { id } of records) equal(idsOf(seen).includes(id), true);
  },
};

async function allOf(
  repository: NotificationRepository,
  query: NotificationQuery,
  meanwhile: () => Promise<void> = async () => {},
): Promise<NotificationRecord[]> {
  const all: NotificationRecord[] = [];
  for (;;) {
    const last = all.at(-1);
    const some = await repository.list({ ...query, ...(last ? { before: last } : {}) });
    if (some.length === 0) return all;
    equal(some.length <= query.limit, true, `${some.length} instead of at most ${query.limit}`);
    all.push(...some);
    equal(all.length < 1000, true, 'the pages have no end');
    await meanwhile();
  }
}

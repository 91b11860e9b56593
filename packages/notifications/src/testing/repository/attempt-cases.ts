import { deepEqual, equal } from 'node:assert/strict';
import type { DeliveryAttempt } from '../../model/notification.ts';
import type { NotificationRepository } from '../../ports/repository.ts';
import { added, newAttempt, oddTexts, T0 } from './fixtures.ts';
import type { Cases } from './repository-suite.ts';

export const attemptCases: Cases = {
  'keeps every field of an attempt': async ({ repository }) => {
    const attempts = [
      newAttempt(),
      newAttempt({
        attemptNumber: 2,
        status: 'delivered',
        platformResponse: { status: 410, 'a.b': { $c: [null, 'x\0'] }, nested: [{}] },
        errorCode: 'Unregistered',
        errorMessage: 'ünï 🚀 \0',
        attemptedAtMs: T0 + 1,
      }),
      newAttempt({ attemptNumber: 3, platformResponse: 'gone' }),
      newAttempt({ attemptNumber: 4, platformResponse: null }),
    ];
    deepEqual(await added(repository, attempts), [true, true, true, true]);
    deepEqual(await repository.attempts('n', { limit: 10 }), attempts);
  },

  'keeps the first of one notification, device and number': async ({ repository }) => {
    const first = newAttempt({ errorCode: 'first' });
    deepEqual(await added(repository, [first]), [true]);
    deepEqual(await added(repository, [newAttempt({ errorCode: 'second' })]), [false]);
    deepEqual(await repository.attempts('n', { limit: 10 }), [first]);
  },

  'takes each of a batch by itself, and one of two equal ones': async ({ repository }) => {
    await added(repository, [newAttempt({ attemptNumber: 2 })]);
    const batch = [
      newAttempt(),
      newAttempt({ attemptNumber: 2 }),
      newAttempt({ deviceId: 'tablet' }),
      newAttempt({ errorCode: 'again' }),
      newAttempt({ notificationId: 'other' }),
    ];
    deepEqual(await added(repository, batch), [true, false, true, false, true]);
    equal((await repository.attempts('n', { limit: 10 })).length, 3);
    deepEqual(await repository.attempts('other', { limit: 10 }), [batch[4]]);
  },

  'adds 500 in one call, and says of each whether it is new': {
    needs: 'complete',
    run: async ({ repository }) => {
      const attempts = Array.from({ length: 500 }, (_, i) => newAttempt({ attemptNumber: i + 1 }));
      await added(
        repository,
        attempts.filter((_, i) => i % 2 === 0),
      );
      const answers = await added(repository, attempts);
      deepEqual(
        answers,
        attempts.map((_, i) => i % 2 === 1),
      );
      equal((await repository.attempts('n', { limit: 1000 })).length, 500);
    },
  },

  'tells apart what would be the same text when put together': async ({ repository }) => {
    const attempts = [
      newAttempt({ notificationId: 'a:b', deviceId: 'c' }),
      newAttempt({ notificationId: 'a', deviceId: 'b:c' }),
      newAttempt({ notificationId: 'a', deviceId: 'b', attemptNumber: 12 }),
      newAttempt({ notificationId: 'a', deviceId: 'b:1', attemptNumber: 2 }),
    ];
    deepEqual(await added(repository, attempts), [true, true, true, true]);
  },

  'lists by the codes of the device and by number, page by page': async ({ repository }) => {
    const devices = [...oddTexts, 'Z', 'a', 'ä', '🚀'];
    const attempts = devices.flatMap((deviceId) =>
      [10, 9, 1].map((attemptNumber) => newAttempt({ deviceId, attemptNumber })),
    );
    await added(repository, attempts);
    await added(repository, [newAttempt({ notificationId: 'n2' })]);
    deepEqual(await allOf(repository, 'n', 4), attempts.toSorted(byDeviceAndNumber));
  },

  'lists one device': async ({ repository }) => {
    const numbers = Array.from({ length: 12 }, (_, i) => newAttempt({ attemptNumber: i + 1 }));
    await added(repository, [newAttempt({ deviceId: 'a' }), newAttempt({ deviceId: 'z' })]);
    await added(repository, numbers);
    deepEqual(await repository.attempts('n', { deviceId: 'phone', limit: 100 }), numbers);
    const after = { deviceId: 'phone', attemptNumber: 9 };
    deepEqual(
      await repository.attempts('n', { deviceId: 'phone', after, limit: 2 }),
      numbers.slice(9, 11),
    );
    deepEqual(await repository.attempts('n', { deviceId: 'nobody', limit: 100 }), []);
  },

  'lists none twice and leaves none out while others are added': async ({ repository }) => {
    const first = Array.from({ length: 10 }, (_, i) => newAttempt({ attemptNumber: 2 * i + 2 }));
    await added(repository, first);
    const seen = await allOf(repository, 'n', 3, async (page) => {
      // Before and behind where the next page begins.
      await added(repository, [
        newAttempt({ attemptNumber: 2 * page + 1 }),
        newAttempt({ deviceId: 'aaa', attemptNumber: page + 1 }),
      ]);
    });
    const numbers = seen.map(({ deviceId, attemptNumber }) => `${deviceId} ${attemptNumber}`);
    equal(new Set(numbers).size, numbers.length);
    for (const { attemptNumber } of first) equal(numbers.includes(`phone ${attemptNumber}`), true);
  },

  'has none of a notification that nobody has reported on': async ({ repository }) => {
    deepEqual(await repository.attempts('nobody', { limit: 10 }), []);
    deepEqual(await repository.attempts('a\0b', { limit: 10 }), []);
  },
};

async function allOf(
  repository: NotificationRepository,
  id: string,
  limit: number,
  meanwhile: (page: number) => Promise<void> = async () => {},
): Promise<DeliveryAttempt[]> {
  const all: DeliveryAttempt[] = [];
  for (let page = 0; ; page++) {
    const last = all.at(-1);
    const some = await repository.attempts(id, { limit, ...(last ? { after: last } : {}) });
    if (some.length === 0) return all;
    equal(some.length <= limit, true, `${some.length} instead of at most ${limit}`);
    all.push(...some);
    equal(all.length < 1000, true, 'the pages have no end');
    if (page < 5) await meanwhile(page);
  }
}

function byDeviceAndNumber(one: DeliveryAttempt, other: DeliveryAttempt): number {
  if (one.deviceId === other.deviceId) return one.attemptNumber - other.attemptNumber;
  return one.deviceId < other.deviceId ? -1 : 1;
}

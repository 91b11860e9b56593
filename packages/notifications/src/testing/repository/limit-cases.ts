import { deepEqual, equal, rejects } from 'node:assert/strict';
import { isNotificationError, type NotificationErrorCode } from '../../errors.ts';
import type { NotificationRecord } from '../../model/notification.ts';
import { MAX_ATTEMPT_BYTES, MAX_RECORD_BYTES } from '../../repository/limits.ts';
import {
  added,
  found,
  newAttempt,
  newDelivery,
  newRecord,
  stored,
  T0,
  written,
} from './fixtures.ts';
import type { Cases } from './repository-suite.ts';

const badIdentifiers = ['', 'a\0b', '\ud800', 'a\udc00', 'x'.repeat(256)];
const badTimes = [-1, 1.5, NaN, Infinity, 8.64e15 + 1];

export const limitCases: Cases = {
  'refuses a record that no repository takes, and stores nothing of its batch': async ({
    repository,
  }) => {
    const good = newRecord();
    for (const bad of badRecords()) {
      await rejects(repository.create([good, bad]), hasCode('INVALID_RECORD'));
    }
    deepEqual(await repository.list({ limit: 10 }), []);
    const known = await stored(repository, good);
    for (const bad of badRecords()) {
      const next = { ...bad, version: 1, id: bad.id === good.id ? good.id : bad.id };
      await rejects(repository.write([known, next]), hasCode('INVALID_RECORD'));
    }
    equal((await found(repository, good.id)).version, 1);
  },

  'refuses an attempt that no repository takes, and stores nothing of its batch': async ({
    repository,
  }) => {
    const bad = [
      ...badIdentifiers.map((deviceId) => newAttempt({ deviceId })),
      ...badIdentifiers.map((notificationId) => newAttempt({ notificationId })),
      ...[0, -1, 1.5, NaN, 2 ** 31].map((attemptNumber) => newAttempt({ attemptNumber })),
      ...badTimes.map((attemptedAtMs) => newAttempt({ attemptedAtMs })),
      newAttempt({ platformResponse: deep(100) }),
      newAttempt({ platformResponse: 1n }),
    ];
    const known = await stored(repository, newRecord());
    for (const one of bad) {
      const batch = repository.write([known], [newAttempt(), one]);
      await rejects(batch, hasCode('INVALID_RECORD'));
    }
    deepEqual(await repository.attempts('n', { limit: 10 }), []);
    equal((await found(repository, known.id)).version, 1);
  },

  'refuses a device that no repository takes': async ({ repository }) => {
    const good = { deviceId: 'a', sinceMs: T0, reason: 'r' };
    const bad = [
      ...badIdentifiers.map((deviceId) => ({ ...good, deviceId })),
      ...badTimes.map((sinceMs) => ({ ...good, sinceMs })),
    ];
    for (const one of bad) {
      await rejects(repository.deactivate([good, one]), hasCode('INVALID_RECORD'));
    }
    deepEqual(await repository.inactiveSince(['a']), [undefined]);
  },

  'takes a record up to the limit, and refuses a larger one': {
    needs: 'complete',
    run: async ({ repository }) => {
      const largest = sized(MAX_RECORD_BYTES);
      const record = await stored(repository, largest);
      deepEqual(await written(repository, [record]), [true]);
      deepEqual(await found(repository, largest.id), { ...largest, version: 2 });
      const larger = sized(MAX_RECORD_BYTES + 1);
      await rejects(repository.create([larger]), hasCode('RECORD_TOO_LARGE'));
      const grown = { ...larger, id: record.id, version: 2 };
      await rejects(repository.write([grown]), hasCode('RECORD_TOO_LARGE'));
    },
  },

  'takes a record whose many small values are larger in other formats': {
    needs: 'complete',
    run: async ({ repository }) => {
      const list = Array.from({ length: MAX_RECORD_BYTES / 2 - 500 }, () => 1);
      const record = await stored(repository, newRecord({ notification: { data: { list } } }));
      equal(
        ((await found(repository, record.id)).notification.data!['list'] as []).length,
        list.length,
      );
    },
  },

  'takes an attempt up to the limit, and refuses a larger one': {
    needs: 'complete',
    run: async ({ repository }) => {
      const empty = newAttempt({ errorMessage: '' });
      const room = MAX_ATTEMPT_BYTES - JSON.stringify(empty).length;
      const largest = { ...empty, errorMessage: 'x'.repeat(room) };
      await added(repository, [largest]);
      deepEqual(await repository.attempts('n', { limit: 1 }), [largest]);
      const larger = { ...largest, attemptNumber: 2, errorMessage: 'x'.repeat(room + 1) };
      await rejects(added(repository, [larger]), hasCode('RECORD_TOO_LARGE'));
    },
  },

  'takes data that is nested, up to the limit': async ({ repository }) => {
    const record = newRecord({ notification: { data: { deep: deep(60) } } });
    await stored(repository, record);
    deepEqual((await found(repository, record.id)).notification, record.notification);
  },
};

function badRecords(): NotificationRecord[] {
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  return [
    ...badIdentifiers.map((id) => newRecord({ id })),
    ...badIdentifiers.map((idempotencyKey) => newRecord({ notification: { idempotencyKey } })),
    ...badIdentifiers.map((userId) => newRecord({ notification: { recipient: { userId } } })),
    ...badIdentifiers.map((id) => newRecord({ deliveries: { [id]: newDelivery() } })),
    ...badTimes.map((wakeAtMs) => newRecord({ wakeAtMs })),
    ...badTimes.map((createdAtMs) => newRecord({ createdAtMs })),
    ...badTimes.map((updatedAtMs) => newRecord({ updatedAtMs })),
    newRecord({ notification: { data: { deep: deep(100) } } }),
    newRecord({ notification: { data: circle } }),
    newRecord({ notification: { data: { big: 1n } } }),
  ];
}

function deep(levels: number): unknown {
  return levels === 0 ? 'bottom' : { in: deep(levels - 1) };
}

function sized(bytes: number): NotificationRecord {
  const empty = newRecord({ notification: { data: { text: '' } } });
  const text = 'x'.repeat(bytes - JSON.stringify(empty).length);
  return { ...empty, notification: { ...empty.notification, data: { text } } };
}

function hasCode(code: NotificationErrorCode): (error: unknown) => boolean {
  return (error) => isNotificationError(error) && error.code === code && error.message.length > 20;
}

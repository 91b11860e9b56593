import { deepEqual, equal, notEqual } from 'node:assert/strict';
import {
  added,
  found,
  HOUR,
  newDelivery,
  newRecord,
  oddTexts,
  stored,
  T0,
  written,
} from './fixtures.ts';
import type { Cases } from './repository-suite.ts';

export const createCases: Cases = {
  'stores a record as version 1 and answers it': async ({ repository }) => {
    const record = newRecord();
    deepEqual(await repository.create([record]), [
      { isNew: true, record: { ...record, version: 1 } },
    ]);
    deepEqual(await repository.find([record.id]), [{ ...record, version: 1 }]);
  },

  'keeps every field, also those that the port does not know': async ({ repository }) => {
    const record = {
      ...newRecord({
        notification: {
          recipient: { userId: 'u', deviceIds: ['a', 'b'] },
          notification: {
            title: '',
            body: 'b',
            badge: 3,
            sound: null,
            nested: { list: [1, { two: [2] }] },
          },
          data: {
            price: 1.5,
            big: 2 ** 52,
            negative: -7,
            yes: true,
            none: null,
            empty: {},
            no: [],
          },
          scheduledAtMs: T0 + 1,
          quietHours: { from: '22:00', to: '07:00', timeZone: 'Europe/Berlin' },
        },
        deliveries: {
          phone: newDelivery({
            dueAtMs: T0 + HOUR,
            leaseUntilMs: T0 + 2 * HOUR,
            lease: 'l-1',
            wakeAtMs: T0 + HOUR,
            unpublished: [
              { to: 'dead_letter', atMs: T0 },
              { to: 'event', type: 'failed', atMs: T0, data: { 'a.b': { $c: 1 } } },
            ],
            failure: { class: 'transient', code: 'E', message: 'm', retryAfterMs: 5 },
          }),
        },
        status: 'retrying',
        retryCount: 4,
      }),
      later: { addedAtMs: T0, someField: [{ innerField: 1 }], snake_case: 2 },
    };
    await stored(repository, record);
    deepEqual(await found(repository, record.id), { ...record, version: 1 });
  },

  'keeps lists in lists': {
    needs: 'complete',
    run: async ({ repository }) => {
      const data = { table: [[1, [2]], [], [[{ camelCase: [[]] }]]] };
      const { id } = await stored(repository, newRecord({ notification: { data } }));
      deepEqual((await found(repository, id)).notification.data, data);
    },
  },

  'keeps odd texts, as values, as names and as device ids': async ({ repository }) => {
    // The prototype is what an object would have anyway: only an own property of that name counts.
    const names = Object.fromEntries(oddTexts.map((text, i) => [text, { is: i, text }]));
    const deliveries = Object.fromEntries(
      oddTexts.map((text, i) => [text, newDelivery({ attempt: i + 1, lease: text })]),
    );
    const data = { ...names, nul: 'a\0b', '': 'no name' };
    for (const [i, text] of oddTexts.entries()) {
      const title = { title: text, body: `${text}\0`, ...names };
      const notification = {
        recipient: { userId: text },
        notification: title,
        data,
        idempotencyKey: text,
      };
      const record = newRecord({ id: `${i}${text}`.slice(0, 255), notification, deliveries });
      await stored(repository, record);
      const again = await found(repository, record.id);
      deepEqual(again, { ...record, version: 1 });
      deepEqual(Object.keys(again.deliveries).toSorted(), oddTexts.toSorted());
    }
  },

  'answers the record that has the id, unchanged': async ({ repository }) => {
    const first = await stored(repository, newRecord());
    const again = newRecord({ id: first.id, status: 'failed', retryCount: 9 });
    deepEqual(await repository.create([again]), [{ isNew: false, record: first }]);
    deepEqual(await found(repository, first.id), first);
  },

  'answers the record that has the idempotency key, unchanged': async ({ repository }) => {
    const first = await stored(repository, newRecord());
    const { idempotencyKey } = first.notification;
    const again = newRecord({ notification: { idempotencyKey } });
    deepEqual(await repository.create([again]), [{ isNew: false, record: first }]);
    deepEqual(await repository.find([again.id]), [undefined]);
  },

  'answers the record that has the id where another one has the idempotency key': async ({
    repository,
  }) => {
    const ofId = await stored(repository, newRecord());
    const ofKey = await stored(repository, newRecord());
    const { idempotencyKey } = ofKey.notification;
    const again = newRecord({ id: ofId.id, notification: { idempotencyKey } });
    deepEqual(await repository.create([again]), [{ isNew: false, record: ofId }]);
  },

  'answers the record of today, not as it was created': async ({ repository }) => {
    const first = await stored(repository, newRecord());
    await repository.write([{ ...first, status: 'retrying' }]);
    const [again] = await repository.create([newRecord({ id: first.id })]);
    equal(again?.record.status, 'retrying');
    equal(again?.record.version, 2);
  },

  'takes each of a batch by itself': async ({ repository }) => {
    const known = await stored(repository, newRecord());
    const { idempotencyKey } = known.notification;
    const fresh = [newRecord(), newRecord()];
    const answers = await repository.create([
      newRecord({ id: known.id }),
      fresh[0]!,
      newRecord({ notification: { idempotencyKey } }),
      fresh[1]!,
    ]);
    deepEqual(
      answers.map(({ isNew, record }) => [isNew, record.id]),
      [
        [false, known.id],
        [true, fresh[0]!.id],
        [false, known.id],
        [true, fresh[1]!.id],
      ],
    );
  },

  'stores the first of two with one id or one key in a batch': async ({ repository }) => {
    const first = newRecord({ retryCount: 1 });
    const sameId = newRecord({ id: first.id, retryCount: 2 });
    const { idempotencyKey } = first.notification;
    const sameKey = newRecord({ retryCount: 3, notification: { idempotencyKey } });
    const answers = await repository.create([first, sameId, sameKey]);
    deepEqual(
      answers.map(({ isNew, record }) => [isNew, record.id, record.retryCount]),
      [
        [true, first.id, 1],
        [false, first.id, 1],
        [false, first.id, 1],
      ],
    );
  },

  'stores 500 in one call, and answers in their order': {
    needs: 'complete',
    run: async ({ repository }) => {
      const records = Array.from({ length: 500 }, (_, i) => newRecord({ retryCount: i }));
      const answers = await repository.create(records);
      deepEqual(
        answers.map(({ record }) => record.id),
        records.map(({ id }) => id),
      );
      equal(
        answers.every(({ isNew }) => isNew),
        true,
      );
      const last = await found(repository, records[499]!.id);
      equal(last.retryCount, 499);
    },
  },

  'stores nothing for an empty batch': async ({ repository }) => {
    deepEqual(await repository.create([]), []);
    deepEqual(await repository.find([]), []);
    deepEqual(await written(repository, []), []);
    deepEqual(await added(repository, []), []);
    deepEqual(await repository.inactiveSince([]), []);
    await repository.deactivate([]);
    await repository.activate([]);
    deepEqual(await repository.list({ limit: 10 }), []);
  },

  'finds in the order that was asked for, and nothing for an unknown id': async ({
    repository,
  }) => {
    const [one, two] = [
      await stored(repository, newRecord()),
      await stored(repository, newRecord()),
    ];
    const odd = ['', 'nobody', 'a\0b', '\ud800', 'x'.repeat(10_000), '$ne', '__proto__'];
    deepEqual(await repository.find([two.id, ...odd, one.id, two.id]), [
      two,
      ...odd.map(() => undefined),
      one,
      two,
    ]);
  },

  'keeps a copy: what a caller changes afterwards changes nothing': async ({ repository }) => {
    const record = newRecord({ notification: { data: { list: [1] } } });
    const answered = await stored(repository, record);
    (record.notification.data!['list'] as number[]).push(2);
    (answered.notification.data!['list'] as number[]).push(3);
    const first = await found(repository, record.id);
    deepEqual(first.notification.data, { list: [1] });
    first.retryCount = 99;
    notEqual((await found(repository, record.id)).retryCount, 99);
  },
};

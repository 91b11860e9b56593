import { deepEqual, equal } from 'node:assert/strict';
import { needing } from '@redrive/engine/testing';
import type { NotificationRecord } from '../../model/notification.ts';
import type { NotificationRepository } from '../../ports/repository.ts';
import {
  added,
  finished,
  found,
  newAttempt,
  newDelivery,
  newRecord,
  stored,
  T0,
  written,
} from './fixtures.ts';
import type { Need, Stage } from './repository-suite.ts';

const CALLERS = 20;

export const concurrencyCases = needing<Stage, Need>('atomic', {
  'creates one of 20 with one id': async ({ repository }) => {
    const { id } = newRecord();
    const answers = await all((i) => repository.create([newRecord({ id, retryCount: i })]));
    await assertOneNew(repository, answers.flat());
  },

  'creates one of 20 with one idempotency key': async ({ repository }) => {
    const notification = { idempotencyKey: 'the key' };
    const answers = await all(() => repository.create([newRecord(), newRecord({ notification })]));
    await assertOneNew(
      repository,
      answers.map(([, answer]) => answer!),
    );
    equal((await repository.list({ limit: 100 })).length, CALLERS + 1);
  },

  'creates each of many once when batches overlap in another order': async ({ repository }) => {
    const records = Array.from({ length: 60 }, () => newRecord());
    const answers = await all((i) =>
      repository.create(i % 2 === 0 ? records : records.toReversed()),
    );
    const fresh = answers.flat().filter(({ isNew }) => isNew);
    equal(fresh.length, records.length);
    equal(new Set(fresh.map(({ record }) => record.id)).size, records.length);
  },

  'loses no update of 20 writers that read, write and try again': async ({ repository }) => {
    const { id } = await stored(repository, newRecord());
    await all((i) => add(repository, id, `device ${i}`));
    const record = await found(repository, id);
    equal(record.retryCount, CALLERS);
    equal(Object.keys(record.deliveries).length, CALLERS);
    equal(record.version, CALLERS + 1);
  },

  'writes exactly one of 20 of one version': async ({ repository }) => {
    const records = await Promise.all([1, 2, 3].map(() => stored(repository, newRecord())));
    const answers = await all((i) =>
      written(
        repository,
        records.map((record) => ({ ...record, retryCount: i })),
      ),
    );
    for (const [at, { id }] of records.entries()) {
      const winners = answers.flatMap((answer, i) => (answer[at] ? [i] : []));
      equal(winners.length, 1, `${winners.length} writers of one version were told to have won`);
      const now = await found(repository, id);
      deepEqual([now.retryCount, now.version], [winners[0], 2]);
    }
  },

  'writes batches that overlap in another order': async ({ repository }) => {
    const created = await repository.create(Array.from({ length: 40 }, () => newRecord()));
    const records = created.map(({ record }) => record);
    const answers = await all((i) =>
      written(repository, i % 2 === 0 ? records : records.toReversed()),
    );
    const wins = answers.map((answer) => answer.filter((isWritten) => isWritten).length);
    equal(
      wins.reduce((sum, one) => sum + one, 0),
      records.length,
    );
  },

  'adds one of 20 attempts of one number': async ({ repository }) => {
    const answers = await all((i) =>
      added(repository, [newAttempt({ errorCode: `${i}` }), newAttempt({ attemptNumber: 2 + i })]),
    );
    const winners = answers.flatMap(([isNew], i) => (isNew ? [i] : []));
    equal(winners.length, 1);
    const [first] = await repository.attempts('n', { limit: 1 });
    equal(first?.errorCode, `${winners[0]}`);
    equal((await repository.attempts('n', { limit: 100 })).length, CALLERS + 1);
  },

  'adds the attempt of the one of 20 that writes the record': async ({ repository }) => {
    const created = await repository.create(Array.from({ length: 20 }, () => newRecord()));
    const records = created.map(({ record }) => record);
    const answers = await all((i) => {
      const some = i % 2 === 0 ? records : records.toReversed();
      const attempts = some.map(({ id }) =>
        newAttempt({ notificationId: id, attemptNumber: i + 1 }),
      );
      return repository.write(some, attempts);
    });
    for (const one of answers) deepEqual(one.attempts, one.records);
    for (const { id } of records) {
      equal((await repository.attempts(id, { limit: 100 })).length, 1);
    }
  },

  'keeps the latest time of 20 that deactivate a device': async ({ repository }) => {
    await all((i) =>
      repository.deactivate([{ deviceId: 'a', sinceMs: T0 + ((7 * i) % CALLERS), reason: 'r' }]),
    );
    deepEqual(await repository.inactiveSince(['a']), [T0 + CALLERS - 1]);
  },

  'prunes each record once, and none that somebody has woken': async ({ repository }) => {
    const created = await repository.create(
      Array.from({ length: 60 }, () => finished(newRecord())),
    );
    const records = created.map(({ record }) => record);
    const woken = records.map((record) => ({ ...record, wakeAtMs: T0 }));
    const [writes, ...pruned] = await Promise.all([
      written(repository, woken),
      ...Array.from({ length: 4 }, () => repository.prune(T0 + 1, 30)),
    ]);
    const left = await repository.find(records.map(({ id }) => id));
    const gone = left.filter((record) => record === undefined).length;
    equal(
      pruned.reduce((sum, one) => sum + one, 0),
      gone,
    );
    deepEqual(
      writes,
      left.map((record) => record !== undefined),
    );
  },
});

function all<T>(call: (i: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: CALLERS }, (_, i) => call(i)));
}

async function assertOneNew(
  repository: NotificationRepository,
  answers: readonly { isNew: boolean; record: NotificationRecord }[],
): Promise<void> {
  const fresh = answers.filter(({ isNew }) => isNew);
  equal(fresh.length, 1, `${fresh.length} of ${answers.length} were told to be new`);
  const kept = await found(repository, fresh[0]!.record.id);
  for (const { record } of answers) deepEqual(record, kept);
}

/** As a worker does: reads, decides, writes, and begins again where somebody was faster. */
async function add(repository: NotificationRepository, id: string, deviceId: string) {
  for (let tries = 0; tries < 1000; tries++) {
    const record = await found(repository, id);
    const deliveries = { ...record.deliveries, [deviceId]: newDelivery() };
    const next = { ...record, deliveries, retryCount: record.retryCount + 1 };
    const [isWritten] = await written(repository, [next]);
    if (isWritten) return;
  }
  throw new Error('a writer lost a thousand times: is there a winner at all?');
}

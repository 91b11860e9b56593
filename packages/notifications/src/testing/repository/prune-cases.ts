import { deepEqual, equal } from 'node:assert/strict';
import {
  added,
  finished,
  HOUR,
  idsOf,
  newAttempt,
  newRecord,
  stored,
  T0,
  written,
} from './fixtures.ts';
import type { Cases } from './repository-suite.ts';

export const pruneCases: Cases = {
  'deletes what is over and was last written before the time, with its attempts': async ({
    repository,
  }) => {
    const old = finished(newRecord({ updatedAtMs: T0 - 1 }));
    const young = finished(newRecord({ updatedAtMs: T0 }));
    await repository.create([old, young]);
    await added(
      repository,
      [old, young].flatMap(({ id }) =>
        [1, 2].map((attemptNumber) => newAttempt({ notificationId: id, attemptNumber })),
      ),
    );
    equal(await repository.prune(T0, 10), 1);
    deepEqual(await repository.find([old.id]), [undefined]);
    deepEqual(await repository.attempts(old.id, { limit: 10 }), []);
    equal((await repository.find([young.id]))[0]?.version, 1);
    equal((await repository.attempts(young.id, { limit: 10 })).length, 2);
    equal(await repository.prune(T0, 10), 0);
  },

  'never deletes what still waits': async ({ repository }) => {
    const waiting = newRecord({ updatedAtMs: T0 - HOUR, wakeAtMs: T0 - HOUR });
    const again = await stored(repository, finished(newRecord({ updatedAtMs: T0 - HOUR })));
    await repository.create([waiting]);
    await repository.write([{ ...again, wakeAtMs: T0 + HOUR }]);
    equal(await repository.prune(T0, 10), 0);
    equal((await repository.list({ limit: 10 })).length, 2);
  },

  'deletes no more than the limit, the oldest first': async ({ repository }) => {
    const records = Array.from({ length: 7 }, (_, i) =>
      finished(newRecord({ updatedAtMs: T0 - i, createdAtMs: T0 + i })),
    );
    await repository.create(records);
    equal(await repository.prune(T0 + HOUR, 3), 3);
    const left = await repository.list({ limit: 10 });
    deepEqual(idsOf(left).toSorted(), idsOf(records.slice(0, 4)).toSorted());
    equal(await repository.prune(T0 + HOUR, 0), 0);
    equal(await repository.prune(T0 + HOUR, 100), 4);
  },

  'deletes many in one call': {
    needs: 'complete',
    run: async ({ repository }) => {
      await repository.create(Array.from({ length: 450 }, () => finished(newRecord())));
      equal(await repository.prune(T0 + 1, 10_000), 450);
      deepEqual(await repository.list({ limit: 1 }), []);
    },
  },

  'gives the id and the key free, and a writer of before writes nothing': async ({
    repository,
  }) => {
    const record = finished(newRecord());
    const before = await stored(repository, record);
    await repository.prune(T0 + 1, 10);
    deepEqual(await written(repository, [{ ...before, retryCount: 1 }]), [false]);
    deepEqual(await repository.find([record.id]), [undefined]);
    equal((await stored(repository, record)).version, 1);
  },
};

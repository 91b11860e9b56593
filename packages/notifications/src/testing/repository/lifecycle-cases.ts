import { deepEqual, equal, rejects } from 'node:assert/strict';
import { added, newAttempt, newRecord, stored, T0, written } from './fixtures.ts';
import type { Cases } from './repository-suite.ts';

export const lifecycleCases: Cases = {
  'may be opened and closed again and again': async ({ repository }) => {
    await repository.open();
    await Promise.all([repository.open(), repository.open()]);
    await stored(repository, newRecord());
    await repository.close();
    await Promise.all([repository.close(), repository.close()]);
    await repository.open();
    await stored(repository, newRecord());
  },

  'rejects while it is closed': async ({ repository }) => {
    await repository.close();
    const isUnavailable = { code: 'STORE_UNAVAILABLE' };
    await rejects(repository.create([newRecord()]), isUnavailable);
    await rejects(repository.write([newRecord()]), isUnavailable);
    await rejects(repository.find(['a']), isUnavailable);
    await rejects(repository.due(T0, 1), isUnavailable);
    await rejects(repository.list({ limit: 1 }), isUnavailable);
    await rejects(added(repository, [newAttempt()]), isUnavailable);
    await rejects(repository.inactiveSince(['a']), isUnavailable);
  },

  'has everything when it is opened again': {
    needs: 'durable',
    run: async ({ repository, another }) => {
      const record = await stored(repository, newRecord());
      await repository.write([{ ...record, retryCount: 1 }]);
      await added(repository, [newAttempt()]);
      await repository.deactivate([{ deviceId: 'a', sinceMs: T0, reason: 'r' }]);
      await repository.close();
      const again = another();
      await again.open();
      try {
        deepEqual(await again.find([record.id]), [{ ...record, retryCount: 1, version: 2 }]);
        deepEqual(await again.attempts('n', { limit: 1 }), [newAttempt()]);
        deepEqual(await again.inactiveSince(['a']), [T0]);
        equal((await again.due(T0 ** 2, 10)).length, 1);
        deepEqual(await written(again, [{ ...record, version: 2 }]), [true]);
      } finally {
        await again.close();
      }
    },
  },

  'shares its records with others': {
    needs: 'durable',
    run: async ({ repository, another }) => {
      const others = [another(), another(), another()];
      await Promise.all(others.map((other) => other.open()));
      try {
        const record = await stored(repository, newRecord());
        deepEqual(await written(others[0]!, [{ ...record, retryCount: 1 }]), [true]);
        deepEqual(await written(others[1]!, [{ ...record, retryCount: 2 }]), [false]);
        equal((await others[2]!.create([record]))[0]?.record.retryCount, 1);
        equal((await repository.find([record.id]))[0]?.retryCount, 1);
      } finally {
        await Promise.all(others.map((other) => other.close()));
      }
    },
  },
};

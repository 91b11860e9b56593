import { deepEqual, equal, rejects } from 'node:assert/strict';
import { needing } from '@redrive/engine/testing';
import { isNotificationError } from '../../errors.ts';
import { idsOf, newRecord, T0, written } from './fixtures.ts';
import type { Need, Stage } from './repository-suite.ts';

export const damageCases = needing<Stage, Need>('damaging', {
  'find and create reject with the names of all that cannot be read': async (stage) => {
    const { repository, told } = stage;
    const { good, bad } = await damaged(stage);
    const isNamed = (error: unknown) =>
      isNotificationError(error) &&
      error.code === 'RECORD_UNREADABLE' &&
      error.ids.toSorted().join() === bad.toSorted().join() &&
      bad.every((id) => error.message.includes(id));
    await rejects(repository.find([good[0]!, bad[0]!, bad[1]!]), isNamed);
    await rejects(repository.create(bad.map((id) => newRecord({ id }))), isNamed);
    deepEqual(idsOf((await repository.find(good)).map((record) => record!)), good);
    deepEqual([...told].toSorted(), bad.toSorted());
  },

  'due gives the others, up to the limit, and tells once of each': async (stage) => {
    const { good, bad } = await damaged(stage);
    for (let look = 0; look < 2; look++) {
      deepEqual(idsOf(await stage.repository.due(T0 + 100, 2)), good.slice(0, 2));
      deepEqual(idsOf(await stage.repository.due(T0 + 100, 10)), good);
    }
    deepEqual([...stage.told].toSorted(), bad.toSorted());
  },

  'list gives the others, up to the limit': async (stage) => {
    const { good } = await damaged(stage);
    deepEqual(idsOf(await stage.repository.list({ limit: 10 })), good.toReversed());
    deepEqual(idsOf(await stage.repository.list({ limit: 2 })), good.toReversed().slice(0, 2));
    deepEqual(idsOf(await stage.repository.list({ status: 'pending', limit: 10 })).length, 3);
  },

  'a batch writes and creates the others': async (stage) => {
    const { repository } = stage;
    const { good } = await damaged(stage);
    const [record] = await repository.find([good[1]!]);
    deepEqual(await written(repository, [record!]), [true]);
    const [created] = await repository.create([newRecord()]);
    equal(created?.isNew, true);
  },
});

/** Three that can be read, with two among them that cannot: the first of all, and one between. */
async function damaged({ repository, damage }: Stage): Promise<{ good: string[]; bad: string[] }> {
  const ids = ['a', 'b', 'c', 'd', 'e'];
  await repository.create(
    ids.map((id, i) => newRecord({ id: `rec-${id}`, wakeAtMs: T0 + i, createdAtMs: T0 + i })),
  );
  await damage('rec-a', 'with deliveries as a text');
  await damage('rec-c', 'without createdAtMs');
  return { good: ['rec-b', 'rec-d', 'rec-e'], bad: ['rec-a', 'rec-c'] };
}

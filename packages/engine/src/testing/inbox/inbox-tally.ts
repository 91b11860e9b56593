import { deepEqual, equal, ok } from 'node:assert/strict';
import { cancel } from '../../model/moves.ts';
import type { ActResult, Frozen } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import {
  broken,
  claimDue,
  claimExpired,
  ids,
  inLine,
  put,
  row,
  settlements,
  unreachable,
} from '../fixtures.ts';
import {
  actOne,
  comeBack,
  deadMany,
  failIn,
  jobDocument,
  newJob,
  openItem,
} from './inbox-fixtures.ts';
import { asId, FIRST, freezeAll, hold, JOB, memberIds } from './inbox-jobs.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each } from '../suite.ts';

export const membersCases: StoreCases = {
  'gives the oldest first, after an item and up to a limit': async ({ store }) => {
    const all = ids(await deadMany(store, 5));
    await newJob(store, JOB);
    await freezeAll(store);
    deepEqual(await memberIds(store, { after: 0, limit: 2 }), all.slice(0, 2));
    deepEqual(await memberIds(store, { after: all[1]!, limit: 2 }), all.slice(2, 4));
    deepEqual(await memberIds(store, { after: all[4]!, limit: 2 }), []);
  },

  'gives those with one result': async ({ store }) => {
    const [one, two, three, four] = await deadMany(store, 4);
    await newJob(store, JOB);
    await freezeAll(store);
    await actOne(store, two!, { type: 'resolve' });
    const asked = [one!.id, two!.id, three!.id];
    await store.act(
      asked,
      { type: 'discard' },
      hold<ActResult[]>(2, () => ({ step: 2 })),
    );
    const by = async (result: ActResult, upTo = three!.id) =>
      ids((await store.members({ job: JOB, result, after: 0, upTo, limit: 10 })).map(asId));
    deepEqual(await by('done'), [one!.id, three!.id]);
    deepEqual(await by('done', FIRST), [one!.id, three!.id, four!.id]);
    deepEqual(await by('closed'), [two!.id]);
    deepEqual(await by('closed', one!.id), []);
    deepEqual(await by('fault'), []);
  },

  'keeps jobs apart, and has none for one that nobody knows': async ({ store }) => {
    const [one, two] = await deadMany(store, 2);
    for (const [job, only] of [
      [1, one!.id],
      [2, two!.id],
    ] as const) {
      await newJob(store, job);
      const under = { ...hold<Frozen>(1, () => ({})), job };
      await store.freeze({ ids: [only] }, { before: FIRST, limit: 10 }, under);
    }
    deepEqual(await store.members({ job: 1, after: 0, limit: 10 }), [{ itemId: one!.id }]);
    deepEqual(await store.members({ job: 2, after: 0, limit: 10 }), [{ itemId: two!.id }]);
    deepEqual(await store.members({ job: 3, after: 0, limit: 10 }), []);
  },
};

export const tallyCases: StoreCases = {
  'is empty for a job that has sent nothing': async ({ store }) => {
    const none = { underway: 0, blocked: 0, taken: 0, cancelled: 0, back: 0 };
    deepEqual(await store.tally(JOB, 100), none);
  },

  'follows each task to its end': async ({ store, sameTime, nowMs }) => {
    await replayed(store, 5);
    deepEqual(await counts(store), { underway: 5, taken: 0, cancelled: 0, back: 0 });
    const { tasks } = await claimDue(store, 'a');
    deepEqual(await counts(store), { underway: 5, taken: 0, cancelled: 0, back: 0 });
    const [done, taken, dropped, failed, again] = tasks;
    await store.settle([settlements.done(done!), settlements.retried(taken!)]);
    await store.settle([settlements.pending(again!), settlements.failed(failed!)]);
    await store.settle([settlements.cancelled(dropped!)]);
    const { takenAtMs, failure, ...rest } = await store.tally(JOB, 100);
    deepEqual(rest, { underway: 1, blocked: 0, taken: 1, cancelled: 1, back: 1 });
    deepEqual(failure, broken);
    sameTime(takenAtMs, await nowMs());
    equal(takenAtMs, (await row(store, taken!.id)).finishedAtMs);
  },

  'says how many wait behind others of their key': async ({ store }) => {
    const { id: head } = await put(store, inLine('k', { lane: 'a' }));
    const { id: follower } = await put(store, inLine('k', { lane: 'a', expiresAtMs: 1 }));
    // It fails in its place, before the head does.
    const { tasks } = await claimExpired(store);
    deepEqual(ids(tasks), [follower]);
    await store.settle(tasks.map(settlements.failed));
    await failIn(store, 'a');
    const replay = async (id: number) =>
      store.act([(await openItem(store, id)).id], { type: 'replay', job: JOB });
    const waiting = async () => {
      const { underway, blocked } = await store.tally(JOB, 100);
      return [underway, blocked];
    };
    await replay(follower);
    deepEqual(await waiting(), [1, 1]);
    await replay(head);
    deepEqual(await waiting(), [2, 1]);
  },

  'says when a broker took the last one': async ({ store, pass }) => {
    await replayed(store, 3);
    const { tasks } = await claimDue(store, 'a');
    for (const task of tasks) {
      await store.settle([settlements.retried(task)]);
      await pass(5);
    }
    const { takenAtMs, taken } = await store.tally(JOB, 100);
    deepEqual([taken, takenAtMs], [3, (await row(store, tasks.at(-1)!.id)).finishedAtMs]);
  },

  'sees one that a broker had taken come back': async ({ store }) => {
    await replayed(store, 1);
    const [task] = (await claimDue(store, 'a')).tasks;
    await store.settle([settlements.retried(task!)]);
    equal(await comeBack(store, task!), 'accepted');
    deepEqual(await counts(store), { underway: 1, taken: 0, cancelled: 0, back: 0 });
  },

  'sees one that was cancelled on its way': {
    needs: 'changing',
    run: async ({ store }) => {
      await replayed(store, 2);
      const [task] = await store.list({ status: 'pending', limit: 1 });
      await store.change([task!], cancel);
      deepEqual(await counts(store), { underway: 1, taken: 0, cancelled: 1, back: 0 });
    },
  },

  ...each(
    ['resolve', 'discard', 'erase', 'redirect'] as const,
    (how) => `counts one that came back once, after ${how} too`,
    async (how, { store }: Stage) => {
      await replayed(store, 1);
      await failIn(store, 'a', { failure: unreachable });
      const [back] = (await store.items({ state: 'open', limit: 1 })).items;
      equal(back?.job, JOB);
      const destination = { kind: 'queue', address: 'elsewhere' };
      if (how === 'erase') await store.erase(back.messageId);
      else if (how === 'redirect')
        await actOne(store, back, { type: 'replay', edit: { destination } });
      else await actOne(store, back, { type: how });
      deepEqual(await counts(store), { underway: 0, taken: 0, cancelled: 0, back: 1 });
    },
  ),

  'tells why the last of those that came back did': async ({ store }) => {
    await replayed(store, 1);
    await failIn(store, 'a', { failure: unreachable });
    deepEqual((await store.tally(JOB, 100)).failure, unreachable);
    await replayed(store, 1);
    const failure = { class: 'business', message: 'No.' } as const;
    await failIn(store, 'a', { failure });
    const { back, failure: last } = await store.tally(JOB, 100);
    deepEqual([back, last], [2, failure]);
  },

  'counts no further than it is asked to': async ({ store }) => {
    await replayed(store, 10);
    equal((await store.tally(JOB, 4)).underway, 4);
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.retried));
    equal((await store.tally(JOB, 4)).taken, 4);
    equal((await store.tally(JOB, 100)).taken, 10);
  },

  'forgets what another replay has taken over': async ({ store }) => {
    await replayed(store, 1);
    await failIn(store, 'a');
    const [task] = await store.list({ status: 'failed', limit: 1 });
    await actOne(store, await openItem(store, task!.id), { type: 'replay', job: JOB + 1 });
    deepEqual(await counts(store), { underway: 0, taken: 0, cancelled: 0, back: 1 });
    equal((await store.tally(JOB + 1, 100)).underway, 1);
  },
};

export const forgetJobCases: StoreCases = {
  'forgets members and document, so many at a time': async ({ store }) => {
    await deadMany(store, 5);
    await newJob(store, JOB);
    await freezeAll(store);
    equal(await store.forgetJob(JOB, 2), false);
    ok(await jobDocument(store, JOB), 'the document goes last');
    equal((await memberIds(store)).length, 3);
    let calls = 1;
    while (!(await store.forgetJob(JOB, 2))) ok((calls += 1) < 10, 'it ends');
    deepEqual(await memberIds(store), []);
    equal(await jobDocument(store, JOB), undefined);
    equal(await store.count({ state: 'open' }), 5);
  },

  'leaves other jobs, and says so of one that nobody knows': async ({ store }) => {
    await deadMany(store, 2);
    await newJob(store, JOB);
    await newJob(store, JOB * 10);
    await freezeAll(store);
    equal(await store.forgetJob(4, 100), true);
    equal(await store.forgetJob(JOB * 10, 100), true);
    ok(await jobDocument(store, JOB));
    equal((await memberIds(store)).length, 2);
  },
};

/** So many tasks that the job has just sent. */
async function replayed(store: Store, count: number): Promise<void> {
  const items = await deadMany(store, count);
  const results = await store.act(ids(items), { type: 'replay', job: JOB });
  ok(results.every((result) => result === 'done'));
}

async function counts(store: Store) {
  const { underway, taken, cancelled, back } = await store.tally(JOB, 100);
  return { underway, taken, cancelled, back };
}

import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ActResult, Frozen, ItemFilter, JobHold } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import { claimDue, expectRow, ids, inLane, inLine, row } from '../fixtures.ts';
import {
  actOne,
  dead,
  deadMany,
  deadRaw,
  itemBy,
  jobDocument,
  newJob,
  sameItem,
} from './inbox-fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each } from '../suite.ts';

export const JOB = 41;
export const FIRST = Number.MAX_SAFE_INTEGER;

/** A step of a bulk job: what it does and how far it is are one commit. */
export const jobActCases: StoreCases = {
  'acts, marks whoever is not done and writes the document together': async ({ store }) => {
    const [one, two, three] = await deadMany(store, 3);
    await newJob(store, JOB);
    await freezeAll(store);
    await actOne(store, two!, { type: 'resolve' });
    const asked = [one!.id, two!.id];
    const under = hold<ActResult[]>(2, (results) => ({ step: 1, results }));
    deepEqual(await store.act(asked, { type: 'replay', job: JOB }, under), ['done', 'closed']);
    deepEqual(await jobDocument(store, JOB), [{ step: 1, results: ['done', 'closed'] }, 3]);
    deepEqual(await store.members({ job: JOB, after: 0, limit: 10 }), [
      { itemId: one!.id },
      { itemId: two!.id, result: 'closed' },
      { itemId: three!.id },
    ]);
    equal((await row(store, one!.taskId!)).job, JOB);
  },

  ...each(
    ['older', 'newer', 'of a job that nobody knows'] as const,
    (what) => `does nothing where the version is ${what}`,
    async (what, { store }: Stage) => {
      const { task, item: before } = await dead(store);
      await newJob(store, JOB);
      await freezeAll(store);
      const under = hold<ActResult[]>(what === 'older' ? 1 : 3, () => ({ step: 'wrong' }));
      const job = what === 'of a job that nobody knows' ? JOB + 1 : JOB;
      const action = { type: 'replay', job } as const;
      equal(await store.act([before.id], action, { ...under, job }), undefined);
      await expectRow(store, task);
      sameItem(await itemBy(store, before.id), before);
      deepEqual(await store.members({ job: JOB, after: 0, limit: 10 }), [{ itemId: before.id }]);
      equal((await jobDocument(store, JOB))?.[1], 2);
      equal(await jobDocument(store, JOB + 1), undefined);
    },
  ),

  'lets one of several go on that know the same version': async ({ store }) => {
    const all = ids(await deadMany(store, 20));
    await newJob(store, JOB);
    const under = hold<ActResult[]>(1, (results) => ({ sent: results.length }));
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => store.act(all, { type: 'replay', job: JOB }, under)),
    );
    equal(answers.filter((answer) => answer !== undefined).length, 1);
    deepEqual(await jobDocument(store, JOB), [{ sent: 20 }, 2]);
    equal(await store.count({ state: 'replayed' }), 20);
  },

  'lets two jobs share items, and replays each once': async ({ store }) => {
    const all = ids(await deadMany(store, 20));
    for (const job of [1, 2]) await newJob(store, job);
    const answers = await Promise.all(
      [1, 2].map((job) =>
        store.act(all, { type: 'replay', job }, { ...hold<ActResult[]>(1, () => ({})), job }),
      ),
    );
    const done = answers.flatMap((results) => results!.filter((one) => one === 'done'));
    equal(done.length, 20);
    const tasks = await Promise.all(
      [1, 2].map(async (job) => (await store.tally(job, 100)).underway),
    );
    equal(tasks[0]! + tasks[1]!, 20);
  },

  ...each(
    ['replay', 'discard'] as const,
    (type) => `does a ${type} of plain items and of others in one step`,
    async (type, { store }: Stage) => {
      const [first, last, closed, changed] = await deadMany(store, 4);
      const { item: ordered } = await dead(store, inLine('k', { lane: 'a' }));
      const raw = await deadRaw(store);
      equal(await actOne(store, closed!, { type: 'resolve' }), 'done');
      const edit = { headers: { 'x-a': '1' } };
      equal(await actOne(store, changed!, { type: 'edit', edit }), 'done');
      await newJob(store, JOB);
      const asked = [first, closed, ordered, changed, raw, first, last].map((item) => item!.id);
      const unknown = Math.max(...asked) + 1000;
      const action = type === 'replay' ? { type, job: JOB } : { type };
      const under = hold<ActResult[]>(1, (results) => ({ results }));
      const results = await store.act([unknown, ...asked], action, under);
      const ofRaw = type === 'replay' ? 'unaddressed' : 'done';
      deepEqual(results, ['unknown', 'done', 'closed', 'done', 'done', ofRaw, 'closed', 'done']);
      deepEqual(await jobDocument(store, JOB), [{ results }, 2]);
      const after = type === 'replay' ? 'replayed' : 'discarded';
      for (const item of [first!, ordered, changed!, last!]) {
        equal((await itemBy(store, item.id)).state, after);
        const { status, generation } = await row(store, item.taskId!);
        deepEqual([status, generation], type === 'replay' ? ['pending', 1] : ['cancelled', 0]);
      }
      equal((await itemBy(store, closed!.id)).state, 'resolved');
      equal((await itemBy(store, raw.id)).state, type === 'replay' ? 'open' : after);
      equal((await claimDue(store, 'a')).tasks.length, type === 'replay' ? 4 : 0);
    },
  ),

  'marks nobody who is no member': async ({ store }) => {
    const { item: before } = await dead(store);
    await newJob(store, JOB);
    const under = hold<ActResult[]>(1, () => ({ step: 1 }));
    deepEqual(await store.act([before.id], { type: 'resolve' }, under), ['done']);
    deepEqual(await store.members({ job: JOB, after: 0, limit: 10 }), []);
  },

  'marks those that cannot be acted on': async ({ store }) => {
    const [one] = await deadMany(store, 1);
    await newJob(store, JOB);
    await freezeAll(store);
    await store.act(
      [one!.id],
      { type: 'pass' },
      hold<ActResult[]>(2, () => ({ step: 1 })),
    );
    deepEqual(await store.members({ job: JOB, after: 0, limit: 10 }), [
      { itemId: one!.id, result: 'fault' },
    ]);
    equal((await itemBy(store, one!.id)).state, 'open');
  },
};

export const freezeCases: StoreCases = {
  'adds the open items that match, and no later ones': async ({ store }) => {
    const [one, two, closed] = await deadMany(store, 3);
    await dead(store, inLane('b'));
    await actOne(store, closed!, { type: 'resolve' });
    await newJob(store, JOB);
    const under = hold<Frozen>(1, (frozen) => ({ frozen }));
    deepEqual(await store.freeze({ lane: 'a' }, { before: FIRST, limit: 100 }, under), {
      added: 2,
    });
    deepEqual(await jobDocument(store, JOB), [{ frozen: { added: 2 } }, 2]);
    await deadMany(store, 2);
    deepEqual(await memberIds(store), [one!.id, two!.id]);
  },

  'adds open ones only, whatever the filter says': async ({ store }) => {
    const [closed, open] = await deadMany(store, 2);
    await actOne(store, closed!, { type: 'discard' });
    await newJob(store, JOB);
    await freezeAll(store, { state: 'discarded' });
    await freezeAll(store, { ids: [closed!.id, open!.id] }, 2);
    deepEqual(await memberIds(store), [open!.id]);
  },

  'goes on page by page, the newest first': async ({ store }) => {
    const all = ids(await deadMany(store, 7));
    await newJob(store, JOB);
    let before: number | undefined = FIRST;
    let added = 0;
    for (let version = 1; before !== undefined; version++) {
      const under = hold<Frozen>(version, ({ next }) => ({ next: next ?? 'none' }));
      const frozen: Frozen | undefined = await store.freeze({}, { before, limit: 3 }, under);
      ok(frozen && frozen.added <= 3 && version < 10);
      added += frozen.added;
      deepEqual(await memberIds(store), all.slice(-added));
      deepEqual(await jobDocument(store, JOB), [{ next: frozen.next ?? 'none' }, version + 1]);
      before = frozen.next;
    }
    deepEqual(await memberIds(store), all);
  },

  'finds nothing where nothing matches, and says so': async ({ store }) => {
    await deadMany(store, 2);
    await newJob(store, JOB);
    const under = hold<Frozen>(1, (frozen) => ({ frozen }));
    const page = { before: FIRST, limit: 10 };
    deepEqual(await store.freeze({ lane: 'nowhere' }, page, under), { added: 0 });
    deepEqual(await memberIds(store), []);
  },

  'adds nothing where the version is another': async ({ store }) => {
    await deadMany(store, 2);
    await newJob(store, JOB);
    for (const version of [0, 2]) {
      const under = hold<Frozen>(version, () => ({ step: 'wrong' }));
      equal(await store.freeze({}, { before: FIRST, limit: 10 }, under), undefined);
    }
    deepEqual(await memberIds(store), []);
    deepEqual(await jobDocument(store, JOB), [{ step: 0 }, 1]);
  },

  'lets one of several go on that know the same version': async ({ store }) => {
    await deadMany(store, 5);
    await newJob(store, JOB);
    const under = hold<Frozen>(1, () => ({ step: 1 }));
    const page = { before: FIRST, limit: 10 };
    const answers = await Promise.all([1, 2, 3].map(() => store.freeze({}, page, under)));
    deepEqual(
      answers.filter((answer) => answer !== undefined),
      [{ added: 5 }],
    );
    equal((await memberIds(store)).length, 5);
  },
};

export function hold<T>(version: number, next: (result: T) => unknown): JobHold<T> {
  return { job: JOB, version, next };
}

/** Makes all that is open a member. */
export async function freezeAll(store: Store, filter: ItemFilter = {}, version = 1): Promise<void> {
  const under = hold<Frozen>(version, () => ({ step: 'frozen' }));
  ok(await store.freeze(filter, { before: FIRST, limit: 1000 }, under));
}

export async function memberIds(
  store: Store,
  page: { after: number; limit: number } = { after: 0, limit: 1000 },
): Promise<number[]> {
  return ids((await store.members({ job: JOB, ...page })).map(asId));
}

export function asId({ itemId }: { itemId: number }): { id: number } {
  return { id: itemId };
}

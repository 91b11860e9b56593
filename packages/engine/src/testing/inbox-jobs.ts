import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ActResult, Frozen, ItemFilter, JobHold } from '../ports/inbox.ts';
import type { Store } from '../ports/store.ts';
import { cancel } from '../moves.ts';
import {
  broken,
  claimDue,
  expectRow,
  ids,
  inLane,
  row,
  settlements,
  unreachable,
} from './fixtures.ts';
import {
  actOne,
  comeBack,
  dead,
  deadMany,
  failIn,
  item,
  jobDocument,
  newJob,
  openItem,
  sameItem,
} from './inbox-fixtures.ts';
import type { Stage, StoreCases } from './stage.ts';
import { each } from './suite.ts';

const JOB = 41;
const FIRST = Number.MAX_SAFE_INTEGER;

/** A step of a bulk job: what it does and how far it is are one commit. */
export const jobActCases: StoreCases = {
  'acts, marks the members and writes the document together': async ({ store }) => {
    const [one, two, three] = await deadMany(store, 3);
    await newJob(store, JOB);
    await freezeAll(store);
    await actOne(store, two!, { type: 'resolve' });
    const asked = [one!.id, two!.id];
    const under = hold<ActResult[]>(2, (results) => ({ step: 1, results }));
    deepEqual(await store.act(asked, { type: 'replay', job: JOB }, under), ['done', 'closed']);
    deepEqual(await jobDocument(store, JOB), [{ step: 1, results: ['done', 'closed'] }, 3]);
    deepEqual(await store.members({ job: JOB, after: 0, limit: 10 }), [
      { itemId: one!.id, result: 'done' },
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
      sameItem(await item(store, before.id), before);
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
    equal((await item(store, one!.id)).state, 'open');
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
    const [one, two, three] = await deadMany(store, 3);
    await newJob(store, JOB);
    await freezeAll(store);
    await actOne(store, two!, { type: 'resolve' });
    const asked = [one!.id, two!.id, three!.id];
    await store.act(
      asked,
      { type: 'discard' },
      hold<ActResult[]>(2, () => ({ step: 2 })),
    );
    const by = async (result: ActResult) =>
      ids((await store.members({ job: JOB, result, after: 0, limit: 10 })).map(asId));
    deepEqual(await by('done'), [one!.id, three!.id]);
    deepEqual(await by('closed'), [two!.id]);
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
    deepEqual(await store.tally(JOB, 100), { underway: 0, taken: 0, cancelled: 0, back: 0 });
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
    deepEqual(rest, { underway: 1, taken: 1, cancelled: 1, back: 1 });
    deepEqual(failure, broken);
    sameTime(takenAtMs, await nowMs());
    equal(takenAtMs, (await row(store, taken!.id)).finishedAtMs);
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
      if (how === 'erase') await store.erase(back!.messageId);
      else if (how === 'redirect')
        await actOne(store, back!, { type: 'replay', edit: { destination } });
      else await actOne(store, back!, { type: how });
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

function hold<T>(version: number, next: (result: T) => unknown): JobHold<T> {
  return { job: JOB, version, next };
}

/** Makes all that is open a member. */
async function freezeAll(store: Store, filter: ItemFilter = {}, version = 1): Promise<void> {
  const under = hold<Frozen>(version, () => ({ step: 'frozen' }));
  ok(await store.freeze(filter, { before: FIRST, limit: 1000 }, under));
}

async function memberIds(
  store: Store,
  page: { after: number; limit: number } = { after: 0, limit: 1000 },
): Promise<number[]> {
  return ids((await store.members({ job: JOB, ...page })).map(asId));
}

function asId({ itemId }: { itemId: number }): { id: number } {
  return { id: itemId };
}

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

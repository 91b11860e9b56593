import { deepEqual, equal } from 'node:assert/strict';
import { cancel, expedite } from '../../model/moves.ts';
import type { Hint, Schedule } from '../../ports/schedule.ts';
import { expectRow, HOUR_MS, inLane, newTask, put, putClaimed, settlements } from '../fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';

export const watchCases: StoreCases = {
  'tells of new tasks': async (stage) => {
    const { store } = stage;
    const heard = await listen(stage, store);
    await store.insert([inLane('a', { due: { inMs: HOUR_MS } }), inLane('b')]);
    await stage.until('a hint of the lane', () => heard.lane('b'));
  },

  'tells of tasks that change inserts': async (stage) => {
    const { store } = stage;
    const heard = await listen(stage, store);
    const task = inLane('a');
    await store.change([task], () => ({ result: 1, task }));
    await stage.until('a hint of the lane', () => heard.lane('a'));
  },

  'tells of tasks that wait again': async (stage) => {
    const { store } = stage;
    const task = await putClaimed(store, inLane('a'));
    const heard = await listen(stage, store);
    await store.settle([{ ...settlements.pending(task), delayMs: 0 } as never]);
    await stage.until('a hint of the lane', () => heard.lane('a'));
  },

  'tells of tasks that are given back': async (stage) => {
    const { store } = stage;
    const task = await putClaimed(store, inLane('a'));
    const heard = await listen(stage, store);
    await store.settle([settlements.released(task)]);
    await stage.until('a hint of the lane', () => heard.lane('a'));
  },

  'tells of tasks that are made due': {
    needs: 'changing',
    run: async (stage) => {
      const { store } = stage;
      const task = await put(store, inLane('a', { due: { inMs: HOUR_MS } }));
      const heard = await listen(stage, store);
      await store.change([task], expedite);
      await stage.until('a hint of the lane', () => heard.lane('a'));
    },
  },

  'tells of shared state': async (stage) => {
    const { store } = stage;
    const heard = await listen(stage, store);
    await store.writeState('lane:a', { paused: true }, 0);
    await stage.until('a hint of the state', () => heard.state());
  },

  'tells every watcher': async (stage) => {
    const { store } = stage;
    const all = [await listen(stage, store), await listen(stage, store)];
    await put(store, inLane('a'));
    for (const heard of all) await stage.until('a hint', () => heard.lane('a'));
  },

  'tells nothing after the end of it, and ends twice without harm': async (stage) => {
    const { store } = stage;
    let ended = 0;
    const end = store.watch(() => (ended += 1));
    const heard = await listen(stage, store);
    end();
    end();
    const before = ended;
    await put(store, inLane('a'));
    await stage.until('a hint for the other watcher', () => heard.lane('a'));
    equal(ended, before);
  },

  'tells another instance of new tasks and of shared state': {
    needs: 'shared',
    run: async (stage) => {
      const { store } = stage;
      const other = await stage.second();
      const heard = await listen(stage, other, store);
      await put(store, inLane('a'));
      await stage.until('a hint of the lane', () => heard.lane('a'));
      heard.forget();
      await store.writeState('lane:a', 1, 0);
      await stage.until('a hint of the state', () => heard.state());
    },
  },
};

export const lifecycleCases: StoreCases = {
  'opens again without harm': async ({ store }) => {
    const task = await put(store);
    await store.open();
    await store.open();
    await expectRow(store, task);
  },

  'closes twice without harm': async ({ store, close }) => {
    await store.close();
    await store.close();
    await close();
  },

  'keeps everything when it is opened by another program': {
    needs: 'durable',
    run: async ({ store, close, second }) => {
      const waiting = await put(store, newTask({ context: { method: 'PUT' } }));
      const cancelled = await put(store, inLane('b', { due: { inMs: HOUR_MS } }));
      await store.change([cancelled], cancel);
      const failed = await putClaimed(store, inLane('c'));
      await store.settle([settlements.failed(failed)]);
      await store.writeState('seed', 7, 0);
      await close();
      const other = await second();
      await expectRow(other, waiting);
      equal((await other.get(cancelled))?.status, 'cancelled');
      equal((await other.items({ limit: 10 })).items[0]?.taskId, failed.id);
      equal((await other.attempts(failed.id)).length, 1);
      equal((await other.takeOutbox(10, HOUR_MS)).length, 1);
      deepEqual(
        (await other.readState('seed')).documents.map(({ value }) => value),
        [7],
      );
    },
  },

  'shows at once to one instance what another has written': {
    needs: 'shared',
    run: async ({ store, second }) => {
      const other = await second();
      const task = await put(store);
      await expectRow(other, task);
      const claimed = await putClaimed(other, inLane('a'));
      await expectRow(store, claimed);
      deepEqual(await store.settle([settlements.done(claimed)]), ['settled']);
      equal((await other.get(claimed))?.status, 'done');
    },
  },
};

/** What a watcher has heard since it began to listen, which may be a moment after it was asked to. */
export async function listen({ until }: Stage, store: Schedule, writer: Schedule = store) {
  let hints: Hint[] = [];
  store.watch((hint) => hints.push(hint));
  await until('the watcher is listening', async () => {
    await writer.insert([inLane('listening')]);
    return hints.length > 0;
  });
  hints = [];
  return {
    forget: () => (hints = []),
    state: () => hints.some(({ state, lanes }) => state ?? lanes === undefined),
    /** Something there is due now. What a hint leaves out may be anything. */
    lane: (name: string) =>
      hints.some(({ lanes, inMs = 0, state }) =>
        lanes ? lanes.includes(name) && inMs < SOON_MS : !state,
      ),
  };
}

const SOON_MS = 60_000;

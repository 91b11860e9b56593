import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../../adapters/memory/index.ts';
import type { InboxItem } from '../../ports/inbox.ts';
import type { Hint } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import { newTask } from '../fixtures.ts';
import { inboxSuite } from './inbox-suite.ts';
import { modelSuite } from '../model/model.ts';
import { scheduleSuite } from '../schedule/schedule-suite.ts';
import type { StoreSetup } from '../stage.ts';

/** A store that breaks one promise, made from one that keeps all. */
type Defect = (store: Store) => Partial<Store>;

const ALL = 1000;

/** Stores that break a promise of order or of the inbox, with cases that must find it. */
const defects: Readonly<Record<string, { defect: Defect; fails: readonly string[] }>> = {
  'lets nobody pass after a settle': {
    defect: (store) => {
      const stranded = new Set<number>();
      const blocked = async () =>
        (await store.list({ limit: ALL })).filter((task) => task.blocked).map(({ id }) => id);
      return {
        settle: async (all) => {
          const before = await blocked();
          const answers = await store.settle(all);
          const after = await blocked();
          for (const id of before) if (!after.includes(id)) stranded.add(id);
          return answers;
        },
        claim: async (request) => {
          const claim = await store.claim(request);
          return { ...claim, tasks: claim.tasks.filter(({ id }) => !stranded.has(id)) };
        },
      };
    },
    fails: [
      'order: done: the next one comes',
      'order: retried: the next one comes',
      'order: goes on in all lines that one call settles',
      'order after a failure: its followers pass where it lets them',
    ],
  },
  'knows no order': {
    defect: (store) => ({
      insert: (tasks) =>
        store.insert(
          tasks.map((task) => {
            const { orderingKey: _, ...rest } = task;
            return { ...rest, blocked: false };
          }),
        ),
    }),
    fails: [
      'order: gives out the first of a line only',
      'order: keeps the order of calls, whenever each is due',
      'order after a failure: its followers wait',
    ],
  },
  'numbers a batch by its message ids': {
    defect: (store) => ({
      insert: async (tasks) => {
        const sorted = tasks.toSorted((a, b) => (a.messageId < b.messageId ? -1 : 1));
        const ids = await store.insert(sorted);
        return tasks.map((task) => ids[sorted.indexOf(task)]);
      },
    }),
    fails: ['order: keeps the order within one call, whatever the message ids'],
  },
  'tells nobody whose turn has come': {
    defect: (store) => {
      let isMuted = false;
      return {
        settle: async (all) => {
          isMuted = true;
          return store.settle(all).finally(() => (isMuted = false));
        },
        watch: (listener) => store.watch((hint: Hint) => (isMuted ? undefined : listener(hint))),
      };
    },
    fails: ['order: tells of the one whose turn has come: settled'],
  },
  'has what is blocked on its agenda': {
    defect: (store) => ({
      lanes: async () => {
        const waiting = await store.list({ status: 'pending', limit: ALL });
        return [...new Set(waiting.map(({ lane }) => lane))].map((lane) => ({ lane, inMs: 0 }));
      },
    }),
    fails: ['order: what is blocked is on no agenda', 'order after a failure: its followers wait'],
  },
  'expires nothing that is blocked': {
    defect: (store) => ({
      claim: async (request) => {
        const claim = await store.claim(request);
        if (request.from.kind !== 'expired') return claim;
        const hidden = claim.tasks.filter(({ blocked }) => blocked);
        return { ...claim, tasks: claim.tasks.filter((task) => !hidden.includes(task)) };
      },
    }),
    fails: [
      'claim expired: leases what is blocked too, and leaves it so',
      'order after a failure: a follower that expires fails in its place',
    ],
  },
  'replays twice': {
    defect: (store) => ({
      act: (async (ids: number[], action: never, under: never) => {
        const results = await store.act(ids, action, under);
        if ((action as { type: string }).type !== 'replay') return results;
        for (const [i, id] of ids.entries()) {
          const item = await store.item(id);
          if (results?.[i] !== 'closed' || item?.taskId === undefined) continue;
          await store.change([{ id: item.taskId }], (task) => ({
            result: 1,
            ...(task ? { task: { ...task, generation: task.generation + 1 } } : {}),
          }));
          results[i] = 'done';
        }
        return results;
      }) as Store['act'],
    }),
    fails: [
      'act: replay: does it once, to one that stands twice in a call too',
      'act: replay: does it once where several do it at once',
      'replay: makes another item when it fails again, and keeps the old one',
      'act under a job: lets two jobs share items, and replays each once',
    ],
  },
  'acts whatever the version': {
    defect: (store) => ({
      act: (async (ids: number[], action: never, under?: { job: number; version: number }) => {
        if (!under) return store.act(ids, action);
        const { documents } = await store.readState(`job:${under.job}`);
        const version = documents[0]?.version ?? 0;
        return store.act(ids, action, { ...under, version } as never);
      }) as Store['act'],
    }),
    fails: [
      'act under a job: does nothing where the version is older',
      'act under a job: does nothing where the version is newer',
    ],
  },
  'writes half of what is in conflict': {
    defect: (store) => ({
      act: (async (ids: number[], action: never, under: never) => {
        const results = await store.act(ids, action, under);
        const half = ids.filter((_, i) => results?.[i] === 'conflict');
        await store.act(half, { type: 'resolve' });
        return results;
      }) as Store['act'],
    }),
    fails: [
      'replay: does nothing where the message is known at the new destination',
      'replay: lets one of two go where both would be the same task',
    ],
  },
  'keeps what has expired when it replays': {
    defect: (store) => ({
      act: (async (ids: number[], action: never, under: never) => {
        const items = await Promise.all(ids.map((id) => store.item(id)));
        const keys = items.flatMap((item) => (item?.taskId ? [{ id: item.taskId }] : []));
        const before = await Promise.all(keys.map((key) => store.get(key)));
        const results = await store.act(ids, action, under);
        await store.change(keys, (task, _, i) => {
          const expiresAtMs = before[i]?.expiresAtMs;
          return task && expiresAtMs !== undefined
            ? { result: 1, task: { ...task, expiresAtMs } }
            : { result: 0 };
        });
        return results;
      }) as Store['act'],
    }),
    fails: ['replay: drops an expiry that has passed, and keeps one that has not'],
  },
  'never counts a group down': {
    defect: (store) => {
      const most = new Map<string, number>();
      return {
        groups: async (query) =>
          (await store.groups({ ...query, all: true })).map((group) => {
            const open = Math.max(group.open, most.get(group.fingerprint) ?? 0);
            most.set(group.fingerprint, open);
            return { ...group, open };
          }),
      };
    },
    fails: [
      'groups: counts down with each item that is closed, however',
      'groups: shows those without open items only where all are asked for',
    ],
  },
  'takes signs of a text for wildcards': {
    defect: (store) => ({
      items: async ({ text, ...query }) => {
        const page = await store.items(query);
        if (text === undefined) return page;
        const pattern = text.replaceAll(/[^\w%]/g, String.raw`\$&`).replaceAll(/[%]/g, '.*');
        const like = new RegExp(pattern.replaceAll('_', '.'), 'isu');
        return { items: page.items.filter(({ failure }) => like.test(failure.message ?? '')) };
      },
    }),
    fails: ['filter: finds by text: signs that mean something to a database'],
  },
  'freezes one more on every page': {
    defect: (store) => ({
      freeze: (filter, { before, limit }, under) =>
        store.freeze(filter, { before, limit: limit + 1 }, under),
    }),
    fails: ['freeze: goes on page by page, the newest first'],
  },
  'forgets what was in a deleted task': {
    defect: (store) => ({
      item: async (id): Promise<InboxItem | undefined> => {
        const item = await store.item(id);
        if (!item || item.taskId === undefined) return item;
        const task = await store.get({ id: item.taskId });
        return task ? item : { ...item, payload: new Uint8Array() };
      },
    }),
    fails: ['prune items: comes after the task is deleted: until then the item is whole'],
  },
  'erases no executions': {
    defect: (store) => {
      const known = new Map<number, Awaited<ReturnType<Store['attempts']>>>();
      return {
        attempts: async (id) => {
          const found = await store.attempts(id);
          if (found.length > 0) known.set(id, found);
          return known.get(id) ?? [];
        },
      };
    },
    fails: ['erase: leaves no trace of what was in it'],
  },
  'erases nothing that waits in the outbox': {
    defect: (store) => ({
      erase: async (messageId, by) => {
        const waiting = await store.takeOutbox(ALL, 0);
        await store.dropOutbox(waiting.map(({ id }) => id));
        const answer = await store.erase(messageId, by);
        for (const { id: _, ...outbox } of waiting) {
          await store.change([newTask()], () => ({ result: 1, outbox }));
        }
        return answer;
      },
    }),
    fails: ['erase: leaves no trace of what was in it', 'erase: leaves every other message alone'],
  },
  'counts only what can be claimed': {
    defect: (store) => ({
      census: async () => {
        const tasks = await store.list({ status: 'pending', limit: 10 * ALL });
        const pending = tasks.filter(({ blocked, lease }) => !blocked && lease === undefined);
        return { ...(await store.census()), pending: pending.length };
      },
    }),
    fails: [
      'census: counts what is pending, whatever it waits for',
      'census: counts each once: one that is blocked and was claimed since it has expired',
      'census: does not take what is in delivery for due',
    ],
  },
  'counts tasks in its indexes': {
    defect: (store) => ({
      census: async () => {
        const tasks = await store.list({ status: 'pending', limit: 10 * ALL });
        const held = tasks.filter(({ claims }) => claims > 0);
        const blocked = tasks.filter((task) => task.blocked);
        const due = tasks.filter((task) => !task.blocked && task.claims === 0);
        const pending = held.length + blocked.length + due.length;
        return { ...(await store.census()), pending };
      },
    }),
    fails: ['census: counts each once: one that is blocked and was claimed since it has expired'],
  },
  'counts a page': {
    defect: (store) => ({
      census: async () => {
        const census = await store.census();
        return { ...census, pending: Math.min(census.pending, ALL) };
      },
    }),
    fails: ['census: counts beyond a page'],
  },
  'counts what is over': {
    defect: (store) => ({
      census: async () => {
        const tasks = await store.list({ limit: 10 * ALL });
        return { ...(await store.census()), pending: tasks.length };
      },
    }),
    fails: [
      'census: counts nothing that is over',
      'census: counts nothing that has failed in its place behind others',
    ],
  },
  'takes everything for due': {
    defect: (store) => ({
      census: async () => {
        const { nowMs } = await store.readState('none');
        const tasks = await store.list({ status: 'pending', limit: 10 * ALL });
        const { pending, open } = await store.census();
        const firstMs = Math.min(...tasks.map(({ dueAtMs }) => dueAtMs));
        return { pending, open, ...(pending > 0 ? { oldestDueInMs: firstMs - nowMs } : {}) };
      },
    }),
    fails: [
      'census: does not take what is in delivery for due',
      'census: does not take what is blocked for due',
    ],
  },
  'takes nothing for due that was claimed before': {
    defect: (store) => ({
      census: async () => {
        const { nowMs } = await store.readState('none');
        const tasks = await store.list({ status: 'pending', limit: 10 * ALL });
        const { pending, open } = await store.census();
        const waiting = tasks.filter(({ claims, blocked }) => claims === 0 && !blocked);
        const firstMs = Math.min(...waiting.map(({ dueAtMs }) => dueAtMs));
        return { pending, open, ...(waiting.length > 0 ? { oldestDueInMs: firstMs - nowMs } : {}) };
      },
    }),
    fails: [
      'census: takes one whose lease is over for due since then',
      'census: knows one that waits again, though it was claimed before',
    ],
  },
  'knows the first lane only': {
    defect: (store) => ({
      census: async () => {
        const [lane] = await store.lanes({ limit: 1 });
        const { pending, open } = await store.census();
        return { pending, open, ...(lane ? { oldestDueInMs: lane.inMs } : {}) };
      },
    }),
    fails: [
      'census: says when the first is due, in whichever lane',
      'census: says for how long the first is overdue',
    ],
  },
  'counts items that are closed': {
    defect: (store) => ({
      census: async () => {
        const { items } = await store.items({ limit: ALL });
        const open: Partial<Record<InboxItem['reason'], number>> = {};
        for (const { reason } of items) open[reason] = (open[reason] ?? 0) + 1;
        return { ...(await store.census()), open };
      },
    }),
    fails: ['census: counts an item while it is open'],
  },
  'counts items by the reason of their group': {
    defect: (store) => ({
      census: async () => {
        const open: Partial<Record<InboxItem['reason'], number>> = {};
        for (const group of await store.groups({ limit: ALL })) {
          open[group.reason] = (open[group.reason] ?? 0) + group.open;
        }
        return { ...(await store.census()), open };
      },
    }),
    fails: ['census: counts open items by their reason'],
  },
  'knows a census of something else': {
    defect: () => ({ census: () => Promise.resolve({ pending: 1, open: { EXPIRED: 0 } }) }),
    fails: ['census: finds nothing where nothing is'],
  },
};

/** What a broken store never does is not worth waiting for. */
const IMPATIENT_MS = 50;

function setupOf(defect: Defect, patienceMs = IMPATIENT_MS): StoreSetup {
  return {
    capabilities: memory().capabilities,
    patienceMs,
    async open() {
      const clock = virtualClock();
      const store = memory({ clock });
      return { store: altered(store, defect(store)), clock, close: () => store.close() };
    },
  };
}

function altered(store: Store, changes: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The cases among these methods that a defect makes fail. */
async function broken(
  defect: Defect,
  methods: readonly string[],
  patienceMs?: number,
): Promise<string[]> {
  const setup = setupOf(defect, patienceMs);
  const failed: string[] = [];
  for (const { name, skip, run } of [...scheduleSuite(setup), ...inboxSuite(setup)]) {
    if (skip || !methods.some((method) => name.startsWith(`${method}: `))) continue;
    await run().catch(() => failed.push(name));
  }
  return failed;
}

describe('the suites of an inbox, and of order', () => {
  it.each(Object.entries(defects))('find one that %s', async (_, { defect, fails }) => {
    const methods = [...new Set(fails.map((name) => name.slice(0, name.indexOf(':'))))];
    const failed = await broken(defect, methods);
    expect(failed).toEqual(expect.arrayContaining([...fails]));
  });

  it('find nothing in one that keeps its promises', async () => {
    const methods = ['order', 'order after a failure', 'act', 'replay', 'restore', 'groups'];
    const others = ['freeze', 'tally', 'erase', 'filter', 'census'];
    expect(await broken(() => ({}), [...methods, ...others], 25_000)).toEqual([]);
  });
});

describe('the model', () => {
  it.each([
    'lets nobody pass after a settle',
    'knows no order',
    'replays twice',
    'acts whatever the version',
    'never counts a group down',
  ])('differs from a store that %s', async (name) => {
    const setup = setupOf(defects[name]!.defect);
    const found: string[] = [];
    for (const { run } of modelSuite({ ...setup, model: (clock) => memory({ clock }), runs: 10 })) {
      await run().catch((error: unknown) => found.push((error as Error).message));
    }
    expect(found[0]).toMatch(/^Seed \d+: after these operations the store differs/);
    const operations = found[0]?.split('\n').filter((line) => line.startsWith('  {"type"'));
    expect(operations?.length).toBeLessThan(20);
  });
});

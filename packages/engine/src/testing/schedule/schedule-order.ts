import { deepEqual, equal, ok } from 'node:assert/strict';
import { accept, cancel, expedite } from '../../model/moves.ts';
import type { Store } from '../../ports/store.ts';
import type { NewTask, Task } from '../../model/task.ts';
import {
  arrivalOf,
  claimDue,
  claimLost,
  expectRow,
  HOUR_MS,
  ids,
  inLane,
  inLine,
  put,
  putClaimed,
  row,
  settlements,
  SHORT_MS,
  token,
} from '../fixtures.ts';
import { listen } from './schedule-watch.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each, needing } from '../suite.ts';

const MOST_ROUNDS = 100;

/** Tasks of one lane and one key go one after the other, each until its outcome is known. */
export const orderCases: StoreCases = needing('ordering', {
  'keeps the order within one call, whatever the message ids': async ({ store }) => {
    const tasks = Array.from({ length: 5 }, () => inLine('k')).toReversed();
    const stored = await store.insert(tasks);
    deepEqual(stored, numerically(stored));
    deepEqual(await deliverAll(store), stored);
  },

  'keeps the order of calls, whenever each is due': async ({ store }) => {
    const first = await put(store, inLine('k', { due: { inMs: HOUR_MS } }));
    const second = await put(store, inLine('k'));
    deepEqual(await turns(store, [first, second]), [first.id]);
    deepEqual(await claimed(store), []);
    await store.change([first], expedite);
    deepEqual(await deliverAll(store), [first.id, second.id]);
  },

  'keeps the order of what change inserts': async ({ store }) => {
    const tasks = Array.from({ length: 4 }, () => inLine('k')).toReversed();
    await store.change(tasks, (_, __, i) => ({ result: i, task: tasks[i]! }));
    const rows = await Promise.all(tasks.map((task) => store.get(task)));
    const stored = rows.map((task) => task!.id);
    deepEqual(stored, numerically(stored));
    deepEqual(await deliverAll(store), stored);
  },

  'keeps the order of each call where many come at once': async ({ store }) => {
    const calls = await Promise.all(
      Array.from({ length: 8 }, () =>
        store.insert(Array.from({ length: 3 }, () => inLine('k')).toReversed()),
      ),
    );
    for (const stored of calls) deepEqual(stored, numerically(stored));
    const all = calls.flat();
    deepEqual(await deliverAll(store), numerically(all));
  },

  'knows its place where others of a call are known already': async ({ store }) => {
    const known = await put(store, inLine('k'));
    const { messageId, destination } = known;
    const again = inLine('k', { messageId, destination });
    const [before, none, after] = await store.insert([inLine('k'), again, inLine('k')]);
    equal(none, undefined);
    deepEqual(await deliverAll(store), [known.id, before, after]);
  },

  'gives one place to what stands twice in a call': async ({ store }) => {
    const twice = inLine('k');
    const [first, none, second] = await store.insert([twice, twice, inLine('k')]);
    equal(none, undefined);
    deepEqual(await deliverAll(store), [first, second]);
  },

  'gives out the first of a line only': async ({ store }) => {
    const [first, second] = await fill(store, 3);
    deepEqual(await turns(store, [first!, second!]), [first!.id]);
    deepEqual(await claimed(store), [first!.id]);
    deepEqual(await claimed(store), []);
    equal((await row(store, second!.id)).blocked, true);
  },

  ...each(
    ['done', 'retried', 'cancelled'] as const,
    (kind) => `${kind}: the next one comes`,
    async (kind, { store }: Stage) => {
      const [, second, third] = await fill(store, 3);
      await store.settle((await claimDue(store, 'a')).tasks.map(settlements[kind]));
      deepEqual(await turns(store, [second!, third!]), [second!.id]);
      deepEqual(await claimed(store), [second!.id]);
    },
  ),

  'pending again: its followers wait as long as it does': async ({ store, sameTime }) => {
    const rows = await fill(store, 2);
    const [head] = (await claimDue(store, 'a')).tasks;
    await store.settle([settlements.pending(head!)]);
    deepEqual(await turns(store, rows), [head!.id]);
    const { tasks, nextInMs } = await claimDue(store, 'a');
    deepEqual(tasks, []);
    sameTime(nextInMs[0], HOUR_MS);
  },

  'pending again and due: it comes before its followers': async ({ store }) => {
    const rows = await fill(store, 3);
    const [head] = (await claimDue(store, 'a')).tasks;
    await store.settle([{ ...settlements.pending(head!), delayMs: 0 } as never]);
    deepEqual(await deliverAll(store), ids(rows));
  },

  ...each(
    ['given back', 'abandoned'] as const,
    (how) => `${how}: it comes before its followers`,
    async (how, { store }: Stage) => {
      const rows = await fill(store, 3);
      const [head] = (await claimDue(store, 'a')).tasks;
      if (how === 'abandoned') await store.abandon(head!.lease!);
      else await store.settle([settlements.released(head!)]);
      deepEqual(await turns(store, rows), [head!.id]);
      deepEqual(await deliverAll(store), ids(rows));
    },
  ),

  'a lease that is over: its followers go on waiting': async ({ store, pass }) => {
    const rows = await fill(store, 2);
    await claimDue(store, 'a', { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    deepEqual(await claimed(store), []);
    const { tasks } = await claimLost(store, ['a']);
    deepEqual(ids(tasks), [rows[0]!.id]);
    await store.settle(tasks.map(settlements.done));
    deepEqual(await claimed(store), [rows[1]!.id]);
  },

  'a stale token lets nobody pass': async ({ store, pass }) => {
    const rows = await fill(store, 3);
    const [stale] = (await claimDue(store, 'a', { leaseMs: SHORT_MS })).tasks;
    await pass(SHORT_MS + 1);
    const [held] = (await claimLost(store, ['a'], { lease: token() })).tasks;
    deepEqual(await store.settle([settlements.done(stale!)]), ['lost']);
    deepEqual(await turns(store, rows), [held!.id]);
    deepEqual(await claimed(store), []);
    await store.settle([settlements.done(held!)]);
    deepEqual(await store.settle([settlements.done(stale!)]), ['lost']);
    deepEqual(await turns(store, rows), [rows[1]!.id]);
  },

  'goes on in all lines that one call settles': async ({ store }) => {
    const lines = ['k', 'l', 'm'].map((key) => [inLine(key), inLine(key)]);
    const rows = await store.insert(lines.flat());
    const { tasks } = await claimDue(store, 'a');
    equal(tasks.length, 3);
    const alone = await putClaimed(store, inLane('b'));
    const answers = await store.settle([alone, ...tasks].map(settlements.done));
    deepEqual(answers, ['settled', 'settled', 'settled', 'settled']);
    deepEqual(await claimed(store), [rows[1], rows[3], rows[5]]);
  },

  'cancelled while it waits: the next one comes': async ({ store }) => {
    const rows = await fill(store, 3);
    deepEqual(await store.change([rows[0]!], cancel), ['cancelled']);
    deepEqual(await deliverAll(store), ids(rows.slice(1)));
  },

  'cancelled in delivery: the next one comes when that is settled': async ({ store }) => {
    const rows = await fill(store, 2);
    const [head] = (await claimDue(store, 'a')).tasks;
    deepEqual(await store.change([head!], cancel), ['cancelling']);
    deepEqual(await claimed(store), []);
    await store.settle([settlements.pending(head!)]);
    equal((await row(store, head!.id)).status, 'cancelled');
    deepEqual(await claimed(store), [rows[1]!.id]);
  },

  'a follower that is cancelled leaves the line to the others': async ({ store }) => {
    const rows = await fill(store, 4);
    const [first, second, third, fourth] = rows;
    deepEqual(await store.change([second!], cancel), ['cancelled']);
    deepEqual(await turns(store, rows), [first!.id]);
    deepEqual(await deliverAll(store), [first!.id, third!.id, fourth!.id]);
  },

  'a follower that is made due stays in its place': async ({ store }) => {
    const rows = await fill(store, 2, { due: { inMs: HOUR_MS } });
    deepEqual(await store.change([rows[1]!], expedite), ['expedited']);
    deepEqual(await turns(store, rows), [rows[0]!.id]);
    deepEqual(await claimed(store), []);
  },

  ...each(
    ['retried', 'done'] as const,
    (kind) => `${kind} and come back: it goes ahead of those that wait`,
    async (kind, { store }: Stage) => {
      const rows = await fill(store, 3);
      await store.settle((await claimDue(store, 'a')).tasks.map(settlements[kind]));
      equal(await arrive(store, rows[0]!), 'accepted');
      deepEqual(await turns(store, rows), [rows[0]!.id]);
      deepEqual(await claimed(store), []);
      await store.change([rows[0]!], expedite);
      deepEqual(await deliverAll(store), ids(rows));
    },
  ),

  'come back while another is in delivery: it waits for that one only': async ({ store }) => {
    const rows = await fill(store, 3);
    const [first] = (await claimDue(store, 'a')).tasks;
    await store.settle([settlements.retried(first!)]);
    const [second] = (await claimDue(store, 'a')).tasks;
    await arrive(store, first!);
    await store.change([first!], expedite);
    deepEqual(await turns(store, rows), [second!.id]);
    deepEqual(await claimed(store), []);
    await store.settle([settlements.done(second!)]);
    deepEqual(await deliverAll(store), [rows[0]!.id, rows[2]!.id]);
  },

  'come back in its own delivery: it keeps its turn': async ({ store }) => {
    const rows = await fill(store, 2);
    const [head] = (await claimDue(store, 'a')).tasks;
    await arrive(store, head!);
    deepEqual(await store.settle([settlements.retried(head!)]), ['rearmed']);
    deepEqual(await turns(store, rows), [head!.id]);
    deepEqual(await claimed(store), []);
  },

  'lines do not wait for each other': async ({ store }) => {
    const tasks = [
      inLine('k'),
      inLine('K'),
      inLine('k '),
      inLine('kk'),
      inLine('k', { lane: 'b' }),
      inLine('b k', { lane: 'a' }),
      inLine('k', { lane: 'a b' }),
      inLane('a'),
      inLane('a'),
    ];
    const stored = await store.insert(tasks);
    await store.insert(
      tasks.slice(0, 7).map(({ lane, orderingKey }) => inLine(orderingKey!, { lane })),
    );
    const { tasks: given } = await claimDue(store, ['a', 'b', 'a b']);
    deepEqual(numerically(ids(given)), stored);
  },

  'a key of any characters is one line': async ({ store }) => {
    for (const key of ['', `ünï 🚀 "'%_\\`, 'x'.repeat(200)]) {
      const stored = await store.insert([inLine(key), inLine(key)]);
      const [head] = (await claimDue(store, 'a')).tasks;
      deepEqual([head?.id, head?.orderingKey], [stored[0], key]);
      await store.settle([settlements.done(head!)]);
      deepEqual(await deliverAll(store), [stored[1]]);
    }
  },

  'what is blocked is on no agenda': async ({ store, sameTime }) => {
    await store.insert([inLine('k', { due: { inMs: HOUR_MS } }), inLine('k')]);
    const [agenda, ...more] = await store.lanes({ limit: 10 });
    deepEqual([agenda?.lane, more], ['a', []]);
    sameTime(agenda?.inMs, HOUR_MS);
    sameTime((await claimDue(store, 'a')).nextInMs[0], HOUR_MS);
  },

  'tells of the one whose turn has come: settled': async (stage) => {
    const { store } = stage;
    await fill(store, 2);
    const { tasks } = await claimDue(store, 'a');
    const heard = await listen(stage, store);
    await store.settle(tasks.map(settlements.done));
    await stage.until('a hint of the lane', () => heard.lane('a'));
  },

  'tells of the one whose turn has come: cancelled': async (stage) => {
    const { store } = stage;
    const head = await put(store, inLine('k', { due: { inMs: HOUR_MS } }));
    await put(store, inLine('k'));
    const heard = await listen(stage, store);
    await store.change([head], cancel);
    await stage.until('a hint of the lane', () => heard.lane('a'));
  },

  'goes on when those before it are deleted': async ({ store, pass }) => {
    const rows = await fill(store, 2);
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.done));
    await pass(5);
    const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
    equal(await store.prune({ olderThanMs, limit: 10 }), 1);
    const third = await put(store, inLine('k'));
    deepEqual(await deliverAll(store), [rows[1]!.id, third.id]);
  },

  'changes nothing else of a task whose turn comes': async ({ store }) => {
    const [, second] = await fill(store, 2, {
      attempt: 2,
      uncounted: 1,
      context: { method: 'PUT' },
    });
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.done));
    await expectRow(store, { ...second!, blocked: false });
  },

  'holds where many claim and settle at once': async ({ store, until }) => {
    const keys = ['k', 'l', 'm'];
    const stored = await store.insert(
      Array.from({ length: 30 }, (_, i) => inLine(keys[i % keys.length]!)),
    );
    const finished: Task[] = [];
    const work = async () => {
      const { tasks } = await claimDue(store, [{ lane: 'a', limit: 2 }]);
      for (const task of tasks) {
        finished.push(task);
        equal(await settleAtLast(store, task), 'settled');
      }
    };
    await until('the end of all lines', async () => {
      await Promise.all([work(), work(), work(), work()]);
      return finished.length >= stored.length;
    });
    for (const key of keys) {
      const order = ids(finished.filter(({ orderingKey }) => orderingKey === key));
      deepEqual(order, numerically(order));
    }
    deepEqual(numerically(ids(finished)), stored);
  },
});

/** Stores so many in one line of lane a. */
export async function fill(
  store: Store,
  count: number,
  changes: Partial<NewTask> = {},
): Promise<Task[]> {
  const stored = await store.insert(Array.from({ length: count }, () => inLine('k', changes)));
  return Promise.all(stored.map((id) => row(store, id!)));
}

/** Who of them waits or is held, and is not blocked. */
export async function turns(store: Store, tasks: readonly Task[]): Promise<number[]> {
  const rows = await Promise.all(tasks.map(({ id }) => row(store, id)));
  return ids(rows.filter(({ status, blocked }) => status === 'pending' && !blocked));
}

/** Claims what is due in lane a. */
export async function claimed(store: Store): Promise<number[]> {
  return ids((await claimDue(store, 'a')).tasks);
}

/** Delivers whatever lane a gives, until there is no more. */
export async function deliverAll(store: Store): Promise<number[]> {
  const given: number[] = [];
  for (let round = 0; ; round++) {
    const { tasks } = await claimDue(store, 'a');
    if (tasks.length === 0) return given;
    ok(round < MOST_ROUNDS, 'it ends');
    given.push(...ids(tasks));
    for (const task of tasks) equal(await settleAtLast(store, task), 'settled');
  }
}

export async function arrive(store: Store, task: Task) {
  const [answer] = await store.change([task], (known, nowMs) =>
    accept(arrivalOf(task), known, nowMs, 0),
  );
  return answer;
}

/** Somebody else may be busy with its line for a moment. */
async function settleAtLast(store: Store, task: Task) {
  for (let tries = 1; ; tries++) {
    const [answer] = await store.settle([settlements.done(task)]);
    if (answer !== 'busy' || tries === MOST_ROUNDS) return answer;
  }
}

function numerically(stored: readonly (number | undefined)[]): number[] {
  return stored.filter((id) => id !== undefined).toSorted((a, b) => a - b);
}

import { setImmediate } from 'node:timers/promises';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../../adapters/memory/index.ts';
import type { Claim } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import { inboxSuite } from '../inbox/inbox-suite.ts';
import { modelSuite } from '../model/model.ts';
import { scheduleSuite } from './schedule-suite.ts';
import type { StoreSetup } from '../stage.ts';

/** A store that breaks one promise, made from one that keeps all. */
type Defect = (store: Store) => Partial<Store>;

function setupOf(defect: Defect): StoreSetup {
  return {
    capabilities: memory().capabilities,
    patienceMs: 50,
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
async function broken(defect: Defect, methods: readonly string[]): Promise<string[]> {
  const setup = setupOf(defect);
  const failed: string[] = [];
  for (const { name, skip, run } of [...scheduleSuite(setup), ...inboxSuite(setup)]) {
    if (skip || !methods.some((method) => name.startsWith(`${method}: `))) continue;
    await run().catch(() => failed.push(name));
  }
  return failed;
}

const defects: Record<string, { defect: Defect; fails: readonly string[] }> = {
  'settles under any token': {
    defect: (store) => ({
      settle: async (all) => {
        const held = await Promise.all(all.map(({ id }) => store.get({ id })));
        return store.settle(all.map((one, i) => ({ ...one, lease: held[i]?.lease ?? 0 })));
      },
    }),
    fails: [
      'fencing: a stale token settles nothing: done',
      'fencing: a stale token settles nothing: released',
      'fencing: a stale token settles nothing: failed',
    ],
  },
  'renews under any token': {
    defect: (store) => ({
      renew: async (all, leaseMs) => {
        const held = await Promise.all(all.map(({ id }) => store.get({ id })));
        return store.renew(
          all.map((one, i) => ({ ...one, lease: held[i]?.lease ?? 0 })),
          leaseMs,
        );
      },
    }),
    fails: [
      'fencing: a stale token renews nothing',
      'renew: says lost for what is not held by that token',
    ],
  },
  'claims early': {
    defect: (store) => ({
      claim: async (request) => {
        const waiting = (await store.list({ limit: 1000 })).filter((task) => task.claims === 0);
        await store.change(waiting, (task, nowMs) => ({
          result: 0,
          task: { ...task!, visibleAtMs: nowMs },
        }));
        return store.claim(request);
      },
    }),
    fails: [
      'claim due: leases nothing before it is due',
      'claim due: leases at the due time, not before',
    ],
  },
  'forgets what arrived when it settles': {
    defect: (store) => ({
      settle: async (all) => {
        await store.change(all, (task) => ({
          result: 0,
          ...(task ? { task: { ...task, arrived: false } } : {}),
        }));
        return store.settle(all);
      },
    }),
    fails: [
      'arrival: then retried: the task waits with what arrived',
      'arrival: then failed: the task waits with what arrived',
      'arrival: at the same moment as the settle is never lost',
    ],
  },
  'ends the lease when something arrives': {
    defect: (store) => ({
      change: (keys, move) =>
        store.change(keys, (found, nowMs, index) => {
          const change = move(found, nowMs, index);
          if (!change.task || !('arrived' in change.task) || !change.task.arrived) return change;
          const { lease: _, ...task } = change.task as { lease?: number } & typeof change.task;
          return { ...change, task };
        }),
    }),
    fails: ['arrival: is written on a task in delivery at once, and the lease stays'],
  },
  'hides nothing': {
    defect: (store) => ({ claim: (request) => store.claim({ ...request, leaseMs: 0 }) }),
    fails: [
      'claim lost: leases nothing whose lease still runs',
      'claim lost: hides what it leased',
    ],
  },
  'gives one task to two claims': {
    defect: (store) => ({
      claim: async (request): Promise<Claim> => {
        if (request.from.kind !== 'due') return store.claim(request);
        const { lane, limit } = request.from.lanes[0] ?? { lane: '', limit: 0 };
        const seen = await store.list({ status: 'pending', lane, limit });
        await setImmediate();
        const { lease, leaseMs } = request;
        const tasks = await store.change(seen, (_, nowMs, i) => {
          const task = { ...seen[i]!, lease, claims: 1, visibleAtMs: nowMs + leaseMs };
          return { result: task, task };
        });
        return { tasks, nowMs: 0, nextInMs: [] };
      },
    }),
    fails: ['claim due: never gives one task to two claims at once'],
  },
  'loses writes that come together': {
    defect: (store) => ({
      change: async (keys, move) => {
        const seen = await Promise.all(keys.map((key) => store.get(key)));
        await setImmediate();
        return store.change(keys, (_, nowMs, index) => move(seen[index], nowMs, index));
      },
    }),
    fails: [
      'change: loses no write where many change one task at once',
      'change: works on equal keys one after the other',
    ],
  },
  'writes the first half of a change': {
    defect: (store) => ({
      change: async (keys, move) => {
        const results = [];
        for (const [i, key] of keys.entries()) {
          results.push(...(await store.change([key], (task, nowMs) => move(task, nowMs, i))));
        }
        return results;
      },
    }),
    fails: ['change: writes nothing at all where a move throws'],
  },
  'keeps no bytes but text': {
    defect: (store) => ({
      insert: (tasks) =>
        store.insert(
          tasks.map((task) => ({
            ...task,
            payload: new TextEncoder().encode(new TextDecoder().decode(task.payload)),
          })),
        ),
    }),
    fails: ['insert: keeps every byte of a payload'],
  },
  'cuts long addresses': {
    defect: (store) => ({
      insert: (tasks) =>
        store.insert(
          tasks.map((task) => ({
            ...task,
            destination: { ...task.destination, address: task.destination.address.slice(0, 255) },
          })),
        ),
    }),
    fails: [
      'insert: tells apart two long addresses that begin alike',
      'insert: keeps an address of 255 bytes and one of more',
    ],
  },
  'gives back to the end of the lane': {
    defect: (store) => ({
      settle: (all) =>
        store.settle(all.map((one) => (one.to === 'pending' ? { ...one, reschedule: true } : one))),
    }),
    fails: [
      'settle: gives a task back to its place in the order',
      'settle: gives a task back as it was before the claim',
    ],
  },
  'makes no item of a failure': {
    defect: (store) => ({
      settle: (all) =>
        store.settle(all.map((one) => (one.to === 'failed' ? { ...one, to: 'done' } : one))),
    }),
    fails: [
      'settle: makes a failed task, its item, its outbox message and its execution together',
      'prune: leaves what failed while its item is open',
    ],
  },
  'abandons nothing': {
    defect: () => ({ abandon: async () => {} }),
    fails: [
      'abandon: gives back what was leased, as if it had not been',
      'arrival: then abandon: the task waits with what arrived',
    ],
  },
  'writes state whatever was read': {
    defect: (store) => ({
      writeState: async (key, value) => {
        const { documents } = await store.readState(key);
        return store.writeState(key, value, documents.find((one) => one.key === key)?.version ?? 0);
      },
    }),
    fails: [
      'state: refuses to make what is there',
      'state: refuses to replace what somebody else has written meanwhile',
    ],
  },
  'does not tell capitals in the keys of state': {
    defect: (store) => ({
      readState: async (prefix) => {
        const { nowMs, documents } = await store.readState('');
        const small = prefix.toLowerCase();
        const found = documents.filter(({ key }) => key.toLowerCase().startsWith(small));
        return { nowMs, documents: found };
      },
    }),
    fails: ['state: takes the beginning of a key as it is written'],
  },
  'prunes whatever is over': {
    defect: (store) => ({
      prune: ({ limit }) =>
        store.prune({ olderThanMs: { done: 0, retried: 0, cancelled: 0 }, limit }),
    }),
    fails: [
      'prune: leaves what is not old enough',
      'prune: looks at the end of a task, whenever it began',
    ],
  },
  'gives any outbox message': {
    defect: (store) => ({ takeOutbox: (limit, leaseMs) => store.takeOutbox(limit, leaseMs) }),
    fails: [
      'outbox: leaves what goes elsewhere than asked for',
      'outbox: gives no more bytes than asked for, but always one',
    ],
  },
  'leases no outbox message': {
    defect: (store) => ({ takeOutbox: (limit, _, only) => store.takeOutbox(limit, 0, only) }),
    fails: ['outbox: keeps to its limit', 'outbox: never gives one message to two at once'],
  },
  'tells no watcher': {
    defect: () => ({ watch: () => () => {} }),
    fails: ['watch: tells of new tasks', 'watch: tells of shared state'],
  },
  'pages lanes from the name itself': {
    defect: (store) => ({
      lanes: async ({ after, limit }) => {
        const all = await store.lanes({ limit: 1000 });
        return all.filter(({ lane }) => after === undefined || lane >= after).slice(0, limit);
      },
    }),
    fails: ['lanes: keeps to its limit'],
  },
  'counts no occurrences': {
    defect: (store) => ({
      append: async (items) => {
        for (const item of items) {
          const known = (await store.items({ messageId: item.messageId, limit: 1 })).items;
          if (known.length === 0) await store.append([item]);
        }
      },
    }),
    fails: ['append: counts one more occurrence of one that is known'],
  },
  'gives executions in any order': {
    defect: (store) => ({ attempts: async (id) => (await store.attempts(id)).toReversed() }),
    fails: ['attempts: gives every failed execution, the oldest first'],
  },
};

describe('the suites of a store', () => {
  it.each(Object.entries(defects))('find one that %s', async (_, { defect, fails }) => {
    const methods = [...new Set(fails.map((name) => name.slice(0, name.indexOf(':'))))];
    const failed = await broken(defect, methods);
    expect(failed).toEqual(expect.arrayContaining([...fails]));
  });

  it('find nothing in one that keeps its promises', async () => {
    expect(await broken(() => ({}), ['fencing', 'renew', 'lanes', 'prune'])).toEqual([]);
  });

  it('leave out what a store does not claim to do, and say why', () => {
    const setup = setupOf(() => ({}));
    const capabilities = { ...setup.capabilities, listing: false };
    const skipped = scheduleSuite({ ...setup, capabilities }).filter(({ skip }) => skip);
    expect(skipped.find(({ needs }) => needs === 'listing')).toMatchObject({
      name: expect.stringMatching(/^list: /),
      skip: 'declared as not listing',
    });
    expect(scheduleSuite(setup).some(({ needs, skip }) => needs === 'listing' && skip)).toBe(false);
  });

  it('do not believe a setup that declares what the store does not', async () => {
    const setup = setupOf(() => ({}));
    const capabilities = { ...setup.capabilities, shared: true };
    const [first] = scheduleSuite({ ...setup, capabilities });
    await expect(first!.run()).rejects.toThrow('The setup declares other capabilities');
  });

  it('have names of their own', () => {
    const setup = setupOf(() => ({}));
    const names = [...scheduleSuite(setup), ...inboxSuite(setup)].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('the model', () => {
  const model: Parameters<typeof modelSuite>[0]['model'] = (clock) => memory({ clock });

  async function differences(defect: Defect): Promise<Error[]> {
    const found: Error[] = [];
    for (const { run } of modelSuite({ ...setupOf(defect), model, runs: 10 })) {
      await run().catch((error: unknown) => found.push(error as Error));
    }
    return found;
  }

  it.each([
    'settles under any token',
    'forgets what arrived when it settles',
    'gives back to the end of the lane',
  ])('differs from a store that %s', async (name) => {
    const [first] = await differences(defects[name]!.defect);
    expect(first?.message).toMatch(/^Seed \d+: after these operations the store differs/);
    const operations = first?.message.split('\n').filter((line) => line.startsWith('  {"type"'));
    expect(operations?.length).toBeLessThan(20);
  });

  it('is told the same history by the same seed', () => {
    const names = () =>
      modelSuite({ ...setupOf(() => ({})), model, seed: 7, runs: 2 }).map(({ name }) => name);
    expect(names()).toEqual(names());
    expect(names()[1]).toContain('seed 8');
  });
});

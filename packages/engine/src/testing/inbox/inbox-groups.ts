import { deepEqual, equal, notEqual, ok } from 'node:assert/strict';
import type { Group, GroupQuery } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import { broken, claimDue, inLane, rawItem, settlements, unreachable, uuid } from '../fixtures.ts';
import { actOne, comeBack, dead, deadMany, deadRaw, failIn } from './inbox-fixtures.ts';
import type { StoreCases } from '../stage.ts';

export const groupsCases: StoreCases = {
  'has one group for all items of one fingerprint': async ({ store, pass }) => {
    const { item: first } = await dead(store);
    await pass(5);
    const { item: last } = await dead(store, inLane('a'), { reason: 'PERMANENT' });
    equal(last.fingerprint, first.fingerprint);
    deepEqual(await store.groups({ limit: 10 }), [
      {
        fingerprint: first.fingerprint,
        lane: 'a',
        reason: 'PERMANENT',
        failure: broken,
        open: 2,
        firstSeenMs: first.firstSeenMs,
        lastSeenMs: last.lastSeenMs,
      },
    ]);
  },

  'has a group for each lane and each cause, and for what could not be read': async ({ store }) => {
    await dead(store);
    await dead(store, inLane('b'));
    await dead(store, inLane('b'), { failure: unreachable });
    await deadRaw(store);
    const groups = await store.groups({ limit: 10 });
    deepEqual(groups.map(({ lane }) => lane).toSorted(), ['a', 'b', 'b', 'source:retry.scheduled']);
    deepEqual(
      groups.map(({ open }) => open),
      [1, 1, 1, 1],
    );
    equal(new Set(groups.map(({ fingerprint }) => fingerprint)).size, 4);
  },

  'counts those that fail in one call, and at once': async ({ store }) => {
    await deadMany(store, 30);
    await store.insert(Array.from({ length: 20 }, () => inLane('a')));
    const { tasks } = await claimDue(store, 'a');
    await Promise.all(tasks.map((task) => store.settle([settlements.failed(task)])));
    deepEqual(await counts(store), [50]);
  },

  'counts down with each item that is closed, however': async ({ store }) => {
    const [replayed, resolved, discarded, erased] = await deadMany(store, 5);
    await actOne(store, replayed!, { type: 'replay' });
    deepEqual(await counts(store), [4]);
    await actOne(store, resolved!, { type: 'resolve' });
    deepEqual(await counts(store), [3]);
    await actOne(store, discarded!, { type: 'discard' });
    deepEqual(await counts(store), [2]);
    equal(await store.erase(erased!.messageId), 'erased');
    deepEqual(await counts(store), [1]);
  },

  'counts up with each item that is restored, or fails again': async ({ store }) => {
    const [one, two] = await deadMany(store, 2);
    await store.act([one!.id, two!.id], { type: 'discard' });
    deepEqual(await counts(store), []);
    await actOne(store, one!, { type: 'restore' });
    deepEqual(await counts(store), [1]);
    await actOne(store, one!, { type: 'replay' });
    deepEqual(await counts(store), []);
    await failIn(store, 'a');
    deepEqual(await counts(store), [1]);
  },

  'counts nothing that an action could not do': async ({ store }) => {
    const [one, two] = await deadMany(store, 2);
    await actOne(store, one!, { type: 'resolve' });
    await store.act([one!.id, one!.id + 1000], { type: 'resolve' });
    await store.act([two!.id], { type: 'restore' });
    await store.act([one!.id, two!.id], { type: 'pass' });
    await store.act([two!.id], { type: 'edit', edit: { headers: { 'x-a': '1' } } });
    deepEqual(await counts(store), [1]);
  },

  'counts one more occurrence as none, but has seen it': async ({ store, pass }) => {
    const { task } = await dead(store);
    await deadRaw(store, 'one');
    const [raw] = (await store.items({ lane: 'source:retry.scheduled', limit: 1 })).items;
    await pass(5);
    equal(await comeBack(store, task), 'duplicate');
    await store.append([{ ...rawItem('one'), messageId: raw!.messageId }]);
    const groups = await store.groups({ limit: 10 });
    deepEqual(
      groups.map(({ open }) => open),
      [1, 1],
    );
    for (const { firstSeenMs, lastSeenMs } of groups) ok(lastSeenMs > firstSeenMs);
  },

  'keeps an item and its failure in its group, whatever an occurrence says': async ({ store }) => {
    const { task, item } = await dead(store);
    await comeBack(store, task);
    const after = await store.item(item.id);
    deepEqual([after?.failure, after?.fingerprint], [broken, item.fingerprint]);
    const [group] = await store.groups({ limit: 10 });
    deepEqual([group?.failure, group?.fingerprint], [broken, item.fingerprint]);
  },

  'shows those without open items only where all are asked for': async ({ store }) => {
    const { item } = await dead(store);
    const { item: open } = await dead(store, inLane('b'));
    await actOne(store, item, { type: 'resolve' });
    deepEqual(await fingerprints(store, {}), [open.fingerprint]);
    const all = await store.groups({ all: true, limit: 10 });
    deepEqual(
      all.map(({ open: count }) => count).toSorted((a, b) => a - b),
      [0, 1],
    );
  },

  'is asked for one, and for those of a lane': async ({ store }) => {
    const { item: a } = await dead(store);
    const { item: b } = await dead(store, inLane('b'));
    deepEqual(await fingerprints(store, { fingerprint: a.fingerprint }), [a.fingerprint]);
    deepEqual(await fingerprints(store, { lane: 'b' }), [b.fingerprint]);
    deepEqual(await fingerprints(store, { lane: 'b', fingerprint: a.fingerprint }), []);
    deepEqual(await fingerprints(store, { fingerprint: 'none' }), []);
    await actOne(store, a, { type: 'resolve' });
    deepEqual(await fingerprints(store, { fingerprint: a.fingerprint }), []);
    deepEqual(await fingerprints(store, { all: true, lane: 'a' }), [a.fingerprint]);
  },

  'gives the last seen first, page after page, each once': async ({ store, pass }) => {
    for (let i = 0; i < 3; i++) {
      // Those of one call were seen at one moment.
      await store.append(Array.from({ length: 3 }, () => rawItem('x', { fingerprint: uuid() })));
      await pass(5);
    }
    const all = await store.groups({ limit: 100 });
    deepEqual(all, all.toSorted(bySeen));
    equal(all.length, 9);
    for (const limit of [1, 2, 4]) {
      const seen: Group[] = [];
      for (let before: Group | undefined; ; before = seen.at(-1)) {
        const page = await store.groups({ limit, ...(before ? { before } : {}) });
        ok(page.length <= limit);
        seen.push(...page);
        ok(seen.length <= all.length, 'each once');
        if (page.length < limit) break;
      }
      deepEqual(seen, all);
    }
  },

  'moves up when it is seen again': async ({ store, pass }) => {
    const { task, item: first } = await dead(store);
    await pass(5);
    const { item: second } = await dead(store, inLane('b'));
    deepEqual(await fingerprints(store, {}), [second.fingerprint, first.fingerprint]);
    await pass(5);
    await comeBack(store, task);
    deepEqual(await fingerprints(store, {}), [first.fingerprint, second.fingerprint]);
  },

  'is the same for all who look at once': async ({ store }) => {
    await deadMany(store, 3);
    const looks = await Promise.all([1, 2, 3].map(() => store.groups({ limit: 10 })));
    deepEqual(looks[1], looks[0]);
    deepEqual(looks[2], looks[0]);
    deepEqual(await counts(store), [3]);
  },
};

export const annotateCases: StoreCases = {
  'writes note and owner, each on its own': async ({ store }) => {
    const { item } = await dead(store);
    const { fingerprint } = item;
    equal(await store.annotate(fingerprint, { note: 'The bank is down. ünï 🚀' }), true);
    deepEqual(await texts(store), [{ note: 'The bank is down. ünï 🚀' }]);
    equal(await store.annotate(fingerprint, { owner: 'eva' }), true);
    deepEqual(await texts(store), [{ note: 'The bank is down. ünï 🚀', owner: 'eva' }]);
    equal(await store.annotate(fingerprint, { note: 'Up again.', owner: 'tom' }), true);
    deepEqual(await texts(store), [{ note: 'Up again.', owner: 'tom' }]);
  },

  'takes away what is empty': async ({ store }) => {
    const { fingerprint } = (await dead(store)).item;
    await store.annotate(fingerprint, { note: 'a', owner: 'b' });
    await store.annotate(fingerprint, { note: '' });
    deepEqual(await texts(store), [{ owner: 'b' }]);
    await store.annotate(fingerprint, { owner: '' });
    deepEqual(await texts(store), [{}]);
  },

  'says where there is no such group': async ({ store }) => {
    equal(await store.annotate('none', { note: 'a' }), false);
    deepEqual(await store.groups({ all: true, limit: 10 }), []);
  },

  'changes nothing else of the group': async ({ store }) => {
    const { fingerprint } = (await dead(store)).item;
    const [before] = await store.groups({ limit: 1 });
    await store.annotate(fingerprint, { note: 'a' });
    deepEqual(await store.groups({ limit: 1 }), [{ ...before, note: 'a' }]);
  },

  'stays when items come and go': async ({ store }) => {
    const { item } = await dead(store);
    await store.annotate(item.fingerprint, { note: 'a', owner: 'b' });
    await actOne(store, item, { type: 'resolve' });
    equal(await store.annotate(item.fingerprint, { owner: 'c' }), true);
    await dead(store);
    deepEqual(await texts(store), [{ note: 'a', owner: 'c' }]);
  },

  'is only of that group': async ({ store }) => {
    const { item: a } = await dead(store);
    const { item: b } = await dead(store, inLane('b'));
    notEqual(a.fingerprint, b.fingerprint);
    await store.annotate(a.fingerprint, { note: 'a' });
    const groups = await store.groups({ lane: 'b', limit: 10 });
    deepEqual(
      groups.map(({ note }) => note),
      [undefined],
    );
  },
};

async function counts(store: Store): Promise<number[]> {
  return (await store.groups({ limit: 10 })).map(({ open }) => open);
}

async function fingerprints(store: Store, query: Partial<GroupQuery>): Promise<string[]> {
  const groups = await store.groups({ limit: 10, ...query });
  return groups.map(({ fingerprint }) => fingerprint);
}

async function texts(store: Store): Promise<Pick<Group, 'note' | 'owner'>[]> {
  const groups = await store.groups({ all: true, limit: 10 });
  return groups.map(({ note, owner }) => ({
    ...(note === undefined ? {} : { note }),
    ...(owner === undefined ? {} : { owner }),
  }));
}

function bySeen(a: Group, b: Group): number {
  return b.lastSeenMs - a.lastSeenMs || (a.fingerprint < b.fingerprint ? 1 : -1);
}

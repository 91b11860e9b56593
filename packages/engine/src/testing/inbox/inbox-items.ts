import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Failure } from 'redrive';
import type { ItemFilter } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import { bytes, ids, inLane, inLine, rawItem, unreachable, uuid } from '../fixtures.ts';
import { actOne, dead, deadMany, deadRaw } from './inbox-fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each } from '../suite.ts';

/** Each part of a filter, with what of the stock it must find. */
const filters: Readonly<Record<string, (stock: Stock) => [ItemFilter, readonly number[]]>> = {
  nothing: ({ all }) => [{}, all],
  ids: ({ a, raw }) => [{ ids: [a, raw, 987_654_321] }, [a, raw]],
  'no ids': () => [{ ids: [] }, []],
  state: ({ closed }) => [{ state: 'resolved' }, [closed]],
  'another state': ({ all, closed }) => [{ state: 'open' }, all.filter((id) => id !== closed)],
  reason: ({ b }) => [{ reason: 'PERMANENT' }, [b]],
  lane: ({ a, closed }) => [{ lane: 'a' }, [a, closed]],
  'the lane of a source': ({ raw }) => [{ lane: 'source:retry.scheduled' }, [raw]],
  fingerprint: ({ b, fingerprintOfB }) => [{ fingerprint: fingerprintOfB }, [b]],
  'message id': ({ a, messageOfA }) => [{ messageId: messageOfA }, [a]],
  'a message id that nobody has': () => [{ messageId: uuid() }, []],
  'ordering key': ({ ordered }) => [{ orderingKey: 'k' }, [ordered]],
  'an ordering key in other capitals': () => [{ orderingKey: 'K' }, []],
  class: ({ b }) => [{ class: 'transient' }, [b]],
  'all of it together': ({ a }) => [
    { state: 'open', lane: 'a', reason: 'EXHAUSTED', class: 'technical', text: 'broken' },
    [a],
  ],
  'parts that exclude each other': () => [{ lane: 'a', reason: 'PERMANENT' }, []],
};

/** What stands in the text of a failure, and the texts that find it or do not. */
const texts: Readonly<Record<string, { failure: Failure; by: string[]; notBy: string[] }>> = {
  'any part of the message, in capitals or not': {
    failure: { class: 'business', message: 'No such Customer: 4711' },
    by: ['No such Customer: 4711', 'such', 'CUSTOMER', '4711', ': '],
    notBy: ['such  customer', 'customers', '4711 '],
  },
  'the code': {
    failure: { class: 'business', code: 'E_NO_STOCK', message: 'Sold out' },
    by: ['E_NO_STOCK', 'e_no', 'stock', 'sold'],
    notBy: ['E-NO', 'stocksold', 'STOCK Sold'],
  },
  'signs that mean something to a database': {
    failure: { class: 'business', message: `100% of a_b in C:\\temp said "no" and 'never'` },
    by: ['100%', '0% o', 'a_b', 'C:\\temp', '\\', '"no"', `'never'`, '%', '_'],
    notBy: ['1%0', 'a%b', 'aXb', 'axb', '__', '%%', '\\\\', ';'],
  },
  'lines and letters of all kinds': {
    failure: { class: 'business', message: 'first\nsecond\tünï 🚀' },
    by: ['first\nsecond', '\t', 'ünï', '🚀'],
    notBy: ['first second', '\\n', 'uni'],
  },
  'nothing but message and code': {
    failure: { class: 'business', code: 'X1', status: 404, message: 'gone' },
    by: ['x1', 'gone'],
    notBy: ['business', 'class', 'message', '404', 'status', '":"', '{', 'null'],
  },
  'a failure without message and code': {
    failure: { class: 'business' },
    by: [],
    notBy: ['business', 'null', 'undefined', ' '],
  },
};

export const filterCases: StoreCases = {
  ...each(
    Object.keys(filters),
    (name) => `finds by ${name}`,
    async (name, { store }: Stage) => {
      const [filter, wanted] = filters[name]!(await stocked(store));
      deepEqual(await found(store, filter), wanted.toSorted(descending));
      equal(await store.count(filter), wanted.length);
    },
  ),

  ...each(
    Object.keys(texts),
    (name) => `finds by text: ${name}`,
    async (name, { store }: Stage) => {
      const { failure, by, notBy } = texts[name]!;
      const { item } = await dead(store, inLane('a'), { failure });
      for (const text of by) {
        deepEqual(await found(store, { text }), [item.id], `${text} finds it`);
        equal(await store.count({ text }), 1);
      }
      for (const text of notBy) {
        deepEqual(await found(store, { text }), [], `${text} does not find it`);
        equal(await store.count({ text }), 0);
      }
    },
  ),

  'finds by the time when it was last seen, from then on and before then': async (stage) => {
    const { store, pass } = stage;
    const first = (await dead(store)).item;
    await pass(5);
    const second = (await dead(store)).item;
    const { firstSeenMs: firstMs } = first;
    const { lastSeenMs: secondMs } = second;
    deepEqual(await found(store, { fromMs: firstMs }), [second.id, first.id]);
    deepEqual(await found(store, { fromMs: secondMs }), [second.id]);
    deepEqual(await found(store, { fromMs: secondMs + 1 }), []);
    deepEqual(await found(store, { toMs: secondMs }), [first.id]);
    deepEqual(await found(store, { toMs: firstMs }), []);
    deepEqual(await found(store, { fromMs: firstMs, toMs: secondMs }), [first.id]);
    equal(await store.count({ fromMs: secondMs }), 1);
    equal(await store.count({ toMs: secondMs }), 1);
  },

  'finds by the last time that it was seen, not by the first': async ({ store, pass }) => {
    const raw = rawItem('what');
    await store.append([raw]);
    const [before] = (await store.items({ limit: 1 })).items;
    await pass(5);
    await store.append([raw]);
    const [after] = (await store.items({ limit: 1 })).items;
    deepEqual(await found(store, { toMs: before!.lastSeenMs + 1 }), []);
    deepEqual(await found(store, { fromMs: after!.lastSeenMs }), [after!.id]);
  },

  'pages by `next`, each once, and ends': async ({ store }) => {
    const all = ids(await deadMany(store, 25)).toReversed();
    const seen: number[] = [];
    let pages = 0;
    for (let before: number | undefined; ;) {
      const page = await store.items({ limit: 10, ...(before === undefined ? {} : { before }) });
      seen.push(...ids(page.items));
      before = page.next;
      pages += 1;
      if (before === undefined) break;
      ok(pages < 10, 'it ends');
    }
    deepEqual(seen, all);
    ok(pages >= 3);
  },

  'has no `next` where all were given': async ({ store }) => {
    await deadMany(store, 3);
    const { items, next } = await store.items({ limit: 10 });
    deepEqual([items.length, next], [3, undefined]);
    deepEqual(await store.items({ limit: 10, lane: 'nowhere' }), { items: [] });
  },

  'pages through what a filter leaves over, each once': async ({ store }) => {
    for (let i = 0; i < 12; i++) {
      const failure = { class: 'business', message: i % 3 ? 'other' : 'wanted' } as const;
      await dead(store, inLane('a'), { failure });
    }
    const wanted = await found(store, { text: 'wanted' });
    equal(wanted.length, 4);
    const seen: number[] = [];
    for (let before: number | undefined = Number.MAX_SAFE_INTEGER; before !== undefined;) {
      const page = await store.items({ text: 'wanted', before, limit: 1 });
      seen.push(...ids(page.items));
      ok(page.next === undefined || page.next < before, 'it goes on');
      before = page.next;
    }
    deepEqual(seen, wanted);
  },

  'counts beyond a page': async ({ store }) => {
    await deadMany(store, 120);
    equal(await store.count({}), 120);
    equal(await store.count({ lane: 'a', state: 'open' }), 120);
    equal(await store.count({ state: 'resolved' }), 0);
  },
};

interface Stock {
  a: number;
  b: number;
  raw: number;
  closed: number;
  ordered: number;
  all: readonly number[];
  messageOfA: string;
  fingerprintOfB: string;
}

/** One item of each kind. */
async function stocked(store: Store): Promise<Stock> {
  const { item: a } = await dead(store, inLane('a', { payload: bytes('a') }));
  const { item: b } = await dead(store, inLane('b'), { reason: 'PERMANENT', failure: unreachable });
  const raw = await deadRaw(store);
  const { item: closed } = await dead(store);
  equal(await actOne(store, closed, { type: 'resolve' }), 'done');
  const { item: ordered } = await dead(store, inLine('k', { lane: 'c', blocked: false }));
  return {
    a: a.id,
    b: b.id,
    raw: raw.id,
    closed: closed.id,
    ordered: ordered.id,
    all: ids([a, b, raw, closed, ordered]),
    messageOfA: a.messageId,
    fingerprintOfB: b.fingerprint,
  };
}

async function found(store: Store, filter: ItemFilter): Promise<number[]> {
  return ids((await store.items({ ...filter, limit: 100 })).items);
}

function descending(a: number, b: number): number {
  return b - a;
}

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { virtualClock, type VirtualClock } from 'redrive/testing';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { itemOf } from '../../model/item.ts';
import type { Store } from '../../ports/store.ts';
import type { NewTask, Reason } from '../../model/task.ts';
import { newTask } from '../../testing/fixtures.ts';
import { sqlite } from './index.ts';

const lane = 'queue:orders';
const leaseMs = 30_000;

let folder: string;
let file: string;
let clock: VirtualClock;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  clock = virtualClock();
  store = sqlite(file, { clock });
  await store.open();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function claim(limit: number, lease: number, maxBytes = 1e9) {
  const from = { kind: 'due' as const, lanes: [{ lane, limit }] };
  return store.claim({ from, lease, leaseMs, maxBytes });
}

/** How many commits the work takes. */
async function commitsOf(work: () => Promise<unknown>): Promise<number> {
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec');
  await work();
  return exec.mock.calls.filter(([sql]) => sql === 'COMMIT').length;
}

test('everything is there again when the file is opened again', async () => {
  const failure = { class: 'transient' as const, code: 'ECONNRESET', message: 'reset' };
  const record = { attempt: 1, failure, durationMs: 5, answer: 'no' };
  const outbox = {
    destination: { kind: 'queue', address: 'review' },
    headers: { a: 'b' },
    payload: new Uint8Array([7]),
  };
  await store.insert([
    newTask({ context: { headers: { 'x-a': 'ü' } }, expiresAtMs: clock.now() + 5000 }),
    newTask(),
  ]);
  const { tasks } = await claim(2, 11);
  await store.settle([
    {
      id: tasks[0]!.id,
      lease: 11,
      to: 'failed',
      attempt: 1,
      item: itemOf('PERMANENT', failure, lane),
      record,
      outbox,
    },
    {
      id: tasks[1]!.id,
      lease: 11,
      to: 'pending',
      delayMs: 500,
      attempt: 1,
      uncounted: 0,
      claims: 0,
      reschedule: true,
      record,
    },
  ]);
  await store.append([
    {
      ...itemOf('UNREADABLE', failure, lane),
      messageId: randomUUID(),
      source: 'in',
      payload: new Uint8Array([1, 2]),
    },
  ]);
  await store.writeState('lane:x', { paused: true }, 0);
  const all = async () => ({
    tasks: await store.list({ limit: 10 }),
    items: (await store.items({ limit: 10 })).items,
    attempts: await store.attempts(tasks[0]!.id),
    state: await store.readState(''),
    lanes: await store.lanes({ limit: 10 }),
  });
  const before = await all();
  expect(before.items).toHaveLength(2);
  await store.close();
  store = sqlite(pathToFileURL(file), { clock });
  await store.open();
  expect(await all()).toEqual(before);
  expect(await store.takeOutbox(10, leaseMs)).toEqual([{ id: 1, ...outbox }]);
});

test('calls of the same turn share one commit', async () => {
  const writes = Array.from({ length: 100 }, () => newTask());
  expect(await commitsOf(() => Promise.all(writes.map((task) => store.insert([task]))))).toBe(1);
  expect(await store.list({ limit: 1000 })).toHaveLength(100);
});

test('a call that cannot be done fails alone, not those that shared its commit', async () => {
  const fault = new Error('a fault in a move');
  const [first, broken, second] = await Promise.allSettled([
    store.insert([newTask()]),
    store.change([{ id: 1 }], () => {
      throw fault;
    }),
    store.insert([newTask({ messageId: 'no uuid' }), newTask()]),
  ]);
  expect(first).toEqual({ status: 'fulfilled', value: [1] });
  expect(broken).toEqual({ status: 'rejected', reason: fault });
  expect(second).toMatchObject({ status: 'rejected', reason: { code: 'INVALID_ID' } });
  expect(await store.list({ limit: 10 })).toHaveLength(1);
});

test('looking for work where nothing is due takes no lock', async () => {
  await store.insert([newTask({ due: { inMs: 250 } })]);
  const other = new DatabaseSync(file);
  other.exec('BEGIN IMMEDIATE');
  expect(await claim(10, 1)).toMatchObject({ tasks: [], nextInMs: [250] });
  const lost = { kind: 'lost' as const, lanes: [lane], limit: 5 };
  expect(await store.claim({ from: lost, lease: 2, leaseMs, maxBytes: 1 })).toMatchObject({
    nextInMs: [undefined],
  });
  const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
  expect(await store.prune({ olderThanMs, limit: 10 })).toBe(0);
  expect(await store.takeOutbox(10, leaseMs)).toEqual([]);
  other.close();
});

test('a claim reads the time of the clock that it was given', async () => {
  await store.insert([newTask({ due: { inMs: 1000 } })]);
  clock.jump(999);
  expect((await claim(1, 1)).tasks).toEqual([]);
  clock.jump(1);
  const { tasks, nowMs } = await claim(1, 2);
  expect(tasks[0]).toMatchObject({
    lease: 2,
    claims: 1,
    visibleAtMs: nowMs + leaseMs,
    dueAtMs: nowMs,
  });
});

test('a clock that is set back makes nothing early and gives no task to two', async () => {
  await store.insert([newTask({ due: { inMs: 1000 } }), newTask()]);
  expect((await claim(5, 1)).tasks).toHaveLength(1);
  clock.jump(-3_600_000);
  expect(await claim(5, 2)).toMatchObject({ tasks: [], nextInMs: [3_601_000] });
  expect(await store.renew([{ id: 2, lease: 1 }], leaseMs)).toEqual(['held']);
  expect((await store.get({ id: 2 }))?.visibleAtMs).toBe(clock.now() + leaseMs);
});

test('a large claim is cut, and says that there is more', async () => {
  await store.insert(Array.from({ length: 1001 }, () => newTask()));
  const first = await claim(5000, 1);
  expect(first.tasks).toHaveLength(1000);
  expect(first.nextInMs).toEqual([0]);
  expect((await claim(5000, 2)).tasks).toHaveLength(1);
});

test('a claim takes no more bytes than asked for, but always one', async () => {
  await store.insert(Array.from({ length: 40 }, () => newTask({ payload: new Uint8Array(1000) })));
  expect((await claim(40, 1, 1)).tasks).toHaveLength(1);
  expect((await claim(40, 2, 20_999)).tasks).toHaveLength(20);
  const rest = await claim(40, 3);
  expect(rest.tasks).toHaveLength(19);
  expect(rest.tasks.map(({ id }) => id)).toEqual(Array.from({ length: 19 }, (_, i) => i + 22));
});

test('an address longer than its column is kept whole, and is an identity of its own', async () => {
  const messageId = randomUUID();
  const addressed = (end: string) => {
    const address = `https://example.com/${'ä'.repeat(200)}${end}`;
    return newTask({ messageId, destination: { kind: 'http', address } });
  };
  expect(await store.insert([addressed('1'), addressed('2'), addressed('1')])).toEqual([
    1,
    2,
    undefined,
  ]);
  const { destination } = addressed('2');
  expect(await store.get({ messageId, destination })).toMatchObject({ id: 2, destination });
});

test('the columns of the contract say what it wants of them', async () => {
  await store.insert([newTask({ attempt: 2, failure: { class: 'transient', message: 'boom' } })]);
  const { tasks } = await claim(1, 1);
  await store.settle([{ id: tasks[0]!.id, lease: 1, to: 'retried' }]);
  const db = new DatabaseSync(file);
  const row = db.prepare('SELECT * FROM retry_queue').get();
  db.close();
  expect(row).toMatchObject({
    original_queue: 'orders',
    error_reason: 'boom',
    retry_count: 2,
    max_retries: 3,
    next_retry_at: clock.now(),
    created_at: clock.now(),
    status: 'retried',
  });
});

test.for<Partial<NewTask>>([
  { attempt: 1 },
  { uncounted: 1 },
  { delayMs: 1 },
  { generation: 1 },
  { claims: 1 },
  { arrival: 1 },
  { arrived: true },
  { verdict: 'PERMANENT' },
  { cancelling: true },
  { blocked: true },
  { orderingKey: 'customer 1' },
  { failure: { class: 'unknown' } },
  { status: 'cancelled' },
  { policy: 'f00d', expiresAtMs: 5, context: { method: 'PUT' } },
])('a new task keeps what is unusual about it: %j', async (unusual) => {
  await store.insert([newTask(unusual)]);
  expect(await store.get({ id: 1 })).toMatchObject(unusual);
});

test('a task has one open item: another one is one more occurrence, and changes nothing else of it', async () => {
  await store.insert([newTask()]);
  const fail = (reason: Reason, code: string) =>
    store.change([{ id: 1 }], (task) => ({
      result: true,
      task: { ...task!, status: 'failed' },
      item: itemOf(reason, { class: 'technical', code }, lane),
    }));
  await fail('PERMANENT', 'EFIRST');
  await fail('EXPIRED', 'ESECOND');
  const items = (await store.items({ state: 'open', limit: 10 })).items;
  const first = itemOf('PERMANENT', { class: 'technical', code: 'EFIRST' }, lane);
  const item = { ...first, occurrences: 2 };
  const { fingerprint } = first;
  expect(items).toEqual([expect.objectContaining(item)]);
  expect(await store.groups({ limit: 10 })).toEqual([
    expect.objectContaining({ fingerprint, open: 1 }),
  ]);
});

test('a list finds what is rare, far down, newest first', async () => {
  await store.insert([
    newTask({ lane: 'handler:rare' }),
    newTask(),
    newTask({ lane: 'handler:rare' }),
  ]);
  // As if a million tasks had come and gone in between.
  const db = new DatabaseSync(file);
  db.exec("UPDATE sqlite_sequence SET seq = 1000000 WHERE name = 'retry_queue'");
  db.close();
  await store.insert([newTask(), newTask({ lane: 'handler:rare' })]);
  const ids = async (query: object) =>
    (await store.list({ limit: 10, ...query })).map(({ id }) => id);
  expect(await ids({ lane: 'handler:rare' })).toEqual([1_000_002, 3, 1]);
  expect(await ids({ lane: 'handler:rare', limit: 2 })).toEqual([1_000_002, 3]);
  expect(await ids({ before: 1_000_002, status: 'pending' })).toEqual([1_000_001, 3, 2, 1]);
  expect(await ids({ status: 'done' })).toEqual([]);
  expect(await ids({ messageId: 'not a uuid' })).toEqual([]);
});

test('lanes are found in order and in pages, the lost ones included', async () => {
  const lanes = ['handler:c', 'handler:a', 'handler:b'];
  await store.insert(lanes.map((name, i) => newTask({ lane: name, due: { inMs: i * 100 } })));
  await store.insert([newTask({ lane: 'handler:blocked', blocked: true })]);
  await store.claim({
    from: { kind: 'due', lanes: [{ lane: 'handler:c', limit: 1 }] },
    lease: 1,
    leaseMs,
    maxBytes: 1,
  });
  const all = [
    { lane: 'handler:a', inMs: 100 },
    { lane: 'handler:b', inMs: 200 },
    { lane: 'handler:c', inMs: leaseMs },
  ];
  expect(await store.lanes({ limit: 10 })).toEqual(all);
  expect(await store.lanes({ limit: 2 })).toEqual(all.slice(0, 2));
  expect(await store.lanes({ after: 'handler:a', limit: 1 })).toEqual(all.slice(1, 2));
  expect(await store.lanes({ after: 'handler:c', limit: 1 })).toEqual([]);
});

test('the trail is written in order, all or nothing', async () => {
  const event = (sequence: number) => ({
    event_type: 'decided',
    timestamp: '2025-01-01T00:00:00.000Z',
    delay_ms: 5,
    redrive: { instance: 'a', run: 1, sequence },
  });
  await store.audit!.write([event(1), event(2)]);
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  await expect(store.audit!.write([event(3), { ...event(4), circular }])).rejects.toThrow(
    TypeError,
  );
  const db = new DatabaseSync(file);
  const rows = db.prepare('SELECT sequence, event FROM redrive_audit ORDER BY id').all();
  db.close();
  expect(rows.map(({ sequence }) => sequence)).toEqual([1, 2]);
  expect(JSON.parse(rows[1]!['event'] as string)).toEqual(event(2));
});

test('pruning takes what is over and old enough, with its attempts, up to its limit', async () => {
  await store.insert(Array.from({ length: 600 }, () => newTask()));
  const { tasks } = await claim(600, 1);
  const record = { attempt: 1, failure: { class: 'transient' as const }, durationMs: 1 };
  await store.settle([
    {
      id: 1,
      lease: 1,
      to: 'failed',
      attempt: 1,
      item: itemOf('PERMANENT', record.failure, lane),
      record,
    },
  ]);
  await store.settle([
    {
      id: 2,
      lease: 1,
      to: 'pending',
      delayMs: 0,
      attempt: 1,
      uncounted: 0,
      claims: 0,
      reschedule: true,
      record,
    },
  ]);
  await store.settle(tasks.slice(2).map(({ id }) => ({ id, lease: 1, to: 'done' })));
  await claim(1, 2);
  await store.settle([{ id: 2, lease: 2, to: 'retried' }]);
  const olderThanMs = { done: 1000, retried: 2000, cancelled: 0 };
  await clock.advance(999);
  expect(await store.prune({ olderThanMs, limit: 1000 })).toBe(0);
  await clock.advance(1);
  expect(await store.prune({ olderThanMs, limit: 300 })).toBe(300);
  expect(await store.prune({ olderThanMs, limit: 1000 })).toBe(298);
  await clock.advance(1000);
  expect(await store.attempts(2)).toHaveLength(1);
  expect(await store.prune({ olderThanMs, limit: 1000 })).toBe(1);
  expect(await store.attempts(2)).toEqual([]);
  expect((await store.list({ limit: 10 })).map(({ id }) => id)).toEqual([1]);
});

test('an id is not given again, also after the newest task is gone', async () => {
  await store.insert([newTask()]);
  await claim(1, 1);
  await store.settle([{ id: 1, lease: 1, to: 'done' }]);
  await store.prune({ olderThanMs: { done: 0, retried: 0, cancelled: 0 }, limit: 1 });
  expect(await store.insert([newTask()])).toEqual([2]);
});

test('opening twice is opening once, and closing finishes what was asked for', async () => {
  await Promise.all([store.open(), store.open()]);
  const inserted = store.insert([newTask()]);
  await Promise.all([store.close(), store.close()]);
  expect(await inserted).toEqual([1]);
  await expect(store.get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  await store.open();
  expect(await store.get({ id: 1 })).toMatchObject({ id: 1 });
});

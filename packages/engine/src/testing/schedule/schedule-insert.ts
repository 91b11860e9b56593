import { deepEqual, equal, notEqual, ok } from 'node:assert/strict';
import type { NewTask } from '../../model/task.ts';
import {
  bytes,
  claimDue,
  HOUR_MS,
  inLane,
  newTask,
  plain,
  put,
  row,
  unreachable,
  uuid,
} from '../fixtures.ts';
import type { StoreCases } from '../stage.ts';

export const insertCases: StoreCases = {
  'gives each new task an id, in the order of the batch': async ({ store }) => {
    const tasks = [newTask(), newTask(), newTask()];
    const ids = await store.insert(tasks);
    equal(new Set(ids).size, 3);
    for (const [i, id] of ids.entries()) {
      equal((await row(store, id!)).messageId, tasks[i]!.messageId);
    }
  },

  'keeps every field': async ({ store, sameTime, nowMs }) => {
    const task: NewTask = {
      ...newTask({ destination: { kind: 'http', address: 'https://api.example/orders?id=7' } }),
      context: {
        headers: { 'x-tenant': 'a', 'content-language': 'de' },
        contentType: 'application/json',
        method: 'PUT',
        secret: 'orders-api',
        traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
        extra: { priority: 3, nested: { list: [1, 'two', null, true] } },
      },
      attempt: 2,
      maxAttempts: 9,
      uncounted: 3,
      delayMs: 1500,
      policy: 'f1e2d3c4',
      generation: 1,
      expiresAtMs: (await nowMs()) + 2 * HOUR_MS,
      arrival: 2 ** 52 - 1,
      orderingKey: 'customer-7',
      failure: {
        class: 'transient',
        code: 'HTTP_503',
        message: 'Service Unavailable',
        names: ['HttpError', 'Error'],
        status: 503,
        retryAfterMs: 2000,
        notExecuted: false,
        counted: true,
      },
      due: { inMs: HOUR_MS },
    };
    const stored = await put(store, task);
    const { id, createdAtMs, dueAtMs, visibleAtMs, ...rest } = stored;
    const { due: _, ...given } = task;
    deepEqual(plain(rest), plain(given));
    ok(Number.isSafeInteger(id));
    sameTime(createdAtMs, await nowMs());
    sameTime(dueAtMs, createdAtMs + HOUR_MS);
    equal(visibleAtMs, dueAtMs);
  },

  'leaves out what was not given': async ({ store }) => {
    const { id: _, createdAtMs: __, dueAtMs: ___, visibleAtMs: ____, ...rest } = await put(store);
    const { due: _____, ...given } = newTask({ messageId: rest.messageId });
    deepEqual(plain(rest), plain(given));
  },

  'answers undefined for a known identity and leaves it alone': async ({ store }) => {
    const task = newTask();
    const before = await put(store, task);
    deepEqual(await store.insert([{ ...task, payload: bytes('other'), maxAttempts: 9 }]), [
      undefined,
    ]);
    deepEqual(plain(await row(store, before.id)), plain(before));
  },

  'takes the same again when the answer was lost': async ({ store }) => {
    const tasks = [newTask(), newTask()];
    await store.insert(tasks);
    deepEqual(await store.insert(tasks), [undefined, undefined]);
    equal((await claimDue(store, tasks[0]!.lane)).tasks.length, 2);
  },

  'takes a message for another address as another task': async ({ store }) => {
    const task = newTask();
    const other = { ...task, destination: { kind: 'queue', address: 'invoices' } };
    const [one, two] = await store.insert([task, other]);
    ok(one !== undefined && two !== undefined && one !== two);
  },

  'takes a message for another kind of destination as another task': async ({ store }) => {
    const task = newTask();
    const other = { ...task, destination: { kind: 'handler', address: 'orders' } };
    const [one, two] = await store.insert([task, other]);
    ok(one !== undefined && two !== undefined && one !== two);
  },

  'tells kind and address apart': async ({ store }) => {
    const task = newTask({ destination: { kind: 'a b', address: 'c' } });
    const other = { ...task, destination: { kind: 'a', address: 'b c' } };
    const [one, two] = await store.insert([task, other]);
    ok(one !== undefined && two !== undefined && one !== two);
    deepEqual((await store.get(other))?.destination, other.destination);
  },

  'stores the first of equal ones in one batch': async ({ store }) => {
    const task = newTask({ payload: bytes('first') });
    const [id, ...others] = await store.insert([
      task,
      { ...task, payload: bytes('second') },
      { ...task, payload: bytes('third') },
    ]);
    deepEqual(others, [undefined, undefined]);
    deepEqual(plain((await row(store, id!)).payload), bytes('first'));
  },

  'answers new ones among known ones each in its place': async ({ store }) => {
    const known = [newTask(), newTask()];
    await store.insert(known);
    const fresh = [newTask(), newTask()];
    const ids = await store.insert([known[0]!, fresh[0]!, known[1]!, fresh[1]!]);
    deepEqual([ids[0], ids[2]], [undefined, undefined]);
    equal((await row(store, ids[1]!)).messageId, fresh[0]!.messageId);
    equal((await row(store, ids[3]!)).messageId, fresh[1]!.messageId);
  },

  'takes an empty batch': async ({ store }) => {
    deepEqual(await store.insert([]), []);
  },

  'takes a thousand at once': async ({ store }) => {
    const tasks = Array.from({ length: 1000 }, () => newTask());
    const ids = await store.insert(tasks);
    equal(new Set(ids).size, 1000);
    ok(!ids.includes(undefined));
    for (const i of [0, 499, 999]) {
      equal((await row(store, ids[i]!)).messageId, tasks[i]!.messageId);
    }
  },

  'counts a delay from its own clock': async ({ store, sameTime, nowMs }) => {
    const { createdAtMs, dueAtMs, visibleAtMs } = await put(
      store,
      newTask({ due: { inMs: HOUR_MS } }),
    );
    sameTime(createdAtMs, await nowMs());
    sameTime(dueAtMs, createdAtMs + HOUR_MS);
    equal(visibleAtMs, dueAtMs);
  },

  'takes a delay of a year': async ({ store, sameTime }) => {
    const yearMs = 366 * 24 * HOUR_MS;
    const { createdAtMs, dueAtMs } = await put(store, newTask({ due: { inMs: yearMs } }));
    sameTime(dueAtMs, createdAtMs + yearMs);
  },

  'keeps a due time to the millisecond': async ({ store, nowMs }) => {
    const atMs = Math.floor(await nowMs()) + HOUR_MS + 1;
    const { dueAtMs, visibleAtMs } = await put(store, newTask({ due: { atMs } }));
    equal(dueAtMs, atMs);
    equal(visibleAtMs, atMs);
  },

  'takes a due time that has passed as now': async ({ store, nowMs, sameTime }) => {
    const due = { atMs: Math.floor(await nowMs()) - HOUR_MS };
    const { id, lane, dueAtMs, visibleAtMs, createdAtMs } = await put(store, newTask({ due }));
    sameTime(dueAtMs, createdAtMs);
    equal(visibleAtMs, dueAtMs);
    deepEqual(
      (await claimDue(store, lane)).tasks.map((task) => task.id),
      [id],
    );
  },

  'keeps an expiry to the millisecond': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) + HOUR_MS + 1;
    equal((await put(store, newTask({ expiresAtMs }))).expiresAtMs, expiresAtMs);
  },

  'keeps every byte of a payload': async ({ store }) => {
    const payload = Uint8Array.from({ length: 256 }, (_, i) => i);
    const { id, lane } = await put(store, newTask({ payload }));
    deepEqual(plain((await row(store, id)).payload), payload);
    deepEqual(plain((await claimDue(store, lane)).tasks[0]?.payload), payload);
  },

  'keeps an empty payload': async ({ store }) => {
    const { payload } = await put(store, newTask({ payload: new Uint8Array() }));
    equal(payload.length, 0);
    ok(payload instanceof Uint8Array);
  },

  'keeps a payload of 1 MiB': async ({ store }) => {
    const payload = Uint8Array.from({ length: 1024 * 1024 }, (_, i) => (i * 31) % 251);
    const stored = await put(store, newTask({ payload }));
    ok(Buffer.from(stored.payload).equals(payload));
  },

  'keeps a part of a larger buffer as that part': async ({ store }) => {
    const whole = bytes('before|payload|after');
    const stored = await put(store, newTask({ payload: whole.subarray(7, 14) }));
    equal(new TextDecoder().decode(stored.payload), 'payload');
  },

  'keeps the payload as it was, whatever the caller does with its bytes': async ({ store }) => {
    const payload = bytes('kept');
    const { id } = await put(store, newTask({ payload }));
    payload.fill(0);
    deepEqual(plain((await row(store, id)).payload), bytes('kept'));
  },

  'keeps texts of any script and any sign': async ({ store }) => {
    const text = `ünïcødé 测试 العربية 🚀 e\u0301 'quoted' "twice" \\back\\slash %_ $1 ? :name\nline\ttab`;
    const task = newTask({
      destination: { kind: 'handler', address: text },
      lane: `lane ${text}`,
      context: { headers: { 'x-text': text }, extra: { [text]: text } },
      failure: { class: 'unknown', message: text },
      orderingKey: text,
    });
    const stored = await put(store, task);
    for (const name of ['destination', 'lane', 'context', 'failure', 'orderingKey'] as const) {
      deepEqual(stored[name], task[name]);
    }
    equal((await store.get(task))?.id, stored.id);
    equal((await claimDue(store, task.lane)).tasks.length, 1);
  },

  'keeps an address of 255 bytes and one of more': async ({ store }) => {
    for (const length of [255, 256, 2000]) {
      const task = newTask({ destination: { kind: 'queue', address: 'q'.repeat(length) } });
      const stored = await put(store, task);
      equal(stored.destination.address, task.destination.address);
      equal((await store.get(task))?.id, stored.id);
      deepEqual(await store.insert([task]), [undefined]);
    }
  },

  'tells apart two long addresses that begin alike': async ({ store }) => {
    const start = `https://api.example/${'ä'.repeat(1000)}/`;
    const messageId = uuid();
    const [one, two] = ['1', '2'].map((end) =>
      newTask({ messageId, lane: 'api', destination: { kind: 'http', address: start + end } }),
    );
    const ids = await store.insert([one!, two!]);
    notEqual(ids[0], ids[1]);
    ok(!ids.includes(undefined));
    equal((await store.get(two!))?.destination.address, two!.destination.address);
  },

  'writes the execution that failed elsewhere with the task': async ({ store, sameTime }) => {
    const record = {
      attempt: 1,
      failure: unreachable,
      durationMs: 250,
      answer: 'upstream: déjà vu',
    };
    const stored = await put(store, newTask({ attempt: 1, failure: unreachable, record }));
    const [attempt, ...more] = await store.attempts(stored.id);
    equal(more.length, 0);
    const { atMs, ...rest } = attempt!;
    deepEqual(rest, { ...record, generation: 0 });
    sameTime(atMs, stored.createdAtMs);
    sameTime(stored.firstAtMs, stored.createdAtMs - 250);
    ok(!('record' in stored));
  },

  'writes no execution where none is given': async ({ store }) => {
    const stored = await put(store);
    deepEqual(await store.attempts(stored.id), []);
    ok(!('firstAtMs' in stored));
  },

  'writes no execution of a task that is known': async ({ store }) => {
    const record = { attempt: 1, failure: unreachable, durationMs: 1 };
    const task = newTask({ attempt: 1, failure: unreachable, record });
    const { id } = await put(store, task);
    await store.insert([task]);
    equal((await store.attempts(id)).length, 1);
  },

  'keeps a duration that is no whole number': async ({ store }) => {
    const record = { attempt: 1, failure: unreachable, durationMs: 12.345 };
    const { id } = await put(store, newTask({ attempt: 1, failure: unreachable, record }));
    const [attempt] = await store.attempts(id);
    ok(Math.abs(attempt!.durationMs - 12.345) < 1);
  },

  'lets one of many that come at once win': async ({ store }) => {
    const task = newTask();
    const answers = await Promise.all(Array.from({ length: 20 }, () => store.insert([task])));
    equal(answers.filter(([id]) => id !== undefined).length, 1);
  },

  'takes batches that overlap in opposite orders at once': async ({ store }) => {
    const tasks = Array.from({ length: 50 }, () => inLane('overlap'));
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => store.insert(i % 2 ? tasks : tasks.toReversed())),
    );
    equal(answers.flat().filter((id) => id !== undefined).length, 50);
    equal((await claimDue(store, 'overlap')).tasks.length, 50);
  },

  'lets one of many instances win': {
    needs: 'shared',
    run: async ({ store, second }) => {
      const stores = [store, await second()];
      const tasks = Array.from({ length: 50 }, () => newTask());
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          stores[i % 2]!.insert(i % 3 ? tasks : tasks.toReversed()),
        ),
      );
      equal(answers.flat().filter((id) => id !== undefined).length, 50);
    },
  },
};

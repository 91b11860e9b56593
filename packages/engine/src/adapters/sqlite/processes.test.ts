import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../ports/store.ts';
import { newTask } from '../../testing/fixtures.ts';
import { sqlite } from './index.ts';

const lane = 'queue:orders';

let folder: string;
let file: string;
let store: Store;
const children: ChildProcess[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  store = sqlite(file);
  await store.open();
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What differs is made where it is used: a process cannot be handed bytes. */
const { messageId: _, payload: __, ...template } = newTask();

/** A process of its own on the same file. It may call what `newTask`, `claim`, `store` and `say` name. */
function start(script: string): { child: ChildProcess; lines: AsyncIterable<string> } {
  const prelude = `
    import { randomUUID } from 'node:crypto';
    import { sqlite } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)};
    const lane = ${JSON.stringify(lane)};
    const template = ${JSON.stringify(template)};
    const newTask = () => ({ ...template, messageId: randomUUID(), payload: new Uint8Array(200) });
    const say = (value) => new Promise((resolve) => process.stdout.write(JSON.stringify(value) + '\\n', resolve));
    const store = sqlite(${JSON.stringify(file)});
    const claim = (limit) => {
      const lease = Math.floor(Math.random() * 2 ** 52);
      return store.claim({ from: { kind: 'due', lanes: [{ lane, limit }] }, lease, leaseMs: 60_000, maxBytes: 1e9 });
    };
    await store.open();
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', prelude + script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return { child, lines: createInterface({ input: child.stdout }) };
}

const work = `
  for (;;) {
    const { tasks } = await claim(7);
    if (tasks.length === 0) break;
    const settled = await store.settle(tasks.map(({ id, lease }) => ({ id, lease, to: 'done' })));
    await say({ claimed: tasks.map(({ id }) => id), settled });
  }
  await store.close();
`;

test('processes share the work, and none gets what another has', async () => {
  const ids = await store.insert(Array.from({ length: 500 }, () => newTask()));
  const claimed: number[] = [];
  await Promise.all(
    [start(work), start(work), start(work)].map(async ({ child, lines }) => {
      const exit = once(child, 'exit');
      for await (const line of lines) {
        const said = JSON.parse(line) as { claimed: number[]; settled: string[] };
        claimed.push(...said.claimed);
        expect(new Set(said.settled)).toEqual(new Set(['settled']));
      }
      expect(await exit).toEqual([0, null]);
    }),
  );
  expect(claimed.toSorted((a, b) => a - b)).toEqual(ids);
});

test('three processes may open a new file at once', async () => {
  await store.close();
  rmSync(folder, { recursive: true });
  const insert = 'await store.insert([newTask()]); await store.close();';
  const exits = [start(insert), start(insert), start(insert)].map(({ child }) =>
    once(child, 'exit'),
  );
  expect(await Promise.all(exits)).toEqual(exits.map(() => [0, null]));
  await store.open();
  expect(await store.list({ limit: 10 })).toHaveLength(3);
});

test('what another process writes wakes a watcher', async () => {
  const woken = new Promise((resolve) => {
    store.watch(resolve);
  });
  const exit = once(start('await store.insert([newTask()]); await store.close();').child, 'exit');
  expect(await woken).toEqual({});
  await exit;
  expect(await store.lanes({ limit: 5 })).toEqual([{ lane, inMs: 0 }]);
});

test('a process that is killed in the middle of its writes leaves all that it was told of', async () => {
  const writing = `
    for (;;) {
      const ids = await store.insert(Array.from({ length: 50 }, newTask));
      await say({ inserted: ids });
      const { tasks } = await claim(20);
      const settled = await store.settle(tasks.map(({ id, lease }) => ({ id, lease, to: 'done' })));
      await say({ done: tasks.map(({ id }) => id), settled });
    }
  `;
  const inserted = new Set<number>();
  const done = new Set<number>();
  for (const saidBefore of [1, 6, 13]) {
    const { child, lines } = start(writing);
    const exit = once(child, 'exit');
    let count = 0;
    for await (const line of lines) {
      const said = JSON.parse(line) as { inserted?: number[]; done?: number[] };
      for (const id of said.inserted ?? []) inserted.add(id);
      for (const id of said.done ?? []) done.add(id);
      count += 1;
      if (count === saidBefore) child.kill('SIGKILL');
    }
    expect(await exit).toEqual([null, 'SIGKILL']);
    const db = new DatabaseSync(file);
    expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
    db.close();
    const found = await store.list({ limit: 100_000 });
    const status = new Map(found.map((task) => [task.id, task.status]));
    expect([...inserted].filter((id) => !status.has(id))).toEqual([]);
    expect([...done].filter((id) => status.get(id) !== 'done')).toEqual([]);
  }
  // And it goes on: what was left can be worked off by those that live.
  const { lines } = start(work);
  for await (const line of lines)
    for (const id of (JSON.parse(line) as { claimed: number[] }).claimed) done.add(id);
  const left = await store.list({ status: 'pending', limit: 100_000 });
  expect(left.every(({ lease }) => lease !== undefined)).toBe(true);
});

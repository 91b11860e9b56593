/** The file is deleted, moved or replaced while a store has it open: nothing that was accepted is lost. */
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { virtualClock, type VirtualClock } from 'redrive/testing';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createEngine } from '../../../engine.ts';
import type { EngineError } from '../../../errors.ts';
import type { Store } from '../../../ports/store.ts';
import { newTask } from '../../../testing/fixtures.ts';
import { sqlite } from '../index.ts';

let root: string;
let folder: string;
let file: string;
let clock: VirtualClock;
const opened: Store[] = [];
let faults: { what: string; error: EngineError }[];
const heard = new Set<() => void>();

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'redrive-sqlite-loss-'));
  folder = join(root, 'data');
  mkdirSync(folder);
  file = join(folder, 'tasks.db');
  clock = virtualClock();
  faults = [];
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(opened.splice(0).map((store) => store.close()));
  rmSync(root, { recursive: true, force: true });
});

const onFault = (what: string, error: unknown) => {
  faults.push({ what, error: error as EngineError });
  for (const call of heard) call();
};

async function open(path = file): Promise<Store> {
  const store = sqlite(path, { clock, onFault });
  opened.push(store);
  await store.open();
  return store;
}

/** What was said of the loss, as soon as it is said. */
async function fault(what: string, number = 1): Promise<EngineError> {
  for (;;) {
    const found = faults.filter((one) => one.what === what)[number - 1];
    if (found) return found.error;
    await new Promise<void>((resolve) => {
      const call = () => {
        heard.delete(call);
        resolve();
      };
      heard.add(call);
    });
  }
}

const copied = (number?: number) => fault('what the lost file held was copied', number);
const notCopied = (number?: number) => fault('what the lost file held could not be copied', number);

function copies(where = folder): string[] {
  return readdirSync(where)
    .filter((name) => /\.rescued-\w+Z(-\d+)?$/.test(name))
    .map((name) => join(where, name));
}

function remove(): void {
  for (const end of ['', '-wal', '-shm']) rmSync(file + end);
}

function claim(store: Store, limit = 10) {
  const from = { kind: 'due' as const, lanes: [{ lane: 'queue:orders', limit }] };
  return store.claim({ from, lease: 1, leaseMs: 30_000, maxBytes: 1e9 });
}

async function tasksIn(path: string) {
  const store = await open(path);
  const tasks = await store.list({ limit: 1000 });
  await store.close();
  return tasks;
}

/** Another store's file, as somebody might put it in the place of this one. */
async function otherFile(): Promise<string> {
  const other = join(root, 'other.db');
  const store = await open(other);
  await store.insert(Array.from({ length: 50 }, () => newTask({ payload: new Uint8Array(500) })));
  await store.close();
  return other;
}

const losses: [string, () => Promise<void>, RegExp][] = [
  ['is deleted', async () => remove(), /was deleted or moved/],
  ['is deleted without its log', async () => rmSync(file), /was deleted or moved/],
  ['is moved', async () => renameSync(file, join(root, 'moved.db')), /was deleted or moved/],
  [
    'is replaced',
    async () => renameSync(await otherFile(), file),
    /Another file was put in the place/,
  ],
  ['loses its log', async () => rmSync(`${file}-wal`), /-wal or .*-shm was deleted/],
  ['loses the index of its log', async () => rmSync(`${file}-shm`), /-wal or .*-shm was deleted/],
];

test.for(losses)(
  'a store whose file %s refuses, and copies all that it held',
  async ([, lose, said]) => {
    const store = await open();
    const tasks = Array.from({ length: 20 }, () => newTask());
    await store.insert(tasks);
    await lose();
    const refused = store.insert([newTask()]);
    await expect(refused).rejects.toMatchObject({
      code: 'STORE_FILE_LOST',
      message: expect.stringMatching(said),
    });
    const { message } = await copied();
    const [copy] = copies();
    expect(message).toContain(copy);
    expect(message).toMatch(said);
    await expect(store.get({ id: 1 })).rejects.toMatchObject({
      code: 'STORE_FILE_LOST',
      message: expect.stringContaining(`is in ${copy}`),
    });
    await store.close();
    expect(copies()).toEqual([copy]);
    const kept = await tasksIn(copy!);
    expect(kept.map(({ messageId }) => messageId).sort()).toEqual(
      tasks.map(({ messageId }) => messageId).sort(),
    );
    expect(statSync(copy!).mode & 0o077).toBe(0);
  },
);

test.for(['insert', 'claim', 'readState', 'lanes', 'census', 'items', 'takeOutbox'] as const)(
  'after the loss %s is refused',
  async (operation) => {
    const store = await open();
    await store.insert([newTask()]);
    remove();
    const calls = {
      insert: () => store.insert([newTask()]),
      claim: () => claim(store),
      readState: () => store.readState(''),
      lanes: () => store.lanes({ limit: 1 }),
      census: () => store.census(),
      items: () => store.items({ limit: 1 }),
      takeOutbox: () => store.takeOutbox(1, 1000),
    };
    await expect(calls[operation]()).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
    await expect(calls[operation]()).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  },
);

test('a file that is lost in the midst of a commit is noticed before anybody is told', async () => {
  const store = await open();
  await store.insert([newTask()]);
  const { length } = await store.list({ limit: 10 });
  expect(length).toBe(1);
  // The move is called within the transaction.
  const changed = store.change([{ id: 1 }], () => {
    if (existsSync(file)) remove();
    return { result: 'changed' };
  });
  const inserted = store.insert([newTask()]);
  await expect(changed).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await expect(inserted).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await copied();
  expect(await tasksIn(copies()[0]!)).toHaveLength(1);
});

test('deliveries under way are settled after the loss, and the copy knows it', async () => {
  const store = await open();
  await store.insert([newTask(), newTask(), newTask()]);
  const { tasks } = await claim(store, 2);
  remove();
  await expect(store.insert([newTask()])).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await copied();
  const lease = { lease: 1 };
  expect(await store.renew([{ id: tasks[0]!.id, ...lease }], 30_000)).toHaveLength(1);
  expect(await store.settle([{ id: tasks[0]!.id, ...lease, to: 'done' }])).toEqual(['settled']);
  await store.dropOutbox([1]);
  await store.abandon(7);
  await store.audit!.write([]);
  await store.close();
  const [copy, ...more] = copies();
  expect(more).toEqual([]);
  const statuses = (await tasksIn(copy!)).map(({ status }) => status);
  expect(statuses.sort()).toEqual(['done', 'pending', 'pending']);
});

test('a settle together with a refused insert is still written', async () => {
  const store = await open();
  await store.insert([newTask()]);
  const { tasks } = await claim(store);
  remove();
  const inserted = store.insert([newTask()]);
  const settled = store.settle([{ id: tasks[0]!.id, lease: 1, to: 'done' }]);
  await expect(inserted).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  expect(await settled).toEqual(['settled']);
  await store.close();
  expect(await tasksIn(copies()[0]!)).toMatchObject([{ status: 'done' }]);
});

test('nothing is written while a copy is made: the copy would have half of it', async () => {
  const store = await open();
  await store.insert([newTask()]);
  const { tasks } = await claim(store);
  const large = Array.from({ length: 30 }, () => newTask({ payload: new Uint8Array(1_000_000) }));
  await store.insert(large);
  remove();
  await expect(store.insert([newTask()])).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await store.settle([{ id: tasks[0]!.id, lease: 1, to: 'done' }]);
  expect(faults.map(({ what }) => what)).toContain('what the lost file held was copied');
});

test('the copy is renewed while the process goes on, not only when it stops', async () => {
  const store = await open();
  store.watch(() => {});
  await store.insert([newTask()]);
  const { tasks } = await claim(store);
  remove();
  await clock.advance(100);
  await copied();
  const [copy] = copies();
  const former = { bytes: readFileSync(copy!), handle: openSync(copy!, 'r') };
  await store.settle([{ id: tasks[0]!.id, lease: 1, to: 'done' }]);
  const statusIn = () => {
    const db = new DatabaseSync(copy!, { readOnly: true });
    const row = db.prepare('SELECT status FROM retry_queue').get();
    db.close();
    return row?.['status'];
  };
  await vi.waitUntil(async () => {
    await clock.advance(100);
    return statusIn() === 'done';
  });
  expect(copies()).toEqual([copy]);
  // A new file took the place of the former one, which was whole until then.
  expect(readFileSync(former.handle)).toEqual(former.bytes);
  closeSync(former.handle);
});

test('an idle store notices within 100 ms, while somebody watches', async () => {
  const store = await open();
  store.watch(() => {});
  await store.insert([newTask()]);
  remove();
  await clock.advance(99);
  expect(faults).toEqual([]);
  await clock.advance(1);
  expect((await copied()).message).toContain(copies()[0]);
});

test('a loss that nobody noticed before the close is noticed by the close', async () => {
  const store = await open();
  await store.insert([newTask()]);
  remove();
  await store.close();
  expect(await tasksIn(copies()[0]!)).toHaveLength(1);
});

test('a whole folder that is deleted or renamed is made again for the copy', async () => {
  const store = await open();
  await store.insert([newTask()]);
  renameSync(folder, join(root, 'elsewhere'));
  await expect(store.get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await copied();
  await store.close();
  expect(await tasksIn(copies()[0]!)).toHaveLength(1);
  // What was only moved is whole as well.
  expect(await tasksIn(join(root, 'elsewhere', 'tasks.db'))).toHaveLength(1);
});

test('a copy overwrites nothing: a second loss at the same moment has its own', async () => {
  for (const count of [1, 2]) {
    const store = await open();
    await store.insert(Array.from({ length: count }, () => newTask()));
    remove();
    await store.close();
  }
  const sizes = await Promise.all(copies().map(async (copy) => (await tasksIn(copy)).length));
  expect(new Set(sizes)).toEqual(new Set([1, 2]));
  expect(sizes).toHaveLength(2);
});

test('the copy has its name only when it is whole: a crash leaves no empty file that looks like it', async () => {
  const store = await open();
  await store.insert([newTask()]);
  remove();
  // Refused in the turn in which the copy began: it cannot be over.
  await expect(store.get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  expect(copies()).toEqual([]);
  expect(readdirSync(folder)).toContainEqual(expect.stringMatching(/\.rescued-\w+Z\.new$/));
  await copied();
  expect(copies()).toHaveLength(1);
  expect(readdirSync(folder)).toHaveLength(1);
});

test('a name that a crash or another process has begun to use is not used', async () => {
  const store = await open();
  await store.insert([newTask()]);
  remove();
  const begun = `${file}.rescued-20250101T000000Z.new`;
  writeFileSync(begun, 'half a copy');
  await store.close();
  expect(copies()).toEqual([`${file}.rescued-20250101T000000Z-2`]);
  expect(readFileSync(begun, 'utf8')).toBe('half a copy');
});

test.for(['missing', 'empty'])(
  'a log whose file is %s is kept, and nothing begins without the file',
  async (state) => {
    const store = await open();
    await store.insert([newTask(), newTask()]);
    // As after a crash: somebody has moved the file alone, and the log stayed.
    const place = join(root, 'crashed');
    mkdirSync(place);
    const lost = join(place, 'tasks.db');
    copyFileSync(`${file}-wal`, `${lost}-wal`);
    if (state === 'empty') writeFileSync(lost, '');
    await expect(open(lost)).rejects.toMatchObject({
      code: 'STORE_FILE_LOST',
      message: expect.stringContaining(`${lost}-wal is there`),
    });
    copyFileSync(file, lost);
    expect(await tasksIn(lost)).toHaveLength(2);
  },
);

test('a file that is put in its place is left as it is, also by the log that was there', async () => {
  const other = await otherFile();
  const store = await open();
  await store.insert(Array.from({ length: 30 }, () => newTask({ payload: new Uint8Array(2000) })));
  renameSync(other, file);
  const bytes = readFileSync(file);
  await expect(store.get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await copied();
  // Before the process ends: another one may start at any time.
  expect(existsSync(`${file}-wal`)).toBe(false);
  await store.close();
  expect(readFileSync(file)).toEqual(bytes);
  expect(await tasksIn(file)).toHaveLength(50);
  expect(await tasksIn(copies()[0]!)).toHaveLength(30);
});

test('a file that was moved and comes back has everything when the store is opened again', async () => {
  const store = await open();
  await store.insert([newTask(), newTask()]);
  const { tasks } = await claim(store, 1);
  renameSync(file, join(root, 'moved.db'));
  await expect(store.get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await copied();
  renameSync(join(root, 'moved.db'), file);
  // Somebody may have opened the path in between: only a new start is safe.
  await expect(store.insert([newTask()])).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await store.settle([{ id: tasks[0]!.id, lease: 1, to: 'done' }]);
  await store.close();
  await store.open();
  expect((await store.list({ limit: 10 })).map(({ status }) => status)).toEqual([
    'pending',
    'done',
  ]);
  expect(await store.insert([newTask()])).toEqual([3]);
});

test('a log that somebody still reads is left where it is: it has what the moved file lacks', async () => {
  const store = await open();
  const reader = new DatabaseSync(file);
  reader.exec('BEGIN; SELECT count(*) FROM retry_queue');
  await store.insert([newTask(), newTask()]);
  renameSync(file, join(root, 'moved.db'));
  await expect(store.get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await copied();
  renameSync(`${file}-wal`, join(root, 'moved.db-wal'));
  reader.close();
  await store.close();
  expect(await tasksIn(join(root, 'moved.db'))).toHaveLength(2);
});

test('a symbolic link is followed, and noticed when it leads elsewhere', async () => {
  const other = await otherFile();
  const link = join(folder, 'link.db');
  writeFileSync(file, '');
  symlinkSync(file, link);
  const store = await open(link);
  await store.insert([newTask()]);
  expect(await store.insert([newTask()])).toEqual([2]);
  rmSync(link);
  symlinkSync(other, link);
  await expect(store.insert([newTask()])).rejects.toMatchObject({
    code: 'STORE_FILE_LOST',
    message: expect.stringContaining('Another file'),
  });
  await copied();
  // The file itself was not touched: whoever opens it must find its log.
  expect(existsSync(`${file}-wal`)).toBe(true);
  await store.close();
  expect(await tasksIn(file)).toHaveLength(2);
  expect(await tasksIn(copies()[0]!)).toHaveLength(2);
});

test('a copy that cannot be written is tried again, and until then it says what to do', async () => {
  const nowhere = join(root, 'no-tmp');
  vi.stubEnv('TMPDIR', nowhere);
  const store = await open();
  await store.insert([newTask()]);
  remove();
  rmSync(folder, { recursive: true });
  // A file where the folder was: nothing can be written beside the database.
  writeFileSync(folder, '');
  await expect(store.get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  const { message } = await notCopied();
  expect(message).toContain('exists in this process only');
  expect(message).toContain('Do not end this process');
  expect(readdirSync(root)).toEqual(['data']);
  await expect(store.insert([newTask()])).rejects.toMatchObject({ message });
  rmSync(folder);
  await clock.advance(5000);
  await expect(store.get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  await copied();
  await store.close();
  expect(await tasksIn(copies()[0]!)).toHaveLength(1);
});

test('where nothing can be written beside the file, the copy goes to the temporary folder', async () => {
  const spare = join(root, 'spare');
  mkdirSync(spare);
  vi.stubEnv('TMPDIR', spare);
  const store = await open();
  await store.insert([newTask()]);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  await store.close();
  expect((await copied()).message).toContain(copies(spare)[0]);
  expect(await tasksIn(copies(spare)[0]!)).toHaveLength(1);
});

test('two stores of one file both notice, and either copy has all that both wrote', async () => {
  const first = await open();
  const second = await open();
  await first.insert([newTask()]);
  await second.insert([newTask()]);
  remove();
  for (const store of [first, second]) {
    await expect(store.insert([newTask()])).rejects.toMatchObject({ code: 'STORE_FILE_LOST' });
  }
  await copied(2);
  await first.close();
  await second.close();
  const both = copies();
  expect(both).toHaveLength(2);
  for (const copy of both) expect(await tasksIn(copy)).toHaveLength(2);
});

test('a copy of the file beside it, or a touch, is no loss', async () => {
  const store = await open();
  await store.insert([newTask()]);
  copyFileSync(file, join(folder, 'backup.db'));
  expect(await store.insert([newTask()])).toEqual([2]);
  await store.close();
  await store.open();
  expect(await store.insert([newTask()])).toEqual([3]);
  expect(faults).toEqual([]);
});

test('submit rejects with the code, and an engine stops well after the loss', async () => {
  const store = sqlite(file, { onFault });
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const engine = createEngine({ store, log }).handle('slow', async () => {
    begun.resolve();
    await end.promise;
  });
  await engine.start();
  const { id } = await engine.submit('slow', { order: 1 });
  await begun.promise;
  remove();
  await expect(engine.submit('slow', { order: 2 })).rejects.toMatchObject({
    code: 'STORE_FILE_LOST',
  });
  end.resolve();
  await engine.stop();
  expect(await tasksIn(copies()[0]!)).toMatchObject([{ messageId: id, status: 'done' }]);
});

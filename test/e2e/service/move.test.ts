import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createEngine } from '@redrive/engine';
import { migratePostgres, postgres } from '@redrive/engine/postgres';
import { sqlite } from '@redrive/engine/sqlite';
import { describePostgres, everyPostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { expect, test } from 'vitest';
import { move } from '../../../packages/server/src/upkeep/move.ts';
import { DataFolder, fill, lookAt } from './move-scene.ts';

const main = join(import.meta.dirname, '../../../packages/server/src/cli/main.ts');
/** Each of many processes takes its time to start on a busy machine. */
const TIMEOUT_MS = 180_000;

async function lookAtFile(file: string): Promise<unknown> {
  const store = sqlite(file);
  await store.open();
  try {
    return await lookAt(store);
  } finally {
    await store.close();
  }
}

async function lookAtDatabase(url: string): Promise<unknown> {
  const store = postgres({ url, maxConnections: 2, listen: false });
  await store.open();
  try {
    return await lookAt(store);
  } finally {
    await store.close();
  }
}

describePostgres(({ freshDatabase }) => {
  test(
    'everything is in PostgreSQL as it was in the file, whatever the move was interrupted by',
    { timeout: TIMEOUT_MS },
    async () => {
      using data = new DataFolder();
      await using database = await freshDatabase();
      await fill(data.file);
      const before = await lookAtFile(data.file);
      expectSomeOfEverything(before);
      const options = { file: data.file, databaseUrl: database.url };

      let interruptions = 0;
      for (;;) {
        try {
          // Each call gets one part further: it dies after the commit and before it knows of it.
          const result = await move({ ...options, onProgress: interrupt });
          expect(result).toMatchObject({ type: 'moved', known: { tasks: 0, items: 0 } });
          break;
        } catch (error) {
          if (!(error instanceof Interrupted)) throw error;
          interruptions += 1;
        }
      }
      expect(interruptions).toBeGreaterThan(10);
      expect(await lookAtDatabase(database.url)).toEqual(before);
      expect(readdirSync(data.folder)).toEqual([expect.stringMatching(/^redrive\.db\.moved-/)]);
      expect(await move(options)).toEqual({ type: 'nothing' });
    },
  );

  test('what is known there already stays as it is there', async () => {
    using data = new DataFolder();
    await using database = await freshDatabase();
    await fill(data.file, 10);
    const options = { file: data.file, databaseUrl: database.url };
    const copy = { ...options, file: join(data.folder, 'copy.db') };
    const { copyFileSync } = await import('node:fs');
    copyFileSync(data.file, copy.file);
    await move(options);
    const before = await lookAtDatabase(database.url);

    const again = await move(copy);

    expect(again).toMatchObject({ moved: { tasks: 0, items: 0 }, known: { tasks: 110 } });
    const { messages: _, ...after } = (await lookAtDatabase(database.url)) as { messages: unknown };
    expect(before).toMatchObject(after);
  });

  test('a second move on the same day overwrites nothing', async () => {
    using data = new DataFolder();
    await using database = await freshDatabase();
    const options = { file: data.file, databaseUrl: database.url, nowMs: 1_800_000_000_000 };
    const left: { name: string; bytes: Buffer }[] = [];
    for (const waiting of [10, 20, 30]) {
      await fill(data.file, waiting);
      const moved = await move(options);
      if (moved.type !== 'moved') throw new Error('Nothing was moved.');
      left.push({ name: moved.renamedTo, bytes: readFileSync(moved.renamedTo) });
    }
    const name = `${data.file}.moved-2027-01-15`;
    expect(left.map((one) => one.name)).toEqual([name, `${name}-2`, `${name}-3`]);
    for (const one of left) expect(readFileSync(one.name).equals(one.bytes)).toBe(true);
  });

  test('a file in use is left alone', async () => {
    using data = new DataFolder();
    await using database = await freshDatabase();
    await fill(data.file, 10);
    const store = sqlite(data.file);
    await store.open();
    const options = { file: data.file, databaseUrl: database.url };
    await expect(move(options)).rejects.toMatchObject({ code: 'MOVE_IN_USE' });
    const { documents } = await store.readState('moving');
    expect(documents).toEqual([]);
    await store.close();
    expect(await move(options)).toMatchObject({ type: 'moved' });
  });

  test('a move that was begun goes nowhere else', async () => {
    using data = new DataFolder();
    await using database = await freshDatabase();
    await using another = await freshDatabase();
    await fill(data.file, 10);
    const first = move({ file: data.file, databaseUrl: database.url, onProgress: interrupt });
    await expect(first).rejects.toBeInstanceOf(Interrupted);
    await expect(move({ file: data.file, databaseUrl: another.url })).rejects.toMatchObject({
      code: 'MOVE_BEGUN',
    });
    expect(existsSync(data.file)).toBe(true);
  });

  test('a line goes on behind what is there already', async () => {
    using data = new DataFolder();
    await using database = await freshDatabase();
    await fill(data.file, 10);
    const store = postgres({ url: database.url, maxConnections: 2, listen: false });
    await store.open();
    const engine = createEngine({ store });
    const to = { kind: 'handler', address: 'breaks' };
    await engine.submit(to, 'first', { orderingKey: 'long', dueAt: Date.now() + 3_600_000 });

    await move({ file: data.file, databaseUrl: database.url });

    const tasks = await store.list({ lane: 'handler:breaks', status: 'pending', limit: 100 });
    const line = tasks.filter(({ orderingKey }) => orderingKey === 'long').toReversed();
    expect(line.map(({ blocked }) => blocked)).toEqual([false, true, true, true, true, true]);
    expect(Buffer.from(line[0]!.payload).toString()).toBe('"first"');
    await engine.stop();
  });

  test(
    'killed again and again, it loses and doubles nothing',
    { timeout: TIMEOUT_MS },
    async () => {
      using data = new DataFolder();
      await using database = await freshDatabase();
      await fill(data.file, 2500);
      const before = await lookAtFile(data.file);
      await migratePostgres(database.url);
      const client = new pg.Client(database.url);
      await client.connect();
      const noted = async () => {
        const { rows } = await client.query<{ version: string }>(
          `SELECT version FROM redrive_state WHERE key LIKE 'move:%'`,
        );
        return Number(rows[0]?.version ?? 0);
      };

      let kills = 0;
      let code: number | null = null;
      while (code !== 0) {
        const from = await noted();
        const child = redriveMove(data.folder, database.url);
        const exit = once(child, 'exit') as Promise<[number | null]>;
        // Somewhere in the part after the next one.
        while (child.exitCode === null && (await noted()) === from);
        if (child.kill('SIGKILL')) kills += 1;
        [code] = await exit;
        expect(code === null || code === 0).toBe(true);
      }
      await client.end();
      expect(kills).toBeGreaterThan(5);
      expect(await lookAtDatabase(database.url)).toEqual(before);
    },
  );
}, everyPostgres);

/** So that a look that sees nothing cannot pass for equal. */
function expectSomeOfEverything(look: unknown): void {
  const { groups, documents, census, ...lists } = look as Record<string, unknown[]>;
  const counts = Object.fromEntries(
    Object.entries(lists).map(([name, { length }]) => [name, length]),
  );
  expect(counts).toEqual({ tasks: 1300, items: 43, attempts: 40, messages: 41 });
  expect(groups).toContainEqual(expect.objectContaining({ note: 'We know.', owner: 'ada' }));
  expect(documents).toContainEqual(['seed', 42]);
  expect(documents).toContainEqual(['lane:https://api.example.com', expect.anything()]);
  expect(documents!.length).toBeGreaterThan(10);
  expect(census).toMatchObject({ pending: 1210 });
}

class Interrupted extends Error {}

function interrupt(): never {
  throw new Interrupted();
}

function redriveMove(folder: string, url: string): ChildProcess {
  return spawn(process.execPath, [main, 'move', '--data-dir', folder, '--json'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], DATABASE_URL: url },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

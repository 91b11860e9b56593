/** Somebody deletes or replaces the SQLite file under a running service: whatever was answered with 202 is not lost. */
import { once } from 'node:events';
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createEngine } from '@redrive/engine';
import { sqlite } from '@redrive/engine/sqlite';
import { expect, test, vi } from 'vitest';
import { eventually, RedriveProcess, TemporaryFolder } from './redrive-process.ts';

// Several processes in one test: on a busy machine each takes seconds to start.
vi.setConfig({ testTimeout: 90_000 });

interface Readiness {
  ready: boolean;
  checks: { name: string; ok: boolean; detail?: string }[];
}

function serve(folder: TemporaryFolder): RedriveProcess {
  return new RedriveProcess(['serve', '--port', '0'], folder.path);
}

/** Keeps the ids that it was sent. */
async function receiver() {
  const got: string[] = [];
  const server = createServer((request, response) => {
    got.push(String(request.headers['x-redrive-message-id']));
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const lane = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    got,
    url: `${lane}/`,
    lane,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function submit(url: string, body: object): Promise<{ status: number; body: Answer }> {
  const response = await fetch(`${url}/api/v1/retries`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Answer };
}

async function setLane(url: string, lane: string, to: 'pause' | 'resume'): Promise<void> {
  const path = `/api/v1/lanes/${encodeURIComponent(lane)}/${to}`;
  expect((await fetch(url + path, { method: 'POST' })).status).toBe(200);
}

interface Answer {
  message_id: string;
  code?: string;
}

async function readiness(url: string): Promise<Readiness> {
  return (await (await fetch(`${url}/health/ready`)).json()) as Readiness;
}

const ways: [string, (file: string, folder: string) => Promise<void>][] = [
  [
    'deleted',
    async (file) => {
      for (const end of ['', '-wal', '-shm']) rmSync(file + end);
    },
  ],
  [
    'replaced',
    async (file, folder) => {
      const other = join(folder, 'other.db');
      const engine = createEngine({ store: sqlite(other) });
      await engine.submit('http://127.0.0.1:9/', 1, { dueAt: Date.now() + 3_600_000 });
      await engine.stop();
      renameSync(other, file);
    },
  ],
];

test.for(ways)(
  'a file that is %s under load: refused from then on, and all that was accepted is delivered later',
  async ([, lose]) => {
    using folder = new TemporaryFolder();
    using target = await receiver();
    const file = join(folder.path, 'redrive-data/redrive.db');
    await using first = serve(folder);
    const url = await first.ready();
    // Nothing is delivered before the restart: what counts is that all of it is still there.
    await setLane(url, target.lane, 'pause');
    const accepted: string[] = [];
    const refusals: string[] = [];
    const load = async () => {
      while (refusals.length === 0) {
        const task = { destination: target.url, payload: 1 };
        const { status, body } = await submit(url, task);
        if (status === 202) accepted.push(body.message_id);
        else refusals.push(`${status} ${body.code}`);
      }
    };
    const loads = Promise.all([load(), load(), load(), load()]);
    await eventually(
      async () => accepted.length,
      (count) => count >= 200,
    );
    await lose(file, folder.path);
    await loads;
    expect(new Set(refusals)).toEqual(new Set(['503 STORE_FILE_LOST']));

    const { err } = await first.logged('what the lost file held was copied');
    const names = readdirSync(join(folder.path, 'redrive-data'));
    const copy = join(
      folder.path,
      'redrive-data',
      names.find((name) => /rescued/.test(name))!,
    );
    expect((err as { message: string }).message).toContain(copy);
    const said = await eventually(
      () => readiness(url),
      ({ ready }) => !ready,
    );
    const detail = said.checks.find(({ name }) => name === 'store')?.detail;
    expect(detail).toContain(copy);
    expect(detail).toContain('start again');
    expect(await first.stop()).toBe(0);

    for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true });
    await using forgetful = serve(folder);
    expect(await forgetful.logged('a copy of a lost database file')).toMatchObject({
      level: 'warn',
      file: copy,
      pending: accepted.length,
    });
    expect(await forgetful.stop()).toBe(0);

    rmSync(file);
    renameSync(copy, file);
    expect(existsSync(file)).toBe(true);
    await using second = serve(folder);
    await setLane(await second.ready(), target.lane, 'resume');
    const got = await eventually(
      async () => new Set(target.got),
      ({ size }) => size >= accepted.length,
    );
    expect([...got].sort()).toEqual(accepted.sort());
    expect(target.got).toHaveLength(accepted.length);
    expect(await second.stop()).toBe(0);
  },
);

test('an idle service becomes unready by itself', async () => {
  using folder = new TemporaryFolder();
  await using redrive = serve(folder);
  await redrive.ready();
  for (const end of ['', '-wal', '-shm']) {
    rmSync(join(folder.path, `redrive-data/redrive.db${end}`));
  }
  // Nobody asks: the log has it all the same.
  expect(await redrive.logged('the store lost its file')).toMatchObject({ level: 'error' });
  await redrive.logged('what the lost file held was copied');
  // The last look at the store is good for a second.
  const url = await redrive.url();
  await expect.poll(async () => (await readiness(url)).ready, { timeout: 5000 }).toBe(false);
  expect(await redrive.stop()).toBe(0);
});

import { once } from 'node:events';
import { statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createEngine } from '@redrive/engine';
import { sqlite } from '@redrive/engine/sqlite';
import { startProxy } from '@redrive/services';
import { describePostgres, everyPostgres } from '@redrive/services/vitest';
import { describe, expect, test, vi } from 'vitest';
import { eventually, RedriveProcess, TemporaryFolder } from './redrive-process.ts';

// Several processes in one test: on a busy machine each takes seconds to start.
vi.setConfig({ testTimeout: 90_000 });

const json = { 'content-type': 'application/json' };

function serve(folder: TemporaryFolder, env: Record<string, string> = {}, ...args: string[]) {
  return new RedriveProcess(['serve', '--port', '0', ...args], folder.path, env);
}

async function submit(url: string, destination: string, payload: unknown = {}): Promise<string> {
  const body = JSON.stringify({ destination, payload });
  const response = await fetch(`${url}/api/v1/retries`, { method: 'POST', headers: json, body });
  expect(response.status).toBe(202);
  return ((await response.json()) as { message_id: string }).message_id;
}

async function statusOf(url: string, id: string): Promise<string> {
  const response = await fetch(`${url}/api/v1/retries/${id}`);
  return ((await response.json()) as { status: string }).status;
}

async function readiness(url: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/health/ready`);
  return { status: response.status, text: await response.text() };
}

/** A receiver of deliveries that does what it is told. */
async function receiver(answer: (response: ServerResponse, request: IncomingMessage) => void) {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    server.emit('delivery');
    answer(response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    get requests() {
      return requests;
    },
    delivery: () => once(server, 'delivery'),
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe('redrive serve with nothing configured', () => {
  test('keeps a file that only its owner reads, listens on loopback, is ready and stops', async () => {
    using folder = new TemporaryFolder();
    await using redrive = serve(folder);
    const url = await redrive.ready();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await readiness(url)).toMatchObject({ status: 200 });
    expect(statSync(join(folder.path, 'redrive-data')).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder.path, 'redrive-data/redrive.db')).isFile()).toBe(true);
    expect(await redrive.stop()).toBe(0);
    expect(redrive.err).toBe('');
  });

  test('delivers what it is given', async () => {
    using folder = new TemporaryFolder();
    using target = await receiver((response) => response.end());
    await using redrive = serve(folder);
    const url = await redrive.ready();
    const id = await submit(url, target.url, { order: 1 });
    expect(
      await eventually(
        () => statusOf(url, id),
        (status) => status === 'done',
      ),
    ).toBe('done');
    expect(target.requests).toBe(1);
  });

  test('tells a person where everything is, and what to try', async () => {
    using folder = new TemporaryFolder();
    await using redrive = serve(folder, { REDRIVE_LOG_FORMAT: 'pretty' });
    await redrive.line((line) => line.includes('/api/v1/events'));
    const text = redrive.lines.join('\n');
    for (const part of ['no tokens', 'SQLite, ./redrive-data/redrive.db', 'RABBITMQ_URL']) {
      expect(text).toContain(part);
    }
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0];
    expect(text).toContain(`curl ${url}/api/v1/retries`);
    // What it says to copy works.
    const [, body = ''] = /-d '(.*)'/.exec(text) ?? [];
    const { destination, payload } = JSON.parse(body) as { destination: string; payload: unknown };
    await submit(String(url), destination, payload);
  });
});

describe('redrive serve', () => {
  test('with faults tells all of them and ends with 78', async () => {
    using folder = new TemporaryFolder();
    const env = { HTTP_PORT: '99999', REDRIVE_HOST: '0.0.0.0', DATABASE_URL: 'mysql://a:hush@b' };
    await using redrive = new RedriveProcess(['serve'], folder.path, { ...env, REDRIVE_PROT: '1' });
    expect(await redrive.exit).toBe(78);
    expect(redrive.err).toContain('3 faults');
    for (const name of Object.keys(env)) expect(redrive.err).toContain(`${name}: `);
    expect(redrive.err).not.toContain('hush');
    expect(redrive.lines).toEqual([]);
  });

  test('says so when its port is taken', async () => {
    using folder = new TemporaryFolder();
    await using first = serve(folder);
    const { port } = new URL(await first.ready());
    await using second = new RedriveProcess(['serve', '--port', port], folder.path);
    expect(await second.exit).toBe(1);
    expect(second.err).toContain('Something listens there already');
  });

  test('shares its file with a second one', async () => {
    using folder = new TemporaryFolder();
    using target = await receiver((response) => response.end());
    await using first = serve(folder);
    const url = await first.ready();
    await using second = serve(folder);
    const another = await second.ready();
    const ids = await Promise.all(
      [1, 2, 3, 4].map((n) => submit(n % 2 ? url : another, target.url)),
    );
    for (const id of ids) {
      await eventually(
        () => statusOf(another, id),
        (status) => status === 'done',
      );
    }
    expect(target.requests).toBe(4);
    expect(await first.stop()).toBe(0);
    expect(await second.stop()).toBe(0);
  });

  test('ends what runs when it is asked to stop', async () => {
    using folder = new TemporaryFolder();
    let answer = () => {};
    using target = await receiver((response) => (answer = () => response.end()));
    await using redrive = serve(folder);
    const url = await redrive.ready();
    const delivery = target.delivery();
    await submit(url, target.url);
    await delivery;
    redrive.signal('SIGTERM');
    await redrive.logged('stopping');
    answer();
    expect(await redrive.exit).toBe(0);

    await using next = serve(folder);
    const again = await next.ready();
    const response = await fetch(`${again}/api/v1/retries?status=done`);
    expect(await response.json()).toMatchObject({ items: [{ status: 'done' }] });
    expect(target.requests).toBe(1);
  });

  test('hurries when it is asked twice', async () => {
    using folder = new TemporaryFolder();
    using target = await receiver(() => {});
    await using redrive = serve(folder);
    const url = await redrive.ready();
    const delivery = target.delivery();
    await submit(url, target.url);
    await delivery;
    redrive.signal('SIGTERM');
    await redrive.logged('stopping');
    const startMs = performance.now();
    redrive.signal('SIGINT');
    expect(await redrive.exit).toBe(0);
    // The grace of what never answers would be 8 s.
    expect(performance.now() - startMs).toBeLessThan(7000);
  });

  test('with --only api stores and answers, and leaves deliveries to --only dispatch', async () => {
    using folder = new TemporaryFolder();
    using target = await receiver((response) => response.end());
    await using api = serve(folder, {}, '--only', 'api');
    const url = await api.ready();
    const id = await submit(url, target.url);
    expect(target.requests).toBe(0);
    await using dispatch = serve(folder, {}, '--only', 'dispatch');
    await dispatch.ready();
    await eventually(
      () => statusOf(url, id),
      (status) => status === 'done',
    );
    const { instance } = await dispatch.logged('ready');
    expect(instance).not.toBe((await api.logged('ready')).instance);
  });

  test('does not deliver from a file whose move was begun', async () => {
    using folder = new TemporaryFolder();
    const store = sqlite(join(folder.path, 'redrive-data/redrive.db'));
    await store.open();
    await store.writeState('moving', { id: 'x', to: 'somewhere', begun: true }, 0);
    await store.close();
    await using redrive = serve(folder);
    expect(await redrive.exit).toBe(78);
    expect(redrive.err).toContain('redrive move');
    // Nobody could ask it for anything.
    expect(redrive.lines).toEqual([]);
  });

  test('with a data folder that cannot be made says which', async () => {
    using folder = new TemporaryFolder();
    await using redrive = serve(folder, {}, '--data-dir', '/dev/null/x');
    expect(await redrive.exit).toBe(78);
    expect(redrive.err).toContain('REDRIVE_DATA_DIR');
  });
});

describePostgres(({ freshDatabase }) => {
  test('comes up without its database, says so, and works when that is there', async () => {
    using folder = new TemporaryFolder();
    using target = await receiver((response) => response.end());
    await using database = await freshDatabase();
    await using proxy = await startProxy(database.url);
    proxy.refuse();
    await using redrive = serve(folder, { DATABASE_URL: proxy.url });
    const url = await redrive.url();
    await redrive.logged('not ready yet, trying again');
    const before = await readiness(url);
    expect(before.status).toBe(503);
    expect(before.text).toContain('"name":"store","ok":false');
    expect((await fetch(`${url}/health/live`)).status).toBe(200);

    proxy.admit();
    await redrive.ready();
    await eventually(
      () => readiness(url),
      ({ status }) => status === 200,
    );
    const id = await submit(url, target.url);
    await eventually(
      () => statusOf(url, id),
      (status) => status === 'done',
    );

    proxy.refuse();
    proxy.cut();
    await eventually(
      () => readiness(url),
      ({ status }) => status === 503,
    );
    proxy.admit();
    await eventually(
      () => readiness(url),
      ({ status }) => status === 200,
    );
    expect(await redrive.stop()).toBe(0);
  });

  test('stops at once while it still looks for its database', async () => {
    using folder = new TemporaryFolder();
    await using redrive = serve(folder, { DATABASE_URL: 'postgres://127.0.0.1:1/none' });
    await redrive.logged('not ready yet, trying again');
    expect(await redrive.stop()).toBe(0);
  });

  test('warns of what the data folder still holds, and redrive move takes it along', async () => {
    using folder = new TemporaryFolder();
    await using database = await freshDatabase();
    const store = sqlite(join(folder.path, 'redrive-data/redrive.db'));
    const engine = createEngine({ store });
    const id = '01890000-0000-7000-8000-000000000001';
    await engine.submit('http://127.0.0.1:9/', 1, { id, dueAt: Date.now() + 3_600_000 });
    await engine.stop();
    const env = { DATABASE_URL: database.url };

    await using first = serve(folder, env);
    await first.ready();
    const warning = await first.logged('the data folder still holds');
    expect(warning).toMatchObject({ level: 'warn', pending: 1, open: 0 });
    expect(warning.msg).toContain('redrive move');
    await first.stop();

    await using move = new RedriveProcess(['move'], folder.path, env);
    expect(await move.exit).toBe(0);
    expect(move.lines.join('\n')).toContain('Moved 1 task');

    await using second = serve(folder, env);
    const url = await second.ready();
    expect(await statusOf(url, id)).toBe('pending');
    await second.stop();
    expect(second.lines.some((line) => line.includes('still holds'))).toBe(false);

    await using forgetful = serve(folder);
    await forgetful.ready();
    expect(await forgetful.logged('what was in this data folder was moved')).toMatchObject({
      level: 'warn',
      file: expect.stringContaining('redrive.db.moved-'),
    });
  });
}, everyPostgres);

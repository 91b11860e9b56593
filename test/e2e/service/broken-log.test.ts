/** A log that cannot be written or that nobody reads never stops the service. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createPort, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test, vi } from 'vitest';
import { eventually, TemporaryFolder } from './redrive-process.ts';

// Several processes in one test: on a busy machine each takes seconds to start.
vi.setConfig({ testTimeout: 90_000 });

const main = join(import.meta.dirname, '../../../packages/server/src/cli/main.ts');
const full = '/dev/full';

class Serve implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly url: string;
  readonly exit: Promise<number | NodeJS.Signals | null>;

  private constructor(child: ChildProcess, url: string) {
    this.child = child;
    this.url = url;
    this.exit = new Promise((resolve) => {
      child.on('exit', (code, signal) => resolve(code ?? signal));
    });
  }

  /** Ready, by what it answers: nobody may be able to read its log. */
  static async start(folder: TemporaryFolder, stdout: 'pipe' | number): Promise<Serve> {
    const port = await freePort();
    const child = spawn(process.execPath, [main, 'serve', '--port', String(port)], {
      cwd: folder.path,
      env: { PATH: process.env['PATH'], REDRIVE_LOG_FORMAT: 'json' },
      stdio: ['ignore', stdout, stdout],
    });
    const serve = new Serve(child, `http://127.0.0.1:${port}`);
    await eventually(
      () => serve.status('/health/ready').catch(() => 0),
      (status) => status === 200 || child.exitCode !== null,
    );
    return serve;
  }

  async status(path: string): Promise<number> {
    const response = await fetch(this.url + path);
    await response.arrayBuffer();
    return response.status;
  }

  async submit(body: object): Promise<void> {
    const response = await fetch(`${this.url}/api/v1/retries`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ payload: 1, ...body }),
    });
    await response.arrayBuffer();
    if (response.status !== 202) throw new Error(`Not accepted: ${response.status}`);
  }

  /** Makes it write lines: each of these is a new cause in the inbox. */
  async talk(from: number, to: number): Promise<void> {
    for (let i = from; i < to; i += 20) {
      const numbers = Array.from({ length: Math.min(20, to - i) }, (_, k) => i + k);
      await Promise.all(
        numbers.map((number) =>
          this.submit({
            destination: `queue:${String(number).padEnd(200, 'x')}`,
            retry_count: 0,
            classification: 'BUSINESS',
            error_reason: 'made up',
          }),
        ),
      );
    }
  }

  async lost(): Promise<number> {
    const page = await (await fetch(`${this.url}/metrics`)).text();
    return Number(/^redrive_log_lines_lost_total (\d+)$/m.exec(page)?.[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exit;
  }
}

async function freePort(): Promise<number> {
  const server = createPort().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Holds every delivery until it is told to answer. */
async function slowReceiver() {
  const waiting: ServerResponse[] = [];
  const server = createServer((_, response) => {
    waiting.push(response);
    server.emit('delivery');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    delivery: () => once(server, 'delivery'),
    answer: () => waiting.splice(0).forEach((response) => response.end()),
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** It delivers, and on SIGTERM it brings the delivery under way to its end. Answers its exit code. */
async function deliverAndStop(serve: Serve): Promise<number | string | null> {
  using target = await slowReceiver();
  const deliver = async () => {
    const delivery = target.delivery();
    await serve.submit({ destination: target.url });
    await delivery;
  };
  await deliver();
  target.answer();
  await deliver();
  serve.child.kill('SIGTERM');
  // It listens no more, and the delivery is still under way.
  await eventually(
    () => serve.status('/health/live').catch(() => 0),
    (status) => status === 0,
  );
  if (serve.child.exitCode !== null) throw new Error('It did not wait for the delivery.');
  target.answer();
  return await serve.exit;
}

test('a service whose reader has gone goes on, counts what it could not say, and stops well', async () => {
  using folder = new TemporaryFolder();
  await using serve = await Serve.start(folder, 'pipe');
  serve.child.stdout!.destroy();
  serve.child.stderr!.destroy();
  await serve.talk(0, 20);
  expect(await serve.lost()).toBeGreaterThan(0);
  expect(await deliverAndStop(serve)).toBe(0);
});

test.skipIf(!existsSync(full))(
  'a service whose log is on a full disk goes on, counts, and stops well',
  async () => {
    using folder = new TemporaryFolder();
    const fd = openSync(full, 'w');
    await using serve = await Serve.start(folder, fd);
    closeSync(fd);
    expect(serve.child.exitCode).toBeNull();
    await serve.talk(0, 20);
    expect(await serve.lost()).toBeGreaterThan(20);
    expect(await deliverAndStop(serve)).toBe(0);
  },
);

test('a service whose log nobody reads keeps a bounded part of it, and tells of the rest later', async () => {
  using folder = new TemporaryFolder();
  await using serve = await Serve.start(folder, 'pipe');
  let from = 0;
  while ((await serve.lost()) === 0) await serve.talk(from, (from += 400));
  // From now on nothing more is kept: each of these would write a line or two.
  const lost = await serve.lost();
  await serve.talk(from, from + 100);
  expect(await serve.lost()).toBeGreaterThanOrEqual(lost + 100);

  const told = new Promise<number>((resolve) => {
    createInterface({ input: serve.child.stdout! }).on('line', (line) => {
      const { msg, lines } = JSON.parse(line) as { msg: string; lines?: number };
      if (msg.startsWith('lines of this log were lost')) resolve(lines!);
    });
  });
  expect(await told).toBeGreaterThanOrEqual(lost + 100);
  expect(await deliverAndStop(serve)).toBe(0);
});

test('a service that is stopped while nobody reads its log ends well', async () => {
  using folder = new TemporaryFolder();
  await using serve = await Serve.start(folder, 'pipe');
  for (let from = 0; (await serve.lost()) === 0; from += 400) await serve.talk(from, from + 400);
  expect(await deliverAndStop(serve)).toBe(0);
});

test.skipIf(!existsSync(full))('a command whose output cannot be written says so and fails', () => {
  const fd = openSync(full, 'w');
  const { status, stderr } = spawnSync(process.execPath, [main, '--help'], {
    stdio: ['ignore', fd, 'pipe'],
    encoding: 'utf8',
  });
  closeSync(fd);
  expect(status).toBe(1);
  expect(stderr).toContain('The output cannot be written');
});

test('a command whose reader has seen enough ends without a word', async () => {
  const child = spawn(process.execPath, [main, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [code] = (await once(child, 'close')) as [number];
  expect([code, said]).toEqual([0, '']);
});

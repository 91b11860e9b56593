/** The guide from RabbitMQ dead letters to Redrive, followed word by word by a shell: only addresses, ids and delays are others. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, type RabbitmqServer, startRabbitmq } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { connect } from 'amqplib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { blocksIn, examplesIn, isPrinted } from './examples.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const main = join(root, 'packages/server/src/cli/main.ts');
const page = 'docs/guides/rabbitmq-dead-letters.md';
const guide = readFileSync(join(root, page), 'utf8');
const shell = blocksIn(page, guide, 'sh').map(({ code }) => code);
const programs = examplesIn(page, guide);

describeService('RabbitMQ', () => {
  const home = mkdtempSync(join(tmpdir(), 'redrive-guide-'));
  /** Below the checkout, so that the programs find what they import. */
  const folder = join(root, 'test/docs/.examples', 'dead-letters');
  let server: RabbitmqServer;
  let port: number;
  let service: ChildProcess;

  beforeAll(async () => {
    mkdirSync(folder, { recursive: true });
    server = await startRabbitmq();
    port = await freePort();
    const start = shell.find((code) => code.includes('redrive serve'))!;
    service = command(start);
    await said(service, '"msg":"ready"');
  });
  afterAll(async () => {
    const gone = once(service, 'exit');
    service.kill('SIGTERM');
    await gone;
    await server.stop();
    rmSync(home, { recursive: true, force: true });
    rmSync(folder, { recursive: true, force: true });
  });

  it('starts as it says, and is ready', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`);
    expect(answer.status).toBe(200);
  });

  it('retries what a consumer refuses twice, and the consumer loses no acknowledgement', async () => {
    await program(programs.find(({ code }) => code.includes('channel.nack'))!);
    expect(await ready('orders')).toBe(0);
  });

  it('takes in what a consumer publishes to the exchange itself', async () => {
    await program(programs.find(({ code }) => code.includes('x-exception-stacktrace'))!);
    expect(await items()).toMatchObject([{ queue: 'orders', error: { class: 'business' } }]);
  });

  it('takes in a RetryMessage over HTTP, and brings it to its queue', async () => {
    const post = shell.find((code) => code.includes('"original_queue"'))!;
    expect(JSON.parse(await output(post))).toMatchObject({ queue: 'orders', status: 'pending' });
    await expect.poll(() => ready('orders'), { timeout: 20_000 }).toBe(1);
    const show = await output('redrive show 7c1d9a52-4e0b-4b7a-8f63-2d5e91c0a8b4');
    expect(show).toContain('handed to queue:orders, not heard of since');
  });

  it('lets an operator look at what never works, and send it again', async () => {
    const review = shell.find((code) => code.includes('redrive review groups'))!;
    // One to be replayed by itself, and one for the bulk job.
    await program(programs.find(({ code }) => code.includes('x-exception-stacktrace'))!);
    const [first] = await items();
    const printed = await output(`set -e\n${review.replaceAll(/\b17\b/g, String(first?.id))}`);
    for (const words of ['ValidationError', 'is sent again', 'Job 1 has begun'])
      expect(printed).toContain(words);
    await expect.poll(() => ready('orders'), { timeout: 20_000 }).toBe(3);
    expect(await items()).toEqual([]);
  });

  async function items(): Promise<{ id: number }[]> {
    const lines = await output('redrive review list --queue orders --json');
    const found = lines.split('\n').filter((line) => line.startsWith('{'));
    return found.map((line) => JSON.parse(line) as { id: number });
  }

  function command(code: string): ChildProcess {
    const here = code
      .replaceAll('8086', String(port))
      .replaceAll(/amqp:\/\/guest:guest@localhost:5672/g, server.url)
      // The guide says that one may leave it out.
      .replace(/^export DATABASE_URL=.*\n/m, '');
    const redrive = `redrive() { "${process.execPath}" "${main}" "$@"; }\n`;
    return spawn('bash', ['-c', redrive + here.replace(/^redrive serve/m, 'exec_serve')], {
      cwd: home,
      env: {
        ...process.env,
        PATH: `${join(process.execPath, '..')}:${process.env['PATH']}`,
        HTTP_PORT: String(port),
        REDRIVE_URL: `http://127.0.0.1:${port}`,
        BASE_DELAY_MS: '20',
        REDRIVE_LOG_FORMAT: 'json',
        // The shell becomes the service, so that a signal reaches it.
        'BASH_FUNC_exec_serve%%': `() { exec "${process.execPath}" "${main}" serve; }`,
      },
    });
  }

  async function output(code: string): Promise<string> {
    const child = command(code);
    let text = '';
    child.stdout?.on('data', (part: Buffer) => (text += part.toString()));
    child.stderr?.on('data', (part: Buffer) => (text += part.toString()));
    const [status] = (await once(child, 'close')) as [number];
    expect(status, text).toBe(0);
    return text;
  }

  async function program({ code, prints }: (typeof programs)[number]): Promise<void> {
    const file = join(folder, 'program.ts');
    writeFileSync(file, `${code}\nexport {};\n`);
    const printed = await output(`RABBITMQ_URL=${server.url} "${process.execPath}" "${file}"`);
    for (const promise of prints) expect(isPrinted(promise, printed), printed).toBe(true);
  }

  /** How many messages wait in a queue, those that nobody acknowledged included. */
  async function ready(queue: string): Promise<number> {
    const connection = await connect(server.url);
    const channel = await connection.createChannel();
    const { messageCount } = await channel.checkQueue(queue);
    await connection.close();
    return messageCount;
  }
});

function said(child: ChildProcess, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    const look = (part: Buffer) => {
      text += part.toString();
      if (text.includes(words)) resolve();
    };
    child.stdout?.on('data', look);
    child.stderr?.on('data', look);
    child.once('exit', () => reject(new Error(`It ended:\n${text}`)));
  });
}

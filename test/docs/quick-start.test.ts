import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { blocksIn } from './examples.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const main = join(root, 'packages/server/src/cli/main.ts');
const children: ChildProcess[] = [];
const home = mkdtempSync(join(tmpdir(), 'redrive-quick-start-'));

afterAll(async () => {
  for (const child of children.filter(({ exitCode }) => exitCode === null)) {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }
  rmSync(home, { recursive: true, force: true });
});

/** The commands of the README as they stand there, but for the ports and the pace. */
it(
  'the quick start brings a message through its retries, as it says',
  { timeout: 60_000 },
  async () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const part = /<!-- run -->(.*)<!-- \/run -->/s.exec(readme)?.[1] ?? '';
    const [submit, receiver, look] = blocksIn('README.md', part, 'sh').map(({ code }) => code);
    const [port, receiverPort] = [await freePort(), await freePort()];
    const here = (code: string | undefined) =>
      (code ?? '').replaceAll('8086', String(port)).replaceAll('9000', String(receiverPort));

    const service = start(process.execPath, [main, 'serve'], {
      HTTP_PORT: String(port),
      BASE_DELAY_MS: '100',
      REDRIVE_LOG_FORMAT: 'json',
    });
    await said(service, '"ready"');
    expect(JSON.parse(await run(here(submit)))).toMatchObject({ status: 'pending' });
    const criterion = sectionOf(readme, 'A criterion for a workflow');
    const [ask] = blocksIn('README.md', criterion, 'sh');
    const [answer] = blocksIn('README.md', criterion, 'json');
    expect(await run(here(ask?.code))).toBe(answer?.code.trim());
    const listening = start('bash', ['-c', here(receiver)]);
    await said(listening, 'failed');
    await said(listening, 'worked');
    await expect
      .poll(async () => JSON.parse(await run(here(look))) as unknown, { timeout: 20_000 })
      .toMatchObject({ status: 'done', attempts: expect.any(Array) });
  },
);

/** As above, with a first delay of 50 ms instead of 10 s. */
it(
  'the guide to notifications brings one through its retry, as it says',
  { timeout: 60_000 },
  async () => {
    const page = 'docs/guides/notifications.md';
    const guide = readFileSync(join(root, page), 'utf8');
    const shell = (heading: string) =>
      blocksIn(page, sectionOf(guide, heading), 'sh').map(({ code }) => code);
    const [port, receiverPort] = [await freePort(), await freePort()];
    const here = (code: string | undefined) =>
      (code ?? '')
        .replaceAll('8086', String(port))
        .replaceAll('9000', String(receiverPort))
        .replace('npm start', `exec "${process.execPath}" "${main}" serve`);
    const config = join(home, 'fast.json');
    const policies = { 'notification.critical': { base: '50ms', cap: '50ms' } };
    writeFileSync(config, JSON.stringify({ policies }));

    const [receiver, serve] = shell('Start');
    const listening = start('bash', ['-c', here(receiver)]);
    const delivered = said(listening, 'attempt 2 of ride-42 to phone-1');
    const service = start('bash', ['-c', here(serve)], {
      HTTP_PORT: String(port),
      REDRIVE_CONFIG: config,
      REDRIVE_DATA_DIR: join(home, 'notifications'),
      REDRIVE_LOG_FORMAT: 'json',
    });
    await said(service, '"ready"');
    const [report] = shell('Report');
    expect(await run(here(report))).toContain('"decision":"scheduled"');
    await delivered;
    const [look] = shell('Status');
    await expect
      .poll(() => run(here(look)), { timeout: 20_000 })
      .toMatch(/"status":"delivered".*"attempts":\[.*"ready":true/s);
  },
);

it(
  'the guide to fallbacks decides and plays its policy, as it says',
  { timeout: 60_000 },
  async () => {
    const page = 'docs/guides/fallbacks.md';
    const guide = readFileSync(join(root, page), 'utf8');
    const [serve, decide] = blocksIn(page, sectionOf(guide, 'In the service'), 'sh');
    const [commands] = blocksIn(page, sectionOf(guide, 'On the command line'), 'sh');
    const port = await freePort();
    const redrive = `redrive() { "${process.execPath}" "${main}" "$@"; }`;
    const serving = `exec "${process.execPath}" "${main}" serve`;
    const command = (serve?.code ?? '').replace('redrive serve', serving);
    const service = start('bash', ['-c', command], {
      HTTP_PORT: String(port),
      REDRIVE_DATA_DIR: join(home, 'routing-data'),
      REDRIVE_LOG_FORMAT: 'json',
    });
    await said(service, '"ready"');
    const decision = await run((decide?.code ?? '').replaceAll('8086', String(port)));
    expect(JSON.parse(decision)).toMatchObject({ result: 'ok', provider: 'primary' });
    const printed = await run(`${redrive}\n${commands?.code}`);
    expect(printed).toContain('routing/llm.json: good');
    const drawn = /^Policy llm 1\.0.*?exhausted$/ms.exec(guide)?.[0];
    expect(printed).toContain(drawn);
  },
);

it('the reference of the criteria evaluates on the command line, as it says', async () => {
  const page = 'docs/reference/criteria.md';
  const part = sectionOf(readFileSync(join(root, page), 'utf8'), 'On the command line');
  const [command] = blocksIn(page, part, 'sh');
  const [printed] = blocksIn(page, part, 'text');
  const redrive = `redrive() { "${process.execPath}" "${main}" "$@"; }`;
  expect(await run(`${redrive}\n${command?.code}`)).toBe(printed?.code);
});

/** From its heading to the next. */
function sectionOf(markdown: string, heading: string): string {
  return markdown.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
}

function start(program: string, args: string[], env: Record<string, string> = {}): ChildProcess {
  const path = `${join(process.execPath, '..')}:${process.env['PATH']}`;
  const child = spawn(program, args, { cwd: home, env: { ...process.env, PATH: path, ...env } });
  children.push(child);
  return child;
}

function run(command: string): Promise<string> {
  const child = start('bash', ['-c', command]);
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.on('error', reject);
    child.on('close', () => resolve(output));
  });
}

function said(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    const hear = (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes(text)) resolve();
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    child.once('exit', () => reject(new Error(`it ended without a word of '${text}': ${output}`)));
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Io } from './command.ts';
import { firstWords } from './directory.ts';
import { run } from './run.ts';

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-run-'));
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

async function redrive(line: string, env: Record<string, string> = {}) {
  let out = '';
  let err = '';
  const io: Io = {
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env,
    cwd,
    isTty: false,
    columns: 80,
    input: () => Promise.resolve(new Uint8Array()),
  };
  const code = await run(line.split(' ').filter(Boolean), io);
  return { code, out, err };
}

describe('redrive', () => {
  it('says its version', async () => {
    expect(await redrive('--version')).toEqual({ code: 0, out: '0.1.0\n', err: '' });
  });

  it('teaches, whichever way one asks', async () => {
    const { code, out } = await redrive('--help');
    expect(code).toBe(0);
    for (const word of firstWords) expect(out).toContain(`\n  ${word}`);
    expect(await redrive('help')).toMatchObject({ code: 0, out });
    expect(await redrive('')).toMatchObject({ code: 2, err: out });
    expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  it.each(firstWords)('has help for %s, with examples that begin with redrive', async (word) => {
    const { code, out } = await redrive(`help ${word}`);
    expect(code).toBe(0);
    expect(out).toContain(`redrive ${word}`);
    expect(await redrive(`${word} --help`)).toMatchObject({ code: 0 });
  });

  it.each([
    ['notifications', 'POST and GET /api/v1/notifications'],
    ['notification', 'POST and GET /api/v1/notifications'],
    ['inbox list', 'redrive review'],
    ['start', 'redrive serve'],
  ])('says where %s is', async (line, where) => {
    const { code, err } = await redrive(line);
    expect(code).toBe(2);
    expect(err).toContain(where);
    expect((await redrive('--help')).out).toContain('/api/v1/notifications');
  });

  it('names every wrong setting at the start, and the misspelt ones beside them', async () => {
    const { code, err } = await redrive('serve', {
      HTTP_PORT: 'abc',
      REDRIVE_RATE_LIMIT: '-1',
      RABBITMQ_URL: 'foo',
      NOTIFICATION: 'on',
    });
    expect(code).toBe(78);
    expect(err).toContain('The configuration has 3 faults:');
    for (const name of ['HTTP_PORT', 'REDRIVE_RATE_LIMIT', 'RABBITMQ_URL']) {
      expect(err).toContain(`  ${name}: `);
    }
    expect(err).toContain('Did you mean NOTIFICATIONS?');
  });

  it('knows what was meant', async () => {
    expect(await redrive('serv')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Did you mean redrive serve?'),
    });
    expect(await redrive('config chek')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Did you mean redrive config check?'),
    });
    expect(await redrive('token --rolle x')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Did you mean --role?'),
    });
  });

  it('tells errors as JSON where answers are JSON', async () => {
    const { code, err } = await redrive('move --json');
    expect(code).toBe(78);
    expect(JSON.parse(err)).toEqual({
      error: {
        code: 'MOVE_NEEDS_DATABASE',
        message: 'DATABASE_URL is not set: it says where to move to.',
      },
    });
    const faulty = await redrive('list --limit 0 --json');
    expect(faulty.code).toBe(2);
    expect(JSON.parse(faulty.err)).toEqual({
      error: { code: 'USAGE', message: "--limit: '0' is not a whole number from 1 to 100000." },
    });
  });
});

describe('redrive config check', () => {
  it('shows what is set, and by whom', async () => {
    const { code, out } = await redrive('config check', { HTTP_PORT: '9000' });
    expect(code).toBe(0);
    expect(out).toContain('HTTP_PORT  9000  the environment\n');
    expect(out).not.toContain('SERVICE_NAME');
    expect((await redrive('config check --all')).out).toMatch(
      /SERVICE_NAME +retry-scheduler +default/,
    );
  });

  it('ends with 78 and every fault', async () => {
    const env = { HTTP_PORT: 'x', REDRIVE_AUDIT: 'y', REDRIVE_NONE: 'z' };
    const { code, err } = await redrive('config check', env);
    expect(code).toBe(78);
    expect(err).toContain('2 faults');
    expect(err).toContain('warning: REDRIVE_NONE');
    const asJson = await redrive('config check --json', env);
    expect(asJson.code).toBe(78);
    expect(JSON.parse(asJson.out)).toMatchObject({
      ok: false,
      faults: [{ name: 'HTTP_PORT' }, { name: 'REDRIVE_AUDIT' }],
    });
  });
});

describe('redrive token', () => {
  it('makes one', async () => {
    const { code, out } = await redrive('token ops --role reader --json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ name: 'ops', role: 'reader' });
    expect((await redrive('token ops')).out).toContain('REDRIVE_TOKENS=ops:operator:');
    expect(await redrive('token a:b')).toMatchObject({ code: 2 });
  });
});

describe('redrive migrate', () => {
  it('makes the tables of the file, and says what there is', async () => {
    expect((await redrive('migrate --check')).out).toContain('schema none.');
    expect((await redrive('migrate')).out).toMatch(/from schema none to \d+\./);
    expect((await redrive('migrate')).out).toMatch(/schema \d+, up to date\./);
    expect(JSON.parse((await redrive('migrate --json')).out)).toEqual({
      before: expect.any(Number),
      after: expect.any(Number),
    });
  });

  it('says so when the database is away', async () => {
    const { code, err } = await redrive('migrate', { DATABASE_URL: 'postgres://127.0.0.1:1/x' });
    expect(code).toBe(69);
    expect(err).toContain('cannot be reached');
  });
});

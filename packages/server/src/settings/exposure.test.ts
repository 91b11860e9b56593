import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Io } from '../cli/command.ts';
import { settingsOf } from '../cli/settings.ts';
import { call } from '../cli/stage.test.ts';
import { exposures } from './exposure.ts';
import { readSettings } from './read.ts';

const isPosix = process.getuid !== undefined;
const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const isRoot = process.getuid?.() === 0;

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-exposure-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function write(name: string, text: string, mode: number): void {
  writeFileSync(join(cwd, name), text);
  chmodSync(join(cwd, name), mode);
}

describe.runIf(isPosix)('a file', () => {
  it.each([0o644, 0o600, 0o755, 0o664])(
    'that only its owner and his own group may write is in order: %o',
    async (mode) => {
      write('.env', '', mode);
      expect(await exposures(cwd, ['.env'])).toEqual([]);
    },
  );

  it.each([
    ['another group', 0o664, '0664', 1],
    ['everybody', 0o602, '0602', 0],
  ])('that %s may write is told, and how to end that', async (_, mode, octal, more) => {
    write('.env', '', mode);
    expect(await exposures(cwd, ['.env'], { uid: own.uid, gid: own.gid + more })).toEqual([
      `.env may be written by others (mode ${octal}), who decide by it what Redrive does. Take that away: chmod go-w .env`,
    ]);
  });

  it('of somebody else is told', async () => {
    write('.env', '', 0o644);
    const owner = isRoot ? 1001 : process.getuid!();
    if (isRoot) chownSync(join(cwd, '.env'), owner, owner);
    const { gid } = own;
    expect(await exposures(cwd, ['.env'], { uid: owner, gid })).toEqual([]);
    expect(await exposures(cwd, ['.env'], { uid: owner + 1, gid })).toEqual([
      `.env belongs to another user (uid ${owner}), who decides by it what Redrive does. Give it to yourself: chown ${owner + 1} .env`,
    ]);
  });

  it.runIf(isRoot)('of root is in order', async () => {
    write('.env', '', 0o644);
    expect(await exposures(cwd, ['.env'], { uid: 1000, gid: 1000 })).toEqual([]);
  });

  it('that is not there is none', async () => {
    expect(await exposures(cwd, ['.env', 'redrive.config.ts'])).toEqual([]);
  });
});

describe.runIf(isPosix)('a configuration that others may write', () => {
  it('is a warning, with each of its files', async () => {
    write('.env', 'HTTP_PORT=8099\n', 0o666);
    write('redrive.config.json', '{}', 0o666);
    const { ok, warnings } = await readSettings({ env: {}, cwd });
    expect(ok).toBe(true);
    expect(warnings).toEqual([
      expect.stringContaining('chmod go-w .env'),
      expect.stringContaining('chmod go-w redrive.config.json'),
    ]);
  });

  it('is one also where the file has faults, or was named', async () => {
    write('other.json', '{"prot":1}', 0o666);
    const { ok, warnings } = await readSettings({ env: {}, cwd, config: 'other.json' });
    expect([ok, warnings]).toEqual([false, [expect.stringContaining('chmod go-w other.json')]]);
  });

  it('is said by redrive config check', async () => {
    write('.env', 'HTTP_PORT=8099\n', 0o666);
    const { code, err } = await call('config check', { cwd });
    expect([code, err]).toEqual([0, expect.stringMatching(/^warning: \.env may be written by/)]);
  });

  it('is said where redrive serve reads its settings', async () => {
    write('redrive.config.json', '{}', 0o666);
    let err = '';
    const io = { env: {}, cwd, isTty: false, err: (text: string) => void (err += text) };
    await settingsOf(io as unknown as Io);
    expect(err).toMatch(/^warning: redrive\.config\.json may be written by others \(mode 0666\)/);
  });
});

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Io } from '../cli/command.ts';
import { settingsOf } from '../cli/settings.ts';
import { call } from '../cli/stage.test.ts';
import { exposureOf, exposures } from './exposure.ts';
import { readSettings } from './read.ts';

const isPosix = process.getuid !== undefined;

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-exposure-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function write(name: string, text: string, mode: number): void {
  writeFileSync(join(cwd, name), text);
  chmodSync(join(cwd, name), mode);
}

describe('a file', () => {
  it.each([
    ['of its own user', 0o100644, 1000],
    ['of root', 0o100644, 0],
    ['that nobody else may even read', 0o100600, 1000],
  ])('%s is in order', (_, mode, uid) => {
    expect(exposureOf('.env', { mode, uid }, 1000)).toEqual([]);
  });

  it.each([
    ['its group', 0o100664, '0664'],
    ['everybody', 0o100602, '0602'],
  ])('that %s may write is told, and how to end that', (_, mode, octal) => {
    expect(exposureOf('.env', { mode, uid: 1000 }, 1000)).toEqual([
      `.env may be written by others (mode ${octal}), who decide by it what Redrive does. Take that away: chmod go-w .env`,
    ]);
  });

  it('of somebody else is told, also to root', () => {
    expect(exposureOf('.env', { mode: 0o100644, uid: 1001 }, 0)).toEqual([
      '.env belongs to another user (uid 1001), who decides by it what Redrive does. Give it to yourself: chown 0 .env',
    ]);
    expect(exposureOf('.env', { mode: 0o100666, uid: 1001 }, 1000)).toHaveLength(2);
  });

  it('that is not there is none', async () => {
    expect(await exposures(cwd, ['.env', 'redrive.config.ts'])).toEqual([]);
  });
});

describe.runIf(isPosix)('a configuration that others may write', () => {
  it('is a warning, with each of its files', async () => {
    write('.env', 'HTTP_PORT=8099\n', 0o666);
    write('redrive.config.json', '{}', 0o664);
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

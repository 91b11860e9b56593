import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cacheFolder } from './cache.ts';
import { findProgram, versionOf } from './find.ts';
import { childrenOf } from './processes.ts';
import { canRead } from './user.ts';

const folder = mkdtempSync(join(tmpdir(), 'redrive-parts-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the cache folder', () => {
  it.each([
    [{ REDRIVE_SERVICES_CACHE: '/cache' }, 'linux', '/cache'],
    [{ XDG_CACHE_HOME: '/xdg' }, 'linux', '/xdg/redrive/services'],
    [{}, 'linux', join(homedir(), '.cache/redrive/services')],
    [{}, 'darwin', join(homedir(), 'Library/Caches/redrive/services')],
  ] as const)('with %o on %s is %s', (env, platform, path) => {
    expect(cacheFolder(env, platform)).toBe(path);
  });
});

describe('a program', () => {
  const path = join(folder, 'server');
  writeFileSync(path, '#!/bin/sh\necho server version 7.2.1 of today\n', { mode: 0o755 });

  it('is found with its version', () => {
    expect(findProgram('server', [folder])).toEqual({ path, version: '7.2.1' });
  });

  it('is not found when its version is another', () => {
    expect(findProgram('server', [folder], (version) => version.startsWith('8.'))).toBeUndefined();
  });

  it('has no version when it does not run', () => {
    writeFileSync(join(folder, 'broken'), 'no program', { mode: 0o755 });
    expect(versionOf(join(folder, 'broken'))).toBeUndefined();
  });
});

describe('a file', () => {
  const stranger = { name: 'stranger', uid: 54_321, gid: 54_321 };
  const inner = join(folder, 'a', 'b');
  mkdirSync(inner, { recursive: true });
  const path = join(inner, 'file');
  writeFileSync(path, '');

  it.each([
    [0o755, 0o644, true],
    [0o711, 0o644, true],
    [0o700, 0o644, false],
    [0o755, 0o600, false],
  ])('in a folder of mode %o, itself of mode %o, is open to a stranger: %s', (above, own, open) => {
    chmodSync(folder, 0o755);
    chmodSync(join(folder, 'a'), above);
    chmodSync(path, own);
    expect(canRead(stranger, path)).toBe(open);
  });
});

it('finds the children of a process', async () => {
  const child = spawn(process.execPath, ['--eval', 'process.stdin.resume()']);
  expect(childrenOf(process.pid)).toContain(child.pid);
  child.stdin.end();
  await once(child, 'exit');
  expect(childrenOf(process.pid)).not.toContain(child.pid);
});

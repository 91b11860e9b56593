import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'simulate-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('npm run simulate', () => {
  it('draws, and writes the picture where the user stands', () => {
    const { status, stdout, stderr } = run('--clients', '20', '--svg', 'load.svg');
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toContain('The picture is in load.svg.');
    expect(existsSync(join(folder, 'load.svg'))).toBe(true);
  });

  it('prints the numbers as JSON, and nothing else', () => {
    const { stdout } = run('--clients', '20', '--json', '--jitters', 'none');
    const { policy, simulations } = JSON.parse(stdout) as Record<string, Record<string, unknown>>;
    expect(policy).toMatchObject({ maxAttempts: 4 });
    expect(Object.keys(simulations!)).toEqual(['full', 'none']);
  });

  it('teaches', () => {
    expect(run('--help')).toMatchObject({ status: 0, stderr: '' });
  });

  it.each([
    [['--clints', '3'], '--clints: there is no such option. Did you mean --clients?'],
    [['nowhere.json'], 'There is no file nowhere.json'],
  ])('refuses %j with a message and exit code 2, without a stack', (args, message) => {
    const { status, stderr } = run(...args);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});

function run(...args: string[]) {
  const main = join(import.meta.dirname, 'main.ts');
  const env = { ...process.env, INIT_CWD: folder, FORCE_COLOR: '0' };
  return spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', env });
}

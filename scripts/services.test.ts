import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { services } from '../test/services/index.ts';
import { describeService } from '../test/services/vitest.ts';

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const program = join(import.meta.dirname, 'services.ts');
  return spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
}

describe('scripts/services', () => {
  it('lists every server, found or missing', () => {
    const { status, stdout } = run('list');
    expect(status).toBe(0);
    for (const { name } of services)
      expect(stdout).toMatch(new RegExp(`^[✓✗] ${name.replaceAll(/[()]/g, '\\$&')} `, 'm'));
  });

  describeService('PostgreSQL 18', () => {
    it('gets PostgreSQL 18 by finding what npm brought', () => {
      const { status, stdout } = run('get', 'PostgreSQL 18');
      expect(stdout).toMatch(/^✓ PostgreSQL 18 {2}18\.\d+ {2}\S+\n$/);
      expect(status).toBe(0);
    });
  });

  it('explains itself', () => {
    const { status, stdout } = run('--help');
    expect(stdout).toContain('REDRIVE_SERVICES_CACHE');
    expect(status).toBe(0);
  });

  it.each([
    [[], 'usage: scripts/services'],
    [['fetch'], 'usage: scripts/services'],
    [['get', 'Oracle'], 'no server named Oracle'],
  ])('refuses %j', (args, words) => {
    const { status, stderr } = run(...args);
    expect(stderr).toContain(words);
    expect(status).toBe(2);
  });
});

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');

/** The tests of Redis, in a run of their own. */
function run(env: Record<string, string>): { status: number | null; output: string } {
  const { PATH } = process.env;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [vitest, 'run', 'test/services/redis.test.ts'],
    { cwd: root, encoding: 'utf8', env: { PATH, ...env } },
  );
  return { status, output: stdout + stderr };
}

describe('a missing server', () => {
  it('skips its tests, and says so below the summary', () => {
    const { status, output } = run({ REDRIVE_SKIP_SERVICES: 'Redis' });
    expect(status).toBe(0);
    expect(output).toMatch(
      /2 skipped[^]*SKIPPED for want of a server[^]*Redis: 2 tests in 1 file\. REDRIVE_SKIP_SERVICES leaves it out\. To have it: unset that/,
    );
  });

  it('fails where servers are required, and says what to do', () => {
    const { status, output } = run({
      REDRIVE_SKIP_SERVICES: 'Redis',
      REDRIVE_REQUIRE_SERVICES: '1',
    });
    expect(status).toBe(1);
    expect(output).toContain('Redis is required: REDRIVE_SKIP_SERVICES leaves it out. unset that');
  });
});

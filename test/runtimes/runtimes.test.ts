/** The same program on every server runtime that this machine has. Node.js is always there; the others are skipped by name. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { MissingService } from '../services/vitest.ts';

const program = join(import.meta.dirname, 'program.ts');

interface Server {
  name: 'Node.js' | 'Bun' | 'Deno';
  command: string;
  args: string[];
}

const servers: Server[] = [
  { name: 'Node.js', command: process.execPath, args: [] },
  { name: 'Bun', command: process.env['REDRIVE_BUN'] ?? 'bun', args: ['run'] },
  {
    name: 'Deno',
    command: process.env['REDRIVE_DENO'] ?? 'deno',
    args: ['run', '--no-check', '--allow-net', '--allow-env'],
  },
];

describe.each(servers)('on $name', ({ name, command, args }) => {
  const isThere = spawnSync(command, ['--version']).status === 0;
  const missingService: MissingService | undefined =
    isThere || name === 'Node.js'
      ? undefined
      : {
          name,
          why: `there is no ${command}`,
          wayOut: `install it, or name its program in REDRIVE_${name.toUpperCase()}`,
        };

  it.skipIf(!isThere)(
    'fetches, retries, and tells network errors from mistakes',
    { meta: missingService ? { missingService } : {} },
    () => {
      const { stdout, stderr } = spawnSync(command, [...args, program], { encoding: 'utf8' });
      const outcomes = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { name: string; outcome: string });
      expect(outcomes.filter(({ outcome }) => outcome !== 'ok')).toEqual([]);
      expect(outcomes, stderr).toHaveLength(14);
    },
  );
});

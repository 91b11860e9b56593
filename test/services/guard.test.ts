import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { describeService } from './vitest.ts';

const program = `
  import { dirname } from 'node:path';
  import pg from 'pg';
  import { startPostgres } from ${JSON.stringify(join(import.meta.dirname, 'index.ts'))};
  const { url } = await startPostgres({ version: 18 });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('SHOW data_directory');
  console.log(JSON.stringify({ url, folder: dirname(rows[0].data_directory) }));
`;

describeService('PostgreSQL 18', () => {
  it('leaves nothing behind when the process that started it is killed', async () => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const { folder, url } = JSON.parse(line) as { folder: string; url: string };
    expect(existsSync(folder)).toBe(true);

    child.kill('SIGKILL');
    // The guard holds the child's standard error, so that it closes when the guard is done.
    child.stderr.resume();
    await once(child, 'close');

    expect(existsSync(folder)).toBe(false);
    await expect(fetch(url.replace(/^.*@/, 'http://'))).rejects.toThrow('fetch failed');
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/**
 * Callers of one key in several processes, all at once: how often the work was done, and what each of them got. The
 * effect is a byte at the end of a file.
 */
export async function raceInProcesses(
  { module, create }: { module: string; create: string },
  processes: number,
  callers: number,
): Promise<{ effects: number; results: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-race-'));
  const file = join(folder, 'effects');
  writeFileSync(file, '');
  const text = `
    import { appendFileSync } from 'node:fs';
    import { once } from 'node:events';
    import { idempotent } from 'redrive';
    import * as adapter from ${JSON.stringify(module)};
    const store = ${create};
    // The store is open, and its tables are there, before the race begins.
    await store.read('warm-up');
    console.log('ready');
    await once(process.stdin, 'data');
    const work = async () => {
      appendFileSync(${JSON.stringify(file)}, 'x');
      await new Promise((resolve) => setTimeout(resolve, 20));
      return String(process.pid);
    };
    const calls = Array.from({ length: ${callers} }, () => idempotent(store, 'race', work));
    console.log(JSON.stringify(await Promise.all(calls)));
    await store.close?.();
    process.exit(0);
  `;
  const children = Array.from({ length: processes }, () =>
    spawn(process.execPath, ['--input-type=module', '--eval', text], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  );
  try {
    const answers = children.map((child) => {
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      return { child, next: async () => (await lines.next()).value };
    });
    for (const { next } of answers) {
      if ((await next()) !== 'ready') throw new Error('A process of the race did not start.');
    }
    for (const { child } of answers) child.stdin.write('go\n');
    const results = await Promise.all(
      answers.map(async ({ next }) => JSON.parse((await next()) ?? '[]') as string[]),
    );
    return { effects: readFileSync(file, 'utf8').length, results: results.flat() };
  } finally {
    for (const child of children) {
      if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

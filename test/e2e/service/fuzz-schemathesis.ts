/** Schemathesis, from PyPI: found in a folder of its own outside the checkout, or put there. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../services/cache.ts';

const VERSION = '4.32.5';
const PATIENCE_MS = 120_000;

export type Found =
  | { state: 'found'; path: string }
  | { state: 'missing'; why: string; wayOut: string };

export interface Run {
  code: number;
  output: string;
}

/** Makes it where it is missing. Throws nothing: a machine without Python, or without PyPI, has none. */
export async function findSchemathesis(): Promise<Found> {
  const folder = join(cacheFolder(process.env, process.platform), `schemathesis-${VERSION}`);
  const bin = join(folder, process.platform === 'win32' ? 'Scripts' : 'bin');
  const path = join(bin, 'schemathesis');
  // Written last: a folder without it was left half made.
  const mark = join(folder, 'complete');
  if (existsSync(mark)) return { state: 'found', path };
  try {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(dirname(folder), { recursive: true });
    await run('python3', ['-m', 'venv', folder]);
    await run(join(bin, 'python'), ['-m', 'pip', 'install', '--quiet', `schemathesis==${VERSION}`]);
    writeFileSync(mark, '');
    return { state: 'found', path };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    const [why = ''] = (error as Error).message.trim().split('\n').slice(-1);
    const wayOut = `Python 3.10 or later with venv, and PyPI, so that \`pip install schemathesis==${VERSION}\` works`;
    return { state: 'missing', why: `it could not be installed (${why.trim()})`, wayOut };
  }
}

/** Its exit code, and all that it said. */
export async function runSchemathesis(
  path: string,
  args: readonly string[],
  cwd: string,
): Promise<Run> {
  // Nothing of this machine's configuration, and lines that are not cut.
  const env = { PATH: process.env['PATH'], HOME: cwd, COLUMNS: '160', PYTHONUTF8: '1' };
  try {
    const { stdout } = await promisify(execFile)(path, [...args], {
      cwd,
      env,
      timeout: PATIENCE_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    return { code: 0, output: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string };
    const output = `${stdout ?? ''}\n${stderr ?? ''}`;
    return { code: typeof code === 'number' ? code : -1, output };
  }
}

async function run(command: string, args: readonly string[]): Promise<void> {
  await promisify(execFile)(command, [...args], { timeout: PATIENCE_MS });
}

/** `redrive`, as a process of its own: what it says, and how it ends. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { createInterface } from 'node:readline';

const main = join(import.meta.dirname, '../../../packages/server/src/cli/main.ts');
const LONGEST_WAIT_MS = 40_000;

export type LogLine = { msg?: string; url?: string; [field: string]: unknown };

export class TemporaryFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'redrive-start-'));

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** `redrive serve`, listening and perhaps not ready, where no .env and no data of anybody else is. */
export async function serveAlone(
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<{ child: RedriveProcess; folder: TemporaryFolder; url: string }> {
  const folder = new TemporaryFolder();
  const child = new RedriveProcess(['serve', ...args], folder.path, {
    HTTP_PORT: '0',
    REDRIVE_LOG_FORMAT: 'json',
    ...env,
  });
  try {
    return { child, folder, url: await child.url() };
  } catch (error) {
    await child[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
    throw error;
  }
}

export class RedriveProcess implements AsyncDisposable {
  readonly lines: string[] = [];
  /** What it said on its error output. */
  err = '';
  readonly exit: Promise<number | NodeJS.Signals>;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #waiting = new Set<() => void>();
  #isOver = false;

  /** `cwd` is where it looks for everything: nothing of this machine is handed on. */
  constructor(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(process.execPath, [main, ...args], {
      cwd,
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.lines.push(line);
      this.#wake();
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.err += text));
    this.exit = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        this.#isOver = true;
        resolve(code ?? signal ?? -1);
        this.#wake();
      });
    });
  }

  /** The first line of the log with this message, when it is there. */
  async logged(message: string): Promise<LogLine> {
    return JSON.parse(await this.line((line) => line.includes(`"msg":"${message}`))) as LogLine;
  }

  async line(isIt: (line: string) => boolean): Promise<string> {
    const startMs = performance.now();
    for (;;) {
      const found = this.lines.find(isIt);
      if (found !== undefined) return found;
      const isLate = performance.now() - startMs > LONGEST_WAIT_MS;
      if (this.#isOver || isLate) {
        const all = [...this.lines, this.err].join('\n');
        throw new Error(`${this.#isOver ? 'It ended' : 'It never said that'}:\n${all}`);
      }
      await this.#change();
    }
  }

  /** Where it listens. */
  async url(): Promise<string> {
    return String((await this.logged('listening')).url);
  }

  /** Ready, by its own word. */
  async ready(): Promise<string> {
    await this.logged('ready');
    return this.url();
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async stop(): Promise<number | NodeJS.Signals> {
    this.signal('SIGTERM');
    return this.exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal('SIGKILL');
    await this.exit;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, LONGEST_WAIT_MS);
      this.#waiting.add(end);
    });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** Asks again and again until the answer is the one that is waited for. */
export async function eventually<T>(
  ask: () => Promise<T>,
  isIt: (answer: T) => boolean,
): Promise<T> {
  const startMs = performance.now();
  for (;;) {
    const answer = await ask();
    if (isIt(answer)) return answer;
    if (performance.now() - startMs > LONGEST_WAIT_MS) {
      throw new Error(`The last answer was ${JSON.stringify(answer)}`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
}

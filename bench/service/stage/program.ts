import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** What is run: the service itself, or what it is held against. */
export interface Program {
  script: string;
  args?: readonly string[];
}

export const redrive: Program = {
  script: join(import.meta.dirname, '../../../packages/server/src/cli/main.ts'),
  args: ['serve'],
};
export const barePipeline: Program = { script: join(import.meta.dirname, '../bare/pipeline.ts') };
export const bareNatsPipeline: Program = {
  script: join(import.meta.dirname, '../bare/nats-pipeline.ts'),
};
export const bareHttp: Program = { script: join(import.meta.dirname, '../bare/http.ts') };

export interface RunOptions {
  env?: Readonly<Record<string, string>>;
  /** What stands in redrive.config.json. */
  config?: object;
  /** Further files of its folder, by name. */
  files?: Readonly<Record<string, object>>;
}

const START_MS = 60_000;
const STOP_MS = 20_000;

const running = new Set<Running>();
// Also after a case that broke off.
process.once('exit', () => {
  for (const one of running) one.end();
});

/** A program in a process and a folder of its own, with nothing of this machine's settings. */
export class Running implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #folder: string;
  readonly #spawnedAt = performance.now();
  readonly #exit: Promise<void>;
  readonly #url = Promise.withResolvers<string>();
  readonly #ready = Promise.withResolvers<void>();
  /** The last lines it said, for when it fails. */
  readonly #said: string[] = [];
  #isOver = false;

  constructor({ script, args = [] }: Program, { env = {}, config, files = {} }: RunOptions) {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    if (config) writeFileSync(join(folder, 'redrive.config.json'), JSON.stringify(config));
    for (const [name, data] of Object.entries(files)) {
      writeFileSync(join(folder, name), JSON.stringify(data));
    }
    this.#folder = folder;
    // For who wants to profile the contestants.
    const { PATH, REDRIVE_BENCH_NODE_OPTIONS: nodeOptions = '' } = process.env;
    this.#child = spawn(process.execPath, [script, ...args], {
      cwd: folder,
      env: { PATH, HTTP_PORT: '0', NODE_OPTIONS: nodeOptions, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(this);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => this.#hear(line));
    }
    // Whoever asks later hears of it too.
    for (const { promise } of [this.#url, this.#ready]) promise.catch(() => undefined);
    this.#exit = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        this.#isOver = true;
        this.#fail(`it ended with ${code ?? signal}`);
        resolve();
      });
    });
    setTimeout(() => this.#fail(`it was not ready in ${START_MS} ms`), START_MS).unref();
  }

  static async start(program: Program, options: RunOptions): Promise<Running> {
    const started = new Running(program, options);
    try {
      await started.ready;
      return started;
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  /** Since its process was asked for. */
  get ageMs(): number {
    return performance.now() - this.#spawnedAt;
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  /** Where it listens, as soon as it does. */
  get url(): Promise<string> {
    return this.#url.promise;
  }

  /** By its own word. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Of the machine's memory: what it takes, and took at most. */
  memory(): { residentBytes: number; peakBytes: number } {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    const bytesOf = (name: string) =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
    return { residentBytes: bytesOf('VmRSS'), peakBytes: bytesOf('VmHWM') };
  }

  /** Holds it where it is, until `goOn`. */
  hold(): void {
    this.#child.kill('SIGSTOP');
  }

  goOn(): void {
    this.#child.kill('SIGCONT');
  }

  /** In order, as long as that takes a reasonable time. */
  async stop(): Promise<void> {
    if (!this.#isOver) this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS);
    await this.#exit;
    clearTimeout(timer);
    this.end();
  }

  /** At once. */
  end(): void {
    running.delete(this);
    if (!this.#isOver) this.#child.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #hear(line: string): void {
    this.#said.push(line);
    if (this.#said.length > 20) this.#said.shift();
    // Cheap for what is said often: only two lines are of interest.
    if (line.includes('"msg":"ready"')) this.#ready.resolve();
    if (line.includes('"msg":"listening"')) {
      this.#url.resolve((JSON.parse(line) as { url: string }).url);
    }
  }

  #fail(why: string): void {
    const error = new Error(`${why}, and said last:\n${this.#said.join('\n')}`);
    this.#url.reject(error);
    this.#ready.reject(error);
  }
}

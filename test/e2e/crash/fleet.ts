/** The children of one test: started, watched, killed, and their journals kept for the accounts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Counts, type Job, noCounts, type Order } from './job.ts';
import { type JournalEntry, readJournal } from './journal.ts';

const script = join(import.meta.dirname, 'child.ts');
/** What a child had to compile the next one need not. */
const compileCache = join(import.meta.dirname, '../../../node_modules/.cache/crash');
const LOOK_EVERY_MS = 20;
/** Below the time limit of a test, so that it can say what it waited for and end its children. */
const LONGEST_WAIT_MS = 40_000;
export const TEST_TIMEOUT_MS = 60_000;
const KEPT_OUTPUT = 3000;

export interface ChildRecord {
  name: string;
  /** It was killed by the test, or killed itself. */
  wasKilled: boolean;
  entries: JournalEntry[];
}

export class Fleet implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'redrive-crash-'));
  readonly #children: Child[] = [];
  #isOver = false;

  /** Starts a process. `before`: a command that runs it, in a namespace of its own for example. */
  start(job: Omit<Job, 'journal'>, before: readonly string[] = []): Child {
    if (this.#isOver) throw new Error(`${job.name} comes too late: the test is over.`);
    const journal = join(this.folder, `${job.name}-${this.#children.length}.jsonl`);
    // It may be killed before it comes to that.
    writeFileSync(journal, '');
    const child = new Child({ ...job, journal }, before);
    this.#children.push(child);
    return child;
  }

  /** Looks again and again. A child that ended by itself ends the wait. */
  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const startMs = performance.now();
    try {
      while (!(await isSo())) {
        for (const child of this.#children) child.assertWell();
        if (performance.now() - startMs > LONGEST_WAIT_MS) throw new Error('it takes too long.');
        await sleep(LOOK_EVERY_MS);
      }
    } catch (error) {
      throw new Error(`While waiting until ${what}: ${String(error)}`, { cause: error });
    }
  }

  /** Stops in order whoever still lives. */
  async stop(): Promise<void> {
    const alive = this.#children.filter((child) => !child.isOver);
    for (const child of alive) child.tell('stop');
    await this.until('all have stopped', () => alive.every((child) => child.isOver));
  }

  records(): ChildRecord[] {
    return this.#children.map(({ job, wasKilled }) => ({
      name: job.name,
      wasKilled,
      entries: readJournal(job.journal),
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#children.map((child) => child.kill()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Child {
  readonly job: Job;
  counts = noCounts;
  /** The end of what it printed. */
  output = '';
  readonly #process: ChildProcess;
  readonly #exit: Promise<unknown>;

  constructor(job: Job, before: readonly string[]) {
    this.job = job;
    const [command, ...rest] = [...before, process.execPath, script, JSON.stringify(job)];
    this.#process = spawn(command, rest, {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
    });
    this.#exit = once(this.#process, 'exit');
    this.#process.on('message', (counts) => (this.counts = counts as Counts));
    for (const stream of [this.#process.stdout!, this.#process.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output = (this.output + text).slice(-KEPT_OUTPUT);
      });
    }
  }

  get isOver(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  get wasKilled(): boolean {
    return this.#process.signalCode === 'SIGKILL';
  }

  /** Throws where it ended by a fault of its own. */
  assertWell(): void {
    const { exitCode, signalCode } = this.#process;
    if (!this.isOver || exitCode === 0 || signalCode === 'SIGKILL') return;
    throw new Error(`${this.job.name} ended with ${exitCode ?? signalCode}.\n${this.output}`);
  }

  tell(order: Order): void {
    // Who is gone needs no orders.
    this.#process.send(order, () => {});
  }

  /** At once, in the midst of whatever it does. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.#exit;
  }

  signal(signal: 'SIGKILL' | 'SIGTERM'): void {
    this.#process.kill(signal);
  }

  async over(): Promise<void> {
    await this.#exit;
    this.assertWell();
  }
}

/** The temporary folder of a server, and the one process that runs in it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { forget, watch } from './guarded.ts';
import { canRead, giveTo, serverUser, spawnIds, type ServerUser } from './user.ts';

/** Generous: a busy machine must not fail a server that is only slow there. */
const START_PATIENCE_MS = 60_000;
const END_PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 10;
const LOG_LINES = 20;

export class Home {
  readonly folder: string;
  readonly user: ServerUser | undefined;
  readonly #kind: string;
  readonly #quitSignal: NodeJS.Signals;
  #running: ChildProcess | undefined;

  /** The quit signal ends the server at once, without care for its data. */
  constructor(kind: string, quitSignal: NodeJS.Signals) {
    this.#kind = kind;
    this.#quitSignal = quitSignal;
    this.user = serverUser();
    this.folder = mkdtempSync(join(realpathSync(tmpdir()), `redrive-${kind}-`));
    this.#watch();
    giveTo(this.user, this.folder);
    if (canRead(this.user, this.folder)) return;
    this.#removeFolder();
    throw new Error(`user ${this.user?.name} cannot enter ${tmpdir()}: set TMPDIR to an open one`);
  }

  get pid(): number | undefined {
    return this.#running?.pid;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Runs the server and waits until it is ready; throws with the end of its log if it never is. */
  async run(
    command: string,
    args: readonly string[],
    isReady: () => boolean | Promise<boolean>,
  ): Promise<void> {
    if (this.isRunning) throw new Error(`${this.#kind} runs already`);
    const child = this.#launch(command, args);
    const giveUpAtMs = performance.now() + START_PATIENCE_MS;
    while (this.isRunning && !(await isReady())) {
      if (performance.now() > giveUpAtMs) {
        await this.end('SIGKILL');
        throw new Error(`${this.#kind} was not ready in time\n${this.logEnd()}`);
      }
      await sleep(LOOK_EVERY_MS);
    }
    if (!this.isRunning) {
      const ending = child.signalCode ?? `exit code ${child.exitCode}`;
      throw new Error(`${this.#kind} did not start: ${ending}\n${this.logEnd()}`);
    }
  }

  /** Sends a signal and waits for the end of the server. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#running;
    if (!child) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    // Also keeps this process alive meanwhile, which an unreferenced child does not.
    const killer = setTimeout(() => child.kill('SIGKILL'), END_PATIENCE_MS);
    await ended;
    clearTimeout(killer);
  }

  /** Ends the server and removes every trace of it. */
  async remove(): Promise<void> {
    await this.end(this.#quitSignal);
    this.#removeFolder();
  }

  logEnd(): string {
    const log = readFileSync(join(this.folder, 'server.log'), 'utf8');
    return log.trimEnd().split('\n').slice(-LOG_LINES).join('\n');
  }

  #launch(command: string, args: readonly string[]): ChildProcess {
    const log = openSync(join(this.folder, 'server.log'), 'a');
    // Detached, so that Ctrl-C reaches the tests and not their servers: the guard ends those.
    const child = spawn(command, args, {
      ...spawnIds(this.user),
      cwd: this.folder,
      detached: true,
      stdio: ['ignore', log, log],
      env: { PATH: process.env['PATH'], HOME: this.folder, LC_ALL: 'C' },
    });
    closeSync(log);
    child.unref();
    this.#running = child;
    const onEnd = () => {
      this.#running = undefined;
      this.#watch();
    };
    child.once('error', onEnd).once('exit', onEnd);
    this.#watch();
    return child;
  }

  #watch(): void {
    const pid = this.#running?.pid;
    const running = pid === undefined ? {} : { pid };
    watch({ folder: this.folder, quitSignal: this.#quitSignal, ...running });
  }

  #removeFolder(): void {
    // The children of a killed server may write for another moment.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    forget(this.folder);
  }
}

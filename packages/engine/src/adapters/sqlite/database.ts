import { setImmediate } from 'node:timers/promises';
import type { DatabaseSync } from 'node:sqlite';
import { type Clock, delayFor, type Random } from 'redrive';
import { EngineError } from '../../errors.ts';
import { faultOf, isBusy } from './faults.ts';
import { FileGuard } from './loss/guard.ts';

interface DatabaseOptions<T> {
  /** For messages. */
  path: string;
  clock: Clock;
  random: Random;
  /** How long to wait for other processes before giving up. */
  busyLimitMs: number;
  connect: () => DatabaseSync;
  /** Another connection to the same file, which reads only. */
  connectReader: () => DatabaseSync;
  /** Prepares the statements that the work uses. */
  prepare: (db: DatabaseSync) => T;
  /** Hears that the file was deleted or replaced, and what became of its copy. */
  report: (what: string, error: unknown) => void;
}

/**
 * One connection that is used in turns: what was asked for since the last turn of the event loop is written in one
 * commit (group commit), and the loop runs in between, whatever the callers do.
 */
export class Database<T> {
  readonly #options: DatabaseOptions<T>;
  #link: Link<T> | undefined;
  #opening: Promise<void> | undefined;
  #jobs: Job<T>[] = [];
  #draining: Promise<void> | undefined;
  readonly #readings = new Set<Promise<unknown>>();

  constructor(options: DatabaseOptions<T>) {
    this.#options = options;
  }

  open(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw faultOf(error, this.#options.path);
    });
    return this.#opening;
  }

  /** Finishes what was asked for, then lets go of the file. */
  async close(): Promise<void> {
    // A failure to open was told to who opened.
    await this.#opening?.catch(() => {});
    this.#opening = undefined;
    const link = this.#link;
    await this.#draining;
    await Promise.allSettled(this.#readings);
    if (link?.db.isOpen) await link.guard.close();
    // It may have been opened again meanwhile.
    if (this.#link === link) this.#link = undefined;
    if (link?.db.isOpen) link.db.close();
  }

  /** The statements, for what is too small to wait for its turn; undefined: not open. */
  get statements(): T | undefined {
    return this.#link?.statements;
  }

  /** Looks whether the file is still at its path: somebody should also notice where nothing is asked for. */
  look(): void {
    this.#link?.guard.fault();
  }

  /** Reads outside of any transaction: one statement, or several that need not agree. */
  read<R>(work: (statements: T) => R): Promise<R> {
    return this.#ask({ glance: work });
  }

  /**
   * Writes in a transaction that is committed when the promise resolves. `work` may be called again. Where `glance`
   * sees without a lock what the answer is, nothing is written.
   */
  write<R>(work: (statements: T) => R, glance?: (statements: T) => R | undefined): Promise<R> {
    return this.#ask(glance ? { work, glance } : { work });
  }

  /**
   * Writes how work that was begun before has ended. It is also written after the file was lost, and goes into the copy:
   * otherwise that work would be done again.
   */
  writeEnd<R>(work: (statements: T) => R): Promise<R> {
    return this.#ask({ work, isEnd: true });
  }

  /**
   * Reads much, as of one moment, on a connection of its own: every step has its own turn of the event loop, and writes
   * go on in between. Until it is over the log keeps what was written meanwhile.
   */
  readInSteps<R>(steps: (db: DatabaseSync) => Iterator<undefined, R>): Promise<R> {
    const opening = this.#opening;
    if (!opening) return Promise.reject(this.#notOpen());
    const fault = this.#link?.guard.fault();
    if (fault) return Promise.reject(fault);
    const reading = this.#readInSteps(opening, steps);
    this.#readings.add(reading);
    const forget = () => this.#readings.delete(reading);
    reading.then(forget, forget);
    return reading;
  }

  #ask<R>(asked: Pick<Job<T>, 'work' | 'glance' | 'isEnd'>): Promise<R> {
    if (!this.#opening) return Promise.reject(this.#notOpen());
    const guard = this.#link?.guard;
    // At once: a turn may have to wait for the copy.
    if (guard?.isLost && !asked.isEnd) return Promise.reject(guard.fault()!);
    return new Promise((resolve, reject) => {
      this.#jobs.push({ ...asked, resolve: resolve as Job<T>['resolve'], reject, alone: false });
      this.#draining ??= this.#drain();
    });
  }

  async #open(): Promise<void> {
    await this.#persist(() => {
      const db = this.#options.connect();
      try {
        const { path, clock, report } = this.#options;
        const guard = new FileGuard({ path, db, clock, report });
        this.#link = { db, statements: this.#options.prepare(db), guard };
      } catch (error) {
        db.close();
        throw error;
      }
    });
  }

  async #readInSteps<R>(
    opening: Promise<void>,
    steps: (db: DatabaseSync) => Iterator<undefined, R>,
  ): Promise<R> {
    let db: DatabaseSync | undefined;
    try {
      await opening;
      await this.#persist(() => {
        db ??= this.#options.connectReader();
        if (!db.isTransaction) db.exec('BEGIN');
        // The first statement that reads fixes the moment.
        db.exec('SELECT version FROM redrive_schema');
      });
      const reading = steps(db!);
      for (;;) {
        await setImmediate();
        // Closed, and perhaps opened again, meanwhile.
        if (this.#opening !== opening) throw this.#notOpen();
        const { done, value } = reading.next();
        if (done) return value;
      }
    } catch (error) {
      throw faultOf(error, this.#options.path);
    } finally {
      db?.close();
    }
  }

  /** Works until nothing is left. Never rejects: every error goes to the jobs it concerns. */
  async #drain(): Promise<void> {
    while (this.#jobs.length > 0) {
      await setImmediate();
      try {
        await this.#opening;
        await this.#link?.guard.copied();
        await this.#persist(() => this.#turn());
      } catch (error) {
        const fault = faultOf(error, this.#options.path);
        for (const job of this.#jobs.splice(0)) job.reject(fault);
      }
    }
    this.#draining = undefined;
  }

  #turn(): void {
    if (!this.#link) throw this.#notOpen();
    const lost = this.#link.guard.fault();
    if (lost) this.#refuse(lost);
    const busy = this.#glance(this.#link.statements);
    const writes = this.#jobs.filter((job) => job.work);
    if (writes.length > 0) this.#transact(this.#link, writes);
    if (busy) throw busy.error;
  }

  /** Refuses all but what ends work that was begun before. */
  #refuse(fault: EngineError): void {
    this.#finish(
      this.#jobs.filter((job) => !job.isEnd),
      ({ reject }) => reject(fault),
    );
  }

  /** Answers what needs no lock. In rare moments of the log even that is refused, and tried again. */
  #glance(statements: T): { error: unknown } | undefined {
    let busy: { error: unknown } | undefined;
    this.#jobs = this.#jobs.filter((job) => {
      if (!job.glance) return true;
      try {
        const seen = job.glance(statements);
        if (seen === undefined && job.work) return true;
        job.resolve(seen);
      } catch (error) {
        if (isBusy(error)) {
          busy = { error };
          return true;
        }
        job.reject(faultOf(error, this.#options.path));
      }
      return false;
    });
    return busy;
  }

  /** One commit of as many jobs as fit into its time. One that cannot be done is tried alone, and then fails alone. */
  #transact({ db, statements, guard }: Link<T>, writes: readonly Job<T>[]): void {
    const { clock, path } = this.#options;
    const results: unknown[] = [];
    const wasLost = guard.isLost;
    let begun = 1;
    try {
      db.exec('BEGIN IMMEDIATE');
      const startMs = clock.monotonic();
      for (const [i, { work, alone }] of writes.entries()) {
        const full = alone || writes[0]!.alone || clock.monotonic() - startMs > MAX_TRANSACTION_MS;
        if (i > 0 && full) break;
        begun = i + 1;
        results.push(work!(statements));
      }
      // As late as can be: whoever is told that something is stored must find it after a restart.
      if (!wasLost && guard.look()) {
        db.exec('ROLLBACK');
        // What ends work that was begun stays, and is written in the next turn.
        this.#refuse(guard.fault()!);
        return;
      }
      db.exec('COMMIT');
      guard.written();
    } catch (error) {
      // Some errors have already ended the transaction.
      if (db.isTransaction) db.exec('ROLLBACK');
      if (isBusy(error)) throw error;
      const failed = writes.slice(0, begun);
      if (failed.length === 1) this.#finish(failed, ({ reject }) => reject(faultOf(error, path)));
      for (const job of failed) job.alone = true;
      return;
    }
    this.#finish(writes.slice(0, begun), ({ resolve }, i) => resolve(results[i]));
  }

  #finish(jobs: readonly Job<T>[], answer: (job: Job<T>, index: number) => void): void {
    const over = new Set(jobs);
    this.#jobs = this.#jobs.filter((job) => !over.has(job));
    jobs.forEach(answer);
  }

  /** Tries until nobody else is in the way, off the event loop, up to the limit. */
  async #persist(work: () => void): Promise<void> {
    const { clock, random, busyLimitMs } = this.#options;
    const startMs = clock.monotonic();
    for (let attempt = 1; ; attempt++) {
      try {
        return work();
      } catch (error) {
        if (!isBusy(error) || clock.monotonic() - startMs >= busyLimitMs) throw error;
      }
      const pauseMs = delayFor(pauses, { attempt, random: random() });
      await new Promise<void>((resolve) => {
        clock.setTimer(resolve, pauseMs);
      });
    }
  }

  #notOpen(): EngineError {
    const { path } = this.#options;
    return new EngineError('STORE_UNAVAILABLE', `${path} is not open: call open() first.`);
  }
}

/** A longer transaction is cut between jobs: other processes wait for it, and so does the event loop. */
const MAX_TRANSACTION_MS = 8;

const pauses = { base: 4, cap: 64, jitter: 'equal' } as const;

interface Link<T> {
  db: DatabaseSync;
  statements: T;
  guard: FileGuard;
}

interface Job<T> {
  work?: (statements: T) => unknown;
  glance?: (statements: T) => unknown;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
  /** It says how work ended that was begun before. */
  isEnd?: true;
  /** It failed together with others: which one is at fault shows when each is alone. */
  alone: boolean;
}

import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from 'redrive';
import { EngineError } from '../../../errors.ts';
import { copyAgain, copyToNewFile } from './copy.ts';
import { type Loss, OpenFiles } from './open-files.ts';

interface GuardOptions {
  path: string;
  db: DatabaseSync;
  clock: Clock;
  /** Hears of the loss, and of what became of the copy. */
  report: (what: string, error: unknown) => void;
}

/** After a copy that failed. */
const TRY_AGAIN_MS = 5000;
/** Between two copies, at least; and ten times as long as the last one took. */
const COPY_EVERY_MS = 1000;

/**
 * Notices that the path no longer leads to the open database, and copies what the connection holds into another file. A
 * loss lasts until the store is closed, also when the file comes back: somebody may have opened it in between.
 */
export class FileGuard {
  readonly #options: GuardOptions;
  readonly #files: OpenFiles;
  #loss: Loss | undefined;
  /** The file that has the copy. */
  #copy: string | undefined;
  #copyFault: unknown;
  #copying: Promise<void> | undefined;
  /** Something was written since the last copy began. */
  #isStale = true;
  #nextCopyMs = -Infinity;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#files = new OpenFiles(options.path);
  }

  /** Why nothing may be accepted or begun any more; undefined: all is well. Not within a transaction: it begins to copy. */
  fault(): EngineError | undefined {
    if (!this.look()) return undefined;
    this.#copyWhenDue();
    return this.#error();
  }

  /** Whether the path leads elsewhere by now. */
  look(): boolean {
    if (this.#loss !== undefined) return true;
    this.#loss = this.#files.loss();
    if (this.#loss === undefined) return false;
    this.#options.report('the store lost its file', this.#error());
    return true;
  }

  /** Whether a loss was noticed before. Does not look. */
  get isLost(): boolean {
    return this.#loss !== undefined;
  }

  /** What ends work under way was written after the loss: it belongs into the copy. */
  written(): void {
    this.#isStale = true;
  }

  /** Until no copy is being made: what is written meanwhile might be in it by half. */
  async copied(): Promise<void> {
    await this.#copying;
  }

  /** Before the connection is closed, with everything written. */
  async close(): Promise<void> {
    if (!this.fault()) return;
    await this.#copying;
    if (this.#isStale) await this.#startCopy();
  }

  #copyWhenDue(): void {
    const isDue = this.#options.clock.monotonic() >= this.#nextCopyMs;
    if (this.#isStale && isDue && !this.#copying) void this.#startCopy();
  }

  #startCopy(): Promise<void> {
    return (this.#copying = this.#makeCopy().finally(() => (this.#copying = undefined)));
  }

  /** Never rejects. */
  async #makeCopy(): Promise<void> {
    const { db, path, clock, report } = this.#options;
    const startMs = clock.monotonic();
    this.#isStale = false;
    const isFirst = this.#copy === undefined;
    try {
      this.#emptyLog();
      if (this.#copy === undefined) this.#copy = await copyToNewFile(db, path, clock.now());
      else await copyAgain(db, this.#copy);
      this.#copyFault = undefined;
      const tookMs = clock.monotonic() - startMs;
      this.#nextCopyMs = clock.monotonic() + Math.max(COPY_EVERY_MS, 10 * tookMs);
      if (isFirst) report('what the lost file held was copied', this.#error());
    } catch (error) {
      this.#isStale = true;
      this.#copyFault = error;
      this.#nextCopyMs = clock.monotonic() + TRY_AGAIN_MS;
      report('what the lost file held could not be copied', this.#error());
    }
  }

  /** A file that was only moved has everything then, and no log is left that would damage another file. */
  #emptyLog(): void {
    try {
      const row = this.#options.db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
      if (row?.['busy'] === 0) this.#files.deleteOrphans();
    } catch {
      // A full disk, or rights: the copy is what counts, and has what is in the log as well.
    }
  }

  #error(): EngineError {
    const { path } = this.#options;
    const happened = {
      gone: `${path} was deleted or moved while it was open.`,
      replaced: `Another file was put in the place of ${path} while it was open.`,
      log: `${path}-wal or ${path}-shm was deleted or replaced while it was open.`,
    }[this.#loss!];
    const message = `${happened} Nothing more is accepted or delivered. ${this.#advice()}`;
    const cause = this.#copyFault === undefined ? {} : { cause: this.#copyFault };
    return new EngineError('STORE_FILE_LOST', message, cause);
  }

  #advice(): string {
    const { path } = this.#options;
    if (this.#copy !== undefined) {
      const away = this.#loss === 'gone' ? '' : ` move ${path}, ${path}-wal and ${path}-shm away,`;
      return `What was accepted before is in ${this.#copy}. Stop all processes that use the file,${away} rename the copy to ${path}, and start again.`;
    }
    if (this.#copyFault === undefined) {
      return 'What was accepted before is being copied into a file beside it. Do not end this process yet.';
    }
    const why = this.#copyFault instanceof Error ? this.#copyFault.message : 'unknown';
    return `What was accepted before could not be copied (${why}) and exists in this process only. Do not end this process: make room for a copy beside the file; it is tried again every ${TRY_AGAIN_MS / 1000} s.`;
  }
}

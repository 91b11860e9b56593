import { realpathSync, rmSync, statSync } from 'node:fs';

/** What became of the files that a connection has open. */
export type Loss = 'gone' | 'replaced' | 'log';

interface FileId {
  dev: bigint;
  ino: bigint;
}

/**
 * The files that a connection has open, known by device and inode. SQLite goes on writing to them after they were
 * deleted or renamed, and nobody could open what it writes there.
 */
export class OpenFiles {
  readonly #path: string;
  /** Without symbolic links: SQLite keeps its log and the index of the log beside this one. */
  readonly #realPath: string;
  readonly #file: FileId | undefined;
  readonly #log: FileId | undefined;
  readonly #index: FileId | undefined;

  /** The database must be open, and have its log. */
  constructor(path: string) {
    this.#path = path;
    this.#realPath = realpathSync(path);
    this.#file = idOf(path);
    this.#log = idOf(`${this.#realPath}-wal`);
    this.#index = idOf(`${this.#realPath}-shm`);
  }

  /** Costs three calls of stat, about 5 µs. */
  loss(): Loss | undefined {
    try {
      const file = idOf(this.#path);
      if (!file) return 'gone';
      if (!isSame(file, this.#file)) return 'replaced';
      const hasLog = isSame(idOf(`${this.#realPath}-wal`), this.#log);
      return hasLog && isSame(idOf(`${this.#realPath}-shm`), this.#index) ? undefined : 'log';
    } catch {
      // A path that cannot be looked at now (rights, a failing disk) says nothing about the open files.
      return undefined;
    }
  }

  /**
   * Deletes the log and its index where the database file is no longer beside them. SQLite would take the log for that
   * of the file that is there now or comes next, and damage that file. Call it only when the log has no content.
   */
  deleteOrphans(): void {
    if (isSame(idOf(this.#realPath), this.#file)) return;
    for (const [path, id] of [
      [`${this.#realPath}-wal`, this.#log],
      [`${this.#realPath}-shm`, this.#index],
    ] as const) {
      if (id && isSame(idOf(path), id)) rmSync(path, { force: true });
    }
  }
}

/** As bigint: the numbers of Windows do not fit into a double. */
function idOf(path: string): FileId | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function isSame(a: FileId | undefined, b: FileId | undefined): boolean {
  return a?.ino === b?.ino && a?.dev === b?.dev;
}

import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { AuditEvent, AuditSink } from '../../ports/audit.ts';
import type { JsonlSettings } from './options.ts';

const NEWLINE = 0x0a;

/** One JSON object a line, one write a batch. A file that is full is put aside, and the oldest of those go. */
export class JsonlFile implements AuditSink {
  readonly #settings: JsonlSettings;
  #file: { handle: FileHandle; bytes: number } | undefined;
  /** The end of what is under way: batches are written one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(settings: JsonlSettings) {
    this.#settings = settings;
  }

  async write(events: readonly AuditEvent[]): Promise<void> {
    // All of it before the first byte is written: what cannot be JSON fails the batch as a whole.
    const text = events.map((event) => `${JSON.stringify(event)}\n`).join('');
    if (text !== '') await this.#inTurn(() => this.#append(Buffer.from(text)));
  }

  async close(): Promise<void> {
    await this.#inTurn(() => this.#letGo());
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    // Whoever asked for it has its error; the next one goes on.
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #append(bytes: Buffer): Promise<void> {
    const { maxBytes, fsync } = this.#settings;
    this.#file ??= await this.#open();
    if (this.#file.bytes > 0 && this.#file.bytes + bytes.length > maxBytes) {
      await this.#letGo();
      await this.#putAside();
      this.#file = await this.#open();
    }
    const file = this.#file;
    try {
      await file.handle.writeFile(bytes);
      if (fsync) await file.handle.datasync();
      file.bytes += bytes.length;
    } catch (error) {
      await this.#undo(file);
      throw error;
    }
  }

  /** Makes its folder too. A line that a crash has torn gets its end, so that the next one is a line of its own. */
  async #open(): Promise<{ handle: FileHandle; bytes: number }> {
    const { path } = this.#settings;
    await mkdir(dirname(path), { recursive: true });
    const handle = await open(path, 'a+');
    try {
      const { size } = await handle.stat();
      const last = Buffer.alloc(1, NEWLINE);
      if (size > 0) await handle.read(last, 0, 1, size - 1);
      if (last[0] === NEWLINE) return { handle, bytes: size };
      await handle.writeFile('\n');
      return { handle, bytes: size + 1 };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Part of a batch may be written: it goes again. Where even that fails, a torn line gets its end at the next opening. */
  async #undo({ handle, bytes }: { handle: FileHandle; bytes: number }): Promise<void> {
    this.#file = undefined;
    try {
      await handle.truncate(bytes);
    } catch {
      // The error of the write is the one that says what is wrong.
    } finally {
      await handle.close();
    }
  }

  async #letGo(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.handle.close();
  }

  /** `path` becomes `path.1`, `path.1` becomes `path.2`, up to the first number that is free, or the last. */
  async #putAside(): Promise<void> {
    const { path, keep } = this.#settings;
    if (keep === 0) {
      await rm(path, { force: true });
      return;
    }
    let free = 1;
    while (free < keep && (await exists(`${path}.${free}`))) free += 1;
    for (let n = free; n > 1; n--) await rename(`${path}.${n - 1}`, `${path}.${n}`);
    await rename(path, `${path}.1`);
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

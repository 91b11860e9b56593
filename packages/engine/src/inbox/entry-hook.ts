import type { Failure } from 'redrive';
import type { Host } from '../host.ts';
import type { NewItem } from '../ports/inbox.ts';
import type { Reason } from '../model/task.ts';

/** What entered the inbox in one group since it was last told of. */
export interface InboxEntry {
  /** Of the group. */
  fingerprint: string;
  lane: string;
  /** How many. */
  count: number;
  firstAtMs: number;
  lastAtMs: number;
  /** Of the last of them, as is its message id. */
  reason: Reason;
  failure: Failure;
  id: string;
}

interface EntryHookOptions {
  onEntry: (entry: InboxEntry) => unknown;
  /** A group is told of at most once in this time; 0: every entry. */
  debounceMs: number;
}

/** A group that was told of not long ago. */
interface Window {
  endAt: number;
  /** What came since. */
  untold?: InboxEntry;
}

const MAX_GROUPS = 10_000;
/** While so many calls have not ended, what comes is kept together as in a window. */
const MAX_RUNNING = 100;
const CROWDED_MS = 1000;

/**
 * Tells somebody that something entered the inbox: the first of a group at once, what follows together at the end of each
 * window. Whatever becomes of the callback, the work goes on.
 */
export class EntryHook {
  readonly #onEntry: (entry: InboxEntry) => unknown;
  readonly #debounceMs: number;
  readonly #host: Host;
  /** By fingerprint. All windows are of one length, so the first one is the first to end. */
  readonly #windows = new Map<string, Window>();
  #timer: unknown;
  #isStopped = false;
  #running = 0;
  #quiet: (() => void)[] = [];

  constructor({ onEntry, debounceMs }: EntryHookOptions, host: Host) {
    this.#onEntry = onEntry;
    this.#debounceMs = debounceMs;
    this.#host = host;
  }

  entered(
    { fingerprint, reason, failure }: NewItem,
    { lane, id }: { lane: string; id: string },
    atMs: number,
  ): void {
    const window = this.#windows.get(fingerprint);
    const { count = 0, firstAtMs = atMs } = window?.untold ?? {};
    const times = { count: count + 1, firstAtMs, lastAtMs: atMs };
    const entry: InboxEntry = { fingerprint, lane, ...times, reason, failure, id };
    if (window) window.untold = entry;
    else this.#begin(entry);
  }

  /** What is kept back of this message is told without its words: it was erased. */
  erase(messageId: string): void {
    for (const window of this.#windows.values()) {
      const { untold } = window;
      if (untold?.id !== messageId) continue;
      window.untold = { ...untold, failure: { class: untold.failure.class, code: 'ERASED' } };
    }
  }

  /** Tells at once of all that was kept back, and resolves when nobody works on it any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#host.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    for (const fingerprint of this.#windows.keys()) this.#forget(fingerprint);
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => {
      this.#quiet.push(resolve);
    });
  }

  /** Tells of it, and of no other of its group for a while. */
  #begin(entry: InboxEntry): void {
    const isCrowded = this.#running >= MAX_RUNNING;
    const windowMs = isCrowded ? Math.max(this.#debounceMs, CROWDED_MS) : this.#debounceMs;
    if (windowMs > 0 && !this.#isStopped) {
      // Those that were told of longest ago go first; told too often is better than too late or never.
      if (this.#windows.size >= MAX_GROUPS) this.#forget(this.#windows.keys().next().value!);
      const endAt = this.#host.clock.monotonic() + windowMs;
      this.#windows.set(entry.fingerprint, isCrowded ? { endAt, untold: entry } : { endAt });
      this.#arm();
      if (isCrowded) return;
    }
    this.#tell(entry);
  }

  #forget(fingerprint: string): void {
    const { untold } = this.#windows.get(fingerprint)!;
    this.#windows.delete(fingerprint);
    if (untold) this.#tell(untold);
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#isStopped) return;
    const [first] = this.#windows.values();
    if (!first) return;
    const { clock } = this.#host;
    const inMs = Math.max(0, Math.ceil(first.endAt - clock.monotonic()));
    this.#timer = clock.setTimer(() => this.#endWindows(), inMs, true);
  }

  #endWindows(): void {
    this.#timer = undefined;
    const now = this.#host.clock.monotonic();
    const ended: [string, Window][] = [];
    for (const one of this.#windows) {
      if (one[1].endAt > now) break;
      ended.push(one);
    }
    for (const [fingerprint, { untold }] of ended) {
      this.#windows.delete(fingerprint);
      if (untold) this.#begin(untold);
    }
    this.#arm();
  }

  #tell(entry: InboxEntry): void {
    const failed = (error: unknown) => {
      const { fingerprint, lane } = entry;
      this.#host.log.error({ err: error, fingerprint, lane }, 'the inbox hook onEntry failed');
    };
    try {
      const result = this.#onEntry(entry);
      if (result instanceof Promise) this.#await(result.catch(failed));
    } catch (error) {
      failed(error);
    }
  }

  #await(work: Promise<unknown>): void {
    this.#running += 1;
    void work.finally(() => {
      this.#running -= 1;
      if (this.#running > 0) return;
      for (const resolve of this.#quiet.splice(0)) resolve();
    });
  }
}

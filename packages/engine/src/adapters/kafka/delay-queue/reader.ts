/** What readers of both kinds of topics have in common. */
import type { FetchTarget } from '../client/fetcher.ts';
import type { FetchedRecord } from '../client/record-batches.ts';
import { Progress } from '../client/progress.ts';
import { type ReadEntry, readEntry } from './entry.ts';

/** What the readers of a consumer share. */
export interface ReaderKit {
  /** It is at least this late, by the brokers' clocks. */
  readonly nowMs: () => number;
  /** About what time it is for them. For people, never to decide. */
  readonly estimateMs: () => number;
  /** Something may be due, or its answer is written. */
  readonly changed: () => void;
  /** Keeps a record that is not ours. True: that is durable. False: it was given up, and whoever comes next does it. */
  readonly setAside: (from: FetchTarget, record: FetchedRecord, why: string) => Promise<boolean>;
}

/** A partition that this consumer has. */
export abstract class Reader implements FetchTarget {
  abstract readonly maxBytes: number;
  readonly topic: string;
  readonly partition: number;
  readonly progress: Progress;
  /** Aborted when the partition is lost, or when its consumer stops for good. */
  readonly ending = new AbortController();
  protected readonly kit: ReaderKit;
  /** It takes nothing more, and finishes what it has begun. */
  isLeaving = false;

  constructor(at: { topic: string; partition: number; start: number }, kit: ReaderKit) {
    this.topic = at.topic;
    this.partition = at.partition;
    this.progress = new Progress(at.start);
    this.kit = kit;
  }

  get next(): number {
    return this.progress.next;
  }

  get isLost(): boolean {
    return this.ending.signal.aborted;
  }

  /** Records of it are under way. */
  abstract get isBusy(): boolean;
  /** When something of it is due next, by the brokers' clocks; Infinity when nothing is known. */
  abstract get nextMs(): number;
  abstract wants(): boolean;
  protected abstract keep(record: FetchedRecord, entry: ReadEntry): void;
  protected abstract clear(): void;

  take(records: readonly FetchedRecord[], next: number): void {
    for (const record of records) {
      this.progress.add(record.offset);
      const entry = readEntry(record);
      if (typeof entry === 'string') void this.#setAside(record, entry);
      else this.keep(record, entry);
    }
    this.progress.advance(next);
    this.kit.changed();
  }

  restart(offset: number): void {
    this.clear();
    this.progress.restart(offset);
  }

  lose(why: string): void {
    this.isLeaving = true;
    this.clear();
    if (!this.isLost) this.ending.abort(new Error(why));
  }

  async #setAside(record: FetchedRecord, why: string): Promise<void> {
    if (await this.kit.setAside(this, record, why)) this.done(record.offset);
  }

  protected done(offset: number): void {
    if (this.isLost) return;
    this.progress.done(offset);
    this.kit.changed();
  }
}

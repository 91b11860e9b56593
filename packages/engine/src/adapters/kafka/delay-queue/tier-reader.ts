import type { FetchedRecord } from '../client/record-batches.ts';
import type { OutRecord } from '../client/producer.ts';
import { onward, type ReadEntry } from './entry.ts';
import { Reader, type ReaderKit } from './reader.ts';
import type { Tier, Tiers } from './tiers.ts';

interface Waiting {
  readonly record: FetchedRecord;
  readonly dueMs: number;
  readonly readyMs: number;
}

/** In one request, and no more than these are under way. */
const MAX_HOP = 2000;

/**
 * Reads one partition of a topic of fixed delays. Its records are ready in their order, so only the first one is looked at;
 * nothing more is fetched while it waits.
 */
export class TierReader extends Reader {
  readonly maxBytes = 128 * 1024;
  readonly #tier: Tier;
  readonly #tiers: Tiers;
  readonly #send: (records: readonly OutRecord[]) => Promise<void>;
  #waiting: Waiting[] = [];
  #isHopping = false;

  constructor(
    at: { topic: string; partition: number; start: number },
    kit: ReaderKit,
    parts: { tier: Tier; tiers: Tiers; send: (records: readonly OutRecord[]) => Promise<void> },
  ) {
    super(at, kit);
    this.#tier = parts.tier;
    this.#tiers = parts.tiers;
    this.#send = parts.send;
  }

  get isBusy(): boolean {
    return this.#isHopping;
  }

  get nextMs(): number {
    return this.#isHopping || this.isLeaving ? Infinity : (this.#waiting[0]?.readyMs ?? Infinity);
  }

  wants(): boolean {
    return !this.isLeaving && this.#waiting.length === 0;
  }

  /** Sends on what has waited long enough here. Then, and not before, it is done. */
  async hop(): Promise<void> {
    const nowMs = this.kit.nowMs();
    if (this.nextMs > nowMs) return;
    const first = this.#waiting.findIndex(({ readyMs }) => readyMs > nowMs);
    const ready = this.#waiting.slice(
      0,
      Math.min(first < 0 ? this.#waiting.length : first, MAX_HOP),
    );
    const records = ready.map(({ record, dueMs }) =>
      onward(this.#tiers.topicFor(dueMs - nowMs), record, { atMs: dueMs }),
    );
    this.#isHopping = true;
    await this.#send(records);
    this.#isHopping = false;
    if (this.isLost) return;
    // Fetched anew meanwhile, it has others.
    const written = new Set(ready);
    this.#waiting = this.#waiting.filter((one) => !written.has(one));
    for (const { record } of ready) this.done(record.offset);
    this.kit.changed();
  }

  protected keep(record: FetchedRecord, { dueMs }: ReadEntry): void {
    const readyMs = record.timestampMs + this.#tier.holdMs;
    this.#waiting.push({ record, dueMs, readyMs });
  }

  protected clear(): void {
    this.#waiting = [];
  }
}

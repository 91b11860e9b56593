import type { DueEntry } from '../../../ports/delay-queue.ts';
import { sizeOf } from '../broker/received.ts';
import type { FetchedRecord } from '../client/record-batches.ts';
import { namesOf, type ReadEntry } from './entry.ts';
import { DueHeap } from './heap.ts';
import { Reader, type ReaderKit } from './reader.ts';

/** An entry in memory. */
export interface Held {
  readonly record: FetchedRecord;
  readonly offset: number;
  readonly dueMs: number;
  readonly isFirst: boolean;
  readonly redeliveries: number;
  readonly bytes: number;
}

/** What all readers of a consumer keep in memory together. */
export interface Room {
  entries: number;
  bytes: number;
  readonly maxEntries: number;
  readonly maxBytes: number;
}

/** Reads one partition of the topic of what is due soon, and keeps it in memory until then. */
export class DueReader extends Reader {
  readonly maxBytes = 1024 * 1024;
  readonly #room: Room;
  #heap = new DueHeap<Held>();
  /** In hand, and in memory before that. */
  #entries = 0;
  #bytes = 0;
  readonly #inHand = new Set<Held>();
  /** The latest append that was seen here: the clock of the leader is at least there. */
  #appendedMs = -Infinity;
  #leaderEpoch = -1;

  constructor(at: { topic: string; partition: number; start: number }, kit: ReaderKit, room: Room) {
    super(at, kit);
    this.#room = room;
  }

  get isBusy(): boolean {
    return this.#inHand.size > 0;
  }

  /** -Infinity: its first entry is due. */
  get nextMs(): number {
    const first = this.#heap.first;
    if (!first || this.isLeaving) return Infinity;
    return this.#isDue(first) ? -Infinity : first.dueMs;
  }

  /** How long its first entry has been due, to take the oldest first. */
  get firstDueMs(): number {
    return this.#heap.first?.dueMs ?? Infinity;
  }

  wants(): boolean {
    const { entries, bytes, maxEntries, maxBytes } = this.#room;
    return !this.isLeaving && entries < maxEntries && bytes < maxBytes;
  }

  /** Takes what is due into the hand of a handler. The time is looked at here, whatever was planned before. */
  takeDue(limit: number): Held[] {
    const taken: Held[] = [];
    for (let first = this.#heap.first; first && taken.length < limit; first = this.#heap.first) {
      if (!this.#isDue(first)) break;
      taken.push(this.#heap.pop()!);
      this.#inHand.add(first);
    }
    return taken;
  }

  entryOf({ record, dueMs, redeliveries }: Held): DueEntry {
    const { id, key } = namesOf(record);
    const nowMs = Math.max(this.kit.estimateMs(), this.#appendedMs);
    return { id, key, payload: record.value!, lateMs: Math.max(0, nowMs - dueMs), redeliveries };
  }

  /** The handler has answered, and that is durable. */
  finish(held: Held): void {
    if (!this.#inHand.delete(held)) return;
    this.#free(held);
    this.done(held.offset);
  }

  /** Once more, not before a time of the brokers. */
  putBack(held: Held, dueMs: number): void {
    if (!this.#inHand.delete(held)) return;
    // Its own append says nothing of this time.
    this.#heap.push({ ...held, dueMs, isFirst: false, redeliveries: held.redeliveries + 1 });
    this.kit.changed();
  }

  protected keep(record: FetchedRecord, { dueMs, isFirst }: ReadEntry): void {
    const { offset, timestampMs, leaderEpoch } = record;
    const bytes = sizeOf(record);
    if (leaderEpoch !== this.#leaderEpoch) this.#appendedMs = -Infinity;
    this.#leaderEpoch = leaderEpoch;
    if (timestampMs > this.#appendedMs) this.#appendedMs = timestampMs;
    this.#heap.push({ record, offset, dueMs, isFirst, redeliveries: 0, bytes });
    this.#entries += 1;
    this.#bytes += bytes;
    this.#room.entries += 1;
    this.#room.bytes += bytes;
  }

  protected clear(): void {
    this.#heap = new DueHeap();
    this.#room.entries -= this.#entries;
    this.#room.bytes -= this.#bytes;
    this.#entries = 0;
    this.#bytes = 0;
    // The partition is lost, or its log began anew: answers for these come too late.
    this.#inHand.clear();
  }

  /** By the clocks of all brokers; or, where its time counts from its append here, by a later append here. */
  #isDue({ dueMs, isFirst, record }: Held): boolean {
    if (dueMs <= this.kit.nowMs()) return true;
    return isFirst && dueMs <= this.#appendedMs && record.leaderEpoch === this.#leaderEpoch;
  }

  #free({ bytes }: Held): void {
    this.#entries -= 1;
    this.#bytes -= bytes;
    this.#room.entries -= 1;
    this.#room.bytes -= bytes;
  }
}

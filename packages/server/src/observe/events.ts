import type { EngineEvent } from '@redrive/engine';
import type { Clock } from 'redrive';
import type { EventFeed } from '../service-context.ts';
import { snakeCase } from './metrics/names.ts';
import { withoutCredentials } from './log/redact.ts';

interface FeedOptions {
  instance: string;
  clock: Clock;
  /** Calls back soon, after what is ready now: what happens together is written together. */
  defer?: (callback: () => void) => void;
}

/** How many events are remembered, for readers that come back. */
const KEPT = 10_000;
/** So many at once, so that a reader that catches up leaves time for others, and for its connection. */
const CHUNK = 500;

interface Reader {
  /** The number of the first event that it has not got. */
  next: number;
  write: (text: string) => void;
}

/**
 * What happens in the engine, as server-sent events. Until somebody reads, an event costs a place in a ring; its text is
 * made when it is first read, and once for all readers that are at the same place.
 */
export class Feed implements EventFeed {
  readonly #instance: string;
  readonly #clock: Clock;
  readonly #defer: (callback: () => void) => void;
  readonly #events: (EngineEvent | undefined)[] = Array.from({ length: KEPT });
  readonly #times = new Float64Array(KEPT);
  readonly #readers = new Set<Reader>();
  readonly #first: number;
  /** The number of the next event. */
  #next: number;
  #isScheduled = false;
  #latest: { from: number; to: number; text: string } | undefined;

  constructor({ instance, clock, defer }: FeedOptions) {
    this.#instance = instance;
    this.#clock = clock;
    this.#defer = defer ?? ((callback) => void setImmediate(callback));
    // Above all numbers that an earlier process of the same name has given.
    this.#first = Math.floor(clock.now()) * 1000;
    this.#next = this.#first;
  }

  get readers(): number {
    return this.#readers.size;
  }

  add(event: EngineEvent): void {
    const place = this.#next % KEPT;
    this.#events[place] = event;
    this.#times[place] = this.#clock.now();
    this.#next += 1;
    if (this.#readers.size > 0) this.#schedule();
  }

  read(lastEventId: string | undefined, write: (text: string) => void): () => void {
    const next = lastEventId === undefined ? undefined : this.#after(lastEventId);
    const reader: Reader = { next: next ?? this.#next, write };
    // Without an event: a reader that is cut off before the first one knows where it was.
    if (lastEventId === undefined) write(`id: ${this.#idOf(this.#next - 1)}\n\n`);
    else if (next === undefined) write(this.#reset());
    this.#readers.add(reader);
    if (reader.next < this.#next) this.#schedule();
    return () => void this.#readers.delete(reader);
  }

  /** Forgets its readers: they get nothing any more. */
  close(): void {
    this.#readers.clear();
  }

  get #oldest(): number {
    return Math.max(this.#first, this.#next - KEPT);
  }

  /** The number that follows that id, where all that came since is still known. */
  #after(id: string): number | undefined {
    const dash = id.lastIndexOf('-');
    if (dash < 0 || id.slice(0, dash) !== this.#instance) return undefined;
    const digits = id.slice(dash + 1);
    const next = /^\d{1,16}$/.test(digits) ? Number(digits) + 1 : Number.NaN;
    return next >= this.#oldest && next <= this.#next ? next : undefined;
  }

  #idOf(number: number): string {
    return `${this.#instance}-${number}`;
  }

  #reset(): string {
    return `id: ${this.#idOf(this.#next - 1)}\nevent: reset\ndata: {}\n\n`;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#defer(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    let isMore = false;
    for (const reader of this.#readers) {
      if (reader.next < this.#oldest) {
        reader.next = this.#next;
        reader.write(this.#reset());
        continue;
      }
      const to = Math.min(reader.next + CHUNK, this.#next);
      if (to === reader.next) continue;
      const from = reader.next;
      reader.next = to;
      isMore ||= to < this.#next;
      reader.write(this.#text(from, to));
    }
    this.#latest = undefined;
    if (isMore) this.#schedule();
  }

  #text(from: number, to: number): string {
    if (this.#latest?.from === from && this.#latest.to === to) return this.#latest.text;
    let text = '';
    let atMs = Number.NaN;
    let at = '';
    for (let number = from; number < to; number++) {
      const place = number % KEPT;
      const event = this.#events[place]!;
      // Many happen in the same millisecond.
      if (this.#times[place] !== atMs) {
        atMs = this.#times[place]!;
        at = new Date(atMs).toISOString();
      }
      text += `id: ${this.#idOf(number)}\nevent: ${snakeCase(event.type)}\ndata: ${dataOf(event, at)}\n\n`;
    }
    this.#latest = { from, to, text };
    return text;
  }
}

/** Made by us, and of a known form; any other text may quote somebody. */
const plainNames = new Set(['id', 'lane', 'reason']);

/** Numbers, words and switches only: what is larger may have a payload in it. */
function dataOf(event: EngineEvent, at: string): string {
  let data = `{"at":"${at}"`;
  let name: keyof typeof event;
  for (name in event) {
    const value: unknown = event[name];
    if (name === 'type' || value === undefined || typeof value === 'object') continue;
    const isText = typeof value === 'string' && !plainNames.has(name);
    const written = JSON.stringify(isText ? withoutCredentials(value) : value);
    data += `,"${(name as string) === 'id' ? 'message_id' : snakeCase(name)}":${written}`;
  }
  return `${data}}`;
}

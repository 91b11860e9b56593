/** What a consumer has received and nobody has settled yet. Pure. */
import type { Received } from '../../../ports/broker.ts';
import type { TopicReader } from './consumer.ts';

export interface Holding {
  received: Received;
  readonly reader: TopicReader;
  readonly offset: number;
  readonly bytes: number;
}

/** The handle of one delivery: another delivery of the same record has another one. */
export interface Tag {
  readonly holding: Holding;
}

export class Held {
  /** Handed over. */
  readonly #handed = new Set<Holding>();
  /** Read, and not handed over yet. */
  #waiting: Holding[] = [];
  #bytes = 0;

  get handedCount(): number {
    return this.#handed.size;
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  add(holding: Holding): void {
    this.#waiting.push(holding);
  }

  /** The next one, if it fits: one always does. It counts as handed over from now on. */
  take(maxMessages: number, maxBytes: number): Received | undefined {
    const next = this.#waiting[0];
    if (!next || this.#handed.size >= maxMessages) return undefined;
    if (this.#handed.size > 0 && this.#bytes + next.bytes > maxBytes) return undefined;
    this.#waiting.shift();
    this.#handed.add(next);
    this.#bytes += next.bytes;
    return next.received;
  }

  /** Undefined: this delivery was settled before, or is gone. */
  settle({ tag }: Received): Holding | undefined {
    const { holding } = tag as Tag;
    if (holding.received.tag !== tag || !this.#handed.delete(holding)) return undefined;
    this.#bytes -= holding.bytes;
    return holding;
  }

  /** Before all others, and said to be so. */
  handAgain(holding: Holding): void {
    const tag: Tag = { holding };
    holding.received = { ...holding.received, tag, redelivered: true };
    const at = this.#waiting.findIndex(
      ({ reader, offset }) => reader === holding.reader && offset > holding.offset,
    );
    this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, holding);
  }

  /** Drops what is not handed over yet of a partition. */
  dropWaiting(reader: TopicReader): void {
    this.#waiting = this.#waiting.filter((holding) => holding.reader !== reader);
  }

  /** The partition is gone: what was handed over of it comes again somewhere. */
  drop(reader: TopicReader): void {
    this.dropWaiting(reader);
    for (const holding of this.#handed) {
      if (holding.reader !== reader) continue;
      this.#handed.delete(holding);
      this.#bytes -= holding.bytes;
      holding.received.gone = true;
    }
  }

  hasHanded(reader: TopicReader): boolean {
    for (const holding of this.#handed) if (holding.reader === reader) return true;
    return false;
  }
}

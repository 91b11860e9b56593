/** What a consumer has received and nobody has settled yet, by its sequence in the stream. Pure. */
import type { Received } from '../../ports/broker.ts';

export interface Holding {
  received: Received;
  /** Where words about it go. */
  reply: string;
  bytes: number;
  isHanded: boolean;
}

/** The handle of one delivery: another delivery of the same message has another one. */
export interface Tag {
  readonly sequence: number;
}

export class Held {
  readonly #holdings = new Map<number, Holding>();
  /** Complete, and not handed over yet. */
  #complete: Holding[] = [];
  #bytes = 0;
  #handed = 0;

  get size(): number {
    return this.#holdings.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Something was handed over and is not settled. */
  get hasHanded(): boolean {
    return this.#handed > 0;
  }

  add(received: Received, reply: string, bytes: number): Holding {
    const holding: Holding = { received, reply, bytes, isHanded: false };
    this.#holdings.set(sequenceOf(received), holding);
    this.#bytes += bytes;
    return holding;
  }

  /** The same message came again. False: it is not here. */
  renew(sequence: number, reply: string): boolean {
    const holding = this.#holdings.get(sequence);
    if (holding) holding.reply = reply;
    return holding !== undefined;
  }

  /** It can be handed over, with the bytes that it has now. */
  complete(holding: Holding, bytes: number): void {
    if (this.#holdings.get(sequenceOf(holding.received)) !== holding) return;
    this.#bytes += bytes - holding.bytes;
    holding.bytes = bytes;
    this.#complete.push(holding);
  }

  /** What is complete. It counts as handed over from now on. */
  take(): Received[] {
    const taken = this.#complete;
    this.#complete = [];
    for (const holding of taken) holding.isHanded = true;
    this.#handed += taken.length;
    return taken.map(({ received }) => received);
  }

  /** Where to say it; undefined: this delivery was settled before, or was never handed over. */
  settle({ tag }: Received): string | undefined {
    const { sequence } = tag as Tag;
    const holding = this.#holdings.get(sequence);
    if (!holding?.isHanded || holding.received.tag !== tag) return undefined;
    this.#holdings.delete(sequence);
    this.#bytes -= holding.bytes;
    this.#handed -= 1;
    return holding.reply;
  }

  /** In the order in which they came. */
  replies(): string[] {
    return Array.from(this.#holdings.values(), ({ reply }) => reply);
  }

  clear(): void {
    this.#holdings.clear();
    this.#complete = [];
    this.#bytes = 0;
    this.#handed = 0;
  }
}

function sequenceOf({ tag }: Received): number {
  return (tag as Tag).sequence;
}

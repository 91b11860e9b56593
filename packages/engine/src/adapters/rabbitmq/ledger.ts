import type { Published } from '../../ports/broker.ts';

export type Answer = (published: Published) => void;

/** Messages that were sent together and have one time limit. */
export interface Batch {
  /** Those without an answer. */
  left: number;
  timer?: unknown;
}

interface Entry {
  readonly answer: Answer;
  readonly batch: Batch;
  isReturned: boolean;
}

/** What is on its way over one channel, by the number that the broker counts it by. */
export class Ledger {
  readonly #entries = new Map<number, Entry>();
  readonly #onDone: (batch: Batch) => void;
  #last = 0;

  /** Told when the last message of a batch has its answer. */
  constructor(onDone: (batch: Batch) => void) {
    this.#onDone = onDone;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The number that the next message will have. */
  get next(): number {
    return this.#last + 1;
  }

  /** It was sent: whatever becomes of it, the broker has counted it. */
  add(answer: Answer, batch: Batch): void {
    this.#last += 1;
    batch.left += 1;
    this.#entries.set(this.#last, { answer, batch, isReturned: false });
  }

  /** Nobody was there. The broker says so before it confirms the message. */
  returned(seq: number): void {
    const entry = this.#entries.get(seq);
    if (entry) entry.isReturned = true;
  }

  /** An answer for one, or for all up to it. What nobody waits for any more is ignored. */
  settle(seq: number, isMultiple: boolean, published: Published): void {
    if (!isMultiple) return this.#settle(seq, published);
    for (const one of this.#entries.keys()) {
      if (one > seq) return;
      this.#settle(one, published);
    }
  }

  /** Nobody waits for these any more: an answer that comes later is ignored, and taken for no other message's. */
  giveUp(published: Published, batch?: Batch): void {
    for (const [seq, entry] of this.#entries) {
      if (batch === undefined || entry.batch === batch) this.#settle(seq, published);
    }
  }

  #settle(seq: number, published: Published): void {
    const entry = this.#entries.get(seq);
    if (!entry) return;
    const { answer, batch, isReturned } = entry;
    this.#entries.delete(seq);
    answer(isReturned ? { outcome: 'unroutable' } : published);
    batch.left -= 1;
    if (batch.left === 0) this.#onDone(batch);
  }
}

/** What really happened, written down by the test itself: by those who send, by those who receive, by whoever makes the trouble. */
import type { Plan } from './plans.ts';

export interface Sent {
  readonly plan: Plan;
  readonly atMs: number;
  /** When its producer says that it is due. */
  readonly dueAtMs?: number;
  /** The broker has it. What is not confirmed may be there or not. */
  isConfirmed: boolean;
}

/** A delivery to the queue that a message came from. */
export interface Receipt {
  readonly number: number;
  readonly id: string;
  readonly count: number;
  readonly queue: string;
  readonly atMs: number;
  /** The broker has handed it over before: its acknowledgement was lost. */
  readonly isRedelivered: boolean;
  /** It is what was sent, byte for byte. */
  readonly isIntact: boolean;
}

/** A consumer failed a delivery of this count, and sent the message back. */
export interface SentBack {
  readonly number: number;
  readonly count: number;
  readonly atMs: number;
  isConfirmed: boolean;
}

/** A message of the review queue. */
export interface Review {
  readonly number: number;
  readonly id: string;
  readonly reason: string;
  readonly isRedelivered: boolean;
  readonly atMs: number;
}

export interface Trouble {
  readonly what: TroubleKind;
  readonly fromMs: number;
  /** When whatever was taken away was back. */
  readonly toMs: number;
}

export type TroubleKind =
  | 'service killed'
  | 'service stopped'
  | 'broker restarted'
  | 'broker killed'
  | 'broker blocked'
  | 'broker cut'
  | 'confirm lost'
  | 'database restarted'
  | 'database killed'
  | 'database cut'
  | 'commit cut';

export class Journal {
  readonly sent: Sent[] = [];
  readonly receipts: Receipt[] = [];
  readonly sentBack: SentBack[] = [];
  readonly reviews: Review[] = [];
  readonly troubles: Trouble[] = [];
  /** What has come to its end, by number: taken by its consumer, or told of in the review queue. */
  readonly #ended = new Set<number>();

  receive(receipt: Receipt, isTaken: boolean): void {
    this.receipts.push(receipt);
    if (isTaken) this.#ended.add(receipt.number);
  }

  review(review: Review): void {
    this.reviews.push(review);
    this.#ended.add(review.number);
  }

  /** Of what was confirmed to its producer: what has not come to its end. */
  outstanding(): number[] {
    return this.sent
      .filter(({ isConfirmed, plan }) => isConfirmed && !this.#ended.has(plan.number))
      .map(({ plan }) => plan.number);
  }

  async trouble(what: TroubleKind, make: () => Promise<unknown>): Promise<void> {
    const fromMs = Date.now();
    await make();
    this.troubles.push({ what, fromMs, toMs: Date.now() });
  }
}

/** What the demo knows: counted from the events of the service, lane by lane. */
import { type ReceiverName, names } from './receivers.ts';
import type { LaneCounts, Lanes } from './story.ts';

/** An event of the service, as its stream tells it. */
export interface FeedEvent {
  type: string;
  lane?: string;
}

const KEPT_STEPS = 60;

export class Board {
  readonly #counts: Record<ReceiverName, LaneCounts>;
  readonly #names: ReadonlyMap<string, ReceiverName>;
  /** Deliveries by step, the present one last. */
  readonly #steps: Record<ReceiverName, number[]>;

  /** `urls`: a lane is the origin of one of them. */
  constructor(urls: Readonly<Record<ReceiverName, string>>) {
    this.#names = new Map(names.map((name) => [new URL(urls[name]).origin, name]));
    this.#counts = forEach(() => ({
      accepted: 0,
      delivered: 0,
      retries: 0,
      inbox: 0,
      state: 'closed',
    }));
    this.#steps = forEach(() => [0]);
  }

  get lanes(): Lanes {
    return this.#counts;
  }

  /** How many were delivered in each of the last steps, oldest first; the present one is not over. */
  history(name: ReceiverName, length: number): readonly number[] {
    return length > 0 ? this.#steps[name].slice(0, -1).slice(-length) : [];
  }

  see({ type, lane = '' }: FeedEvent): void {
    const name = this.#names.get(lane);
    if (name === undefined) return;
    const counts = this.#counts[name];
    if (type === 'accepted') counts.accepted += 1;
    else if (type === 'retry') counts.retries += 1;
    else if (type === 'failed') counts.inbox += 1;
    else if (type === 'done') {
      counts.delivered += 1;
      const steps = this.#steps[name];
      steps[steps.length - 1]! += 1;
    }
  }

  seeStates(reports: readonly { lane: string; state: string }[]): void {
    for (const { lane, state } of reports) {
      const name = this.#names.get(lane);
      if (name !== undefined) this.#counts[name].state = state;
    }
  }

  /** The next step of the history begins. */
  step(): void {
    for (const name of names) {
      this.#steps[name].push(0);
      if (this.#steps[name].length > KEPT_STEPS) this.#steps[name].shift();
    }
  }
}

function forEach<T>(make: () => T): Record<ReceiverName, T> {
  return Object.fromEntries(names.map((name) => [name, make()])) as Record<ReceiverName, T>;
}

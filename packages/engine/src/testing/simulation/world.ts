import type { Clock, Random } from 'redrive';
import { seededRandom } from 'redrive/testing';

/** Something that lives in the world and may die: its timers die with it. */
export interface Being {
  isAlive: boolean;
}

/** A made-up world: one time, one source of chance, and everything that happens in it one after the other. */
export class World {
  readonly random: Random;
  nowMs = 0;
  /** Steps so far: an upper bound on them finds what never comes to rest. */
  steps = 0;
  readonly #events: WorldEvent[] = [];
  #sequence = 0;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  /** A whole number from `min` to `max`. */
  between(min: number, max: number): number {
    return min + Math.floor(this.random() * (max - min + 1));
  }

  pick<T>(options: readonly T[]): T {
    return options[this.between(0, options.length - 1)]!;
  }

  at(inMs: number, being: Being, call: () => void): WorldEvent {
    this.#sequence += 1;
    const event = { atMs: this.nowMs + Math.max(0, inMs), sequence: this.#sequence, being, call };
    insert(this.#events, event);
    return event;
  }

  cancel(event: unknown): void {
    const index = this.#events.indexOf(event as WorldEvent);
    if (index >= 0) this.#events.splice(index, 1);
  }

  /** Resolves after that time; for one who died meanwhile, never. */
  sleep(inMs: number, being: Being): Promise<void> {
    return new Promise((resolve) => {
      this.at(inMs, being, resolve);
    });
  }

  /**
   * Lets one thing after the other happen, and after each all that follows from it at once, until `isOver` or nothing is
   * left. Node settles all promises that can settle between two immediates, and many immediates share one turn of its loop.
   */
  run(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let isEnded = false;
      const step = () => {
        if (isEnded) return;
        try {
          isEnded = isOver() || !this.#step();
        } catch (error) {
          isEnded = true;
          reject(error);
        }
      };
      const turn = () => {
        if (isEnded) return resolve();
        for (let i = 0; i < STEPS_PER_TURN; i++) setImmediate(step);
        setImmediate(turn);
      };
      turn();
    });
  }

  /** False: nothing is left. */
  #step(): boolean {
    const event = this.#events.shift();
    if (!event) return false;
    this.steps += 1;
    this.nowMs = event.atMs;
    if (event.being.isAlive) event.call();
    return true;
  }

  /** The clock of one being. Its wall time may be wrong and may jump; its monotonic time never does. */
  clockOf(being: Being, skew: { ms: number }): Clock {
    return {
      now: () => EPOCH_MS + this.nowMs + skew.ms,
      monotonic: () => this.nowMs,
      setTimer: (callback, ms) => this.at(ms, being, callback),
      clearTimer: (timer) => this.cancel(timer),
    };
  }
}

interface WorldEvent {
  atMs: number;
  sequence: number;
  being: Being;
  call: () => void;
}

const STEPS_PER_TURN = 50;
const EPOCH_MS = 1_700_000_000_000;

function insert(events: WorldEvent[], event: WorldEvent): void {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle]!.atMs <= event.atMs) low = middle + 1;
    else high = middle;
  }
  events.splice(low, 0, event);
}

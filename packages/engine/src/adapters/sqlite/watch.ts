import type { Clock } from 'redrive';
import { reportFault } from 'redrive/internal';
import type { Hint } from '../../ports/schedule.ts';

/** How often to look whether another process has written. */
const LOOK_EVERY_MS = 100;

/** Who wants to know when something may be due earlier: told at once of this store's own writes, soon of others'. */
export class Watchers {
  readonly #clock: Clock;
  readonly #version: () => number | undefined;
  readonly #listeners = new Set<{ call: (hint: Hint) => void }>();
  #timer: unknown;
  #seen: number | undefined;

  /** `version` changes when another connection has written; undefined: the file is not open. */
  constructor(clock: Clock, version: () => number | undefined) {
    this.#clock = clock;
    this.#version = version;
  }

  add(call: (hint: Hint) => void): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    this.resume();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.pause();
    };
  }

  /** Looks for others' writes, while somebody wants to know. */
  resume(): void {
    if (this.#timer !== undefined || this.#listeners.size === 0) return;
    this.#seen ??= this.#look();
    this.#timer = this.#clock.setTimer(
      () => {
        this.#timer = undefined;
        const version = this.#look();
        const isNews = version !== this.#seen;
        this.#seen = version;
        if (isNews) this.tell({});
        this.resume();
      },
      LOOK_EVERY_MS,
      true,
    );
  }

  pause(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#seen = undefined;
  }

  tell(hint: Hint): void {
    for (const { call } of this.#listeners) {
      try {
        call(hint);
      } catch (error) {
        reportFault('a watcher of the store threw', error);
      }
    }
  }

  /** A file that cannot be read just now says nothing: the next call that needs it says why. */
  #look(): number | undefined {
    try {
      return this.#version();
    } catch {
      return undefined;
    }
  }
}

/** Gathers what one commit made due, for one hint. */
export class Wake {
  readonly #lanes = new Set<string>();
  #firstMs = Infinity;

  add(lane: string, visibleAtMs: number): void {
    this.#lanes.add(lane);
    if (visibleAtMs < this.#firstMs) this.#firstMs = visibleAtMs;
  }

  hint(nowMs: number): Hint | undefined {
    if (this.#lanes.size === 0) return undefined;
    return { lanes: [...this.#lanes], inMs: Math.max(0, this.#firstMs - nowMs) };
  }
}

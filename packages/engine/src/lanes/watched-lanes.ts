import type { Log } from '../host.ts';

/** A lane that somebody serves beside the engine. */
export interface WatchedLane {
  /** Told whether it is paused: once, and when that changes. */
  paused: (isPaused: boolean) => void;
  /** Deliveries of this instance. */
  running: () => number;
}

/** Lanes that others serve. They are paused and resumed as those of the engine, by the same documents. */
export class WatchedLanes {
  readonly #lanes = new Map<string, WatchedLane & { isPaused?: boolean }>();
  readonly #isPaused: (name: string) => boolean;
  readonly #log: Log;

  constructor(isPaused: (name: string) => boolean, log: Log) {
    this.#isPaused = isPaused;
    this.#log = log;
  }

  get names(): Iterable<string> {
    return this.#lanes.keys();
  }

  of(name: string): WatchedLane | undefined {
    return this.#lanes.get(name);
  }

  /** Answers how to end it. */
  add(name: string, lane: WatchedLane): () => void {
    const own = { ...lane };
    this.#lanes.set(name, own);
    this.tell();
    return () => {
      if (this.#lanes.get(name) === own) this.#lanes.delete(name);
    };
  }

  /** The documents may have changed. */
  tell(): void {
    for (const [name, lane] of this.#lanes) {
      const isPaused = this.#isPaused(name);
      if (lane.isPaused === isPaused) continue;
      lane.isPaused = isPaused;
      try {
        lane.paused(isPaused);
      } catch (err) {
        // The pauses of other lanes are told all the same.
        this.#log.error({ err, lane: name }, 'the callback of a watched lane failed');
      }
    }
  }
}

import { setImmediate as turn } from 'node:timers/promises';
import type { EngineStats } from '../engine.ts';
import type { EngineEvent } from '../events.ts';

/** What an engine does takes a few turns of the host's loop: after so many without a change nothing more will come. */
const STILL_TURNS = 10;
/** More executions than this in one go is a loop, not a test. */
const MAX_EVENTS = 30_000;

/** Knows when an engine has nothing more to do at this moment of virtual time. */
export class Stillness {
  readonly #stats: () => EngineStats;
  readonly #patienceMs: number;
  readonly #running = new Map<string, string>();
  #events = 0;
  /** What runs was waited for in vain until this event: not again before another one. */
  #waitedUntil = -1;

  constructor(stats: () => EngineStats, patienceMs: number) {
    this.#stats = stats;
    this.#patienceMs = patienceMs;
  }

  saw(event: EngineEvent): void {
    this.#events += 1;
    if (event.type === 'started') this.#running.set(event.id, `${event.id} (${event.lane})`);
    else if ('id' in event && event.type !== 'accepted' && event.type !== 'duplicate') {
      this.#running.delete(event.id);
    }
  }

  /**
   * Resolves when nothing happens any more, with what still runs: a handler that waits for time to pass, or is slow.
   * Those are waited for by the real clock, once, as long as the patience lasts.
   */
  async reached(): Promise<string[]> {
    const firstEvent = this.#events;
    let lastEvent = this.#events;
    let lastMs = performance.now();
    for (let turns = 0; ; turns++) {
      await turn();
      if (this.#events !== lastEvent) {
        lastEvent = this.#events;
        lastMs = performance.now();
        turns = 0;
      }
      if (lastEvent - firstEvent > MAX_EVENTS) {
        throw new Error(`${MAX_EVENTS} events without an end: is something submitting itself?`);
      }
      if (turns < STILL_TURNS) continue;
      const { held, running, unsettled } = this.#stats();
      // What is held and does not run waits for time to pass.
      if ((held === 0 || running === 0) && unsettled === 0) return [];
      if (this.#waitedUntil === lastEvent || performance.now() - lastMs > this.#patienceMs) {
        this.#waitedUntil = lastEvent;
        return [...this.#running.values()];
      }
    }
  }
}

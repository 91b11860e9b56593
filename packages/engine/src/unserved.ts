import type { Log } from './host.ts';

const MAX_WARNED = 100;

/** Tells once of each lane that has tasks and that nobody in this process delivers to: it may be a slip. */
export class UnservedLanes {
  readonly #log: Log;
  readonly #warned = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  saw(lane: string): void {
    if (this.#warned.has(lane) || this.#warned.size >= MAX_WARNED) return;
    this.#warned.add(lane);
    this.#log.warn({ lane }, 'nobody delivers there in this process: it waits for one who does');
  }
}

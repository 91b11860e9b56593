import type { Log } from '../host.ts';

const MAX_WARNED = 100;

/** Warns once about each lane that has tasks and that this process cannot deliver to: its name may be misspelt. */
export class UnservedLanes {
  readonly #log: Log;
  readonly #warned = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  saw(lane: string): void {
    if (this.#warned.has(lane) || this.#warned.size >= MAX_WARNED) return;
    this.#warned.add(lane);
    this.#log.warn(
      { lane },
      'this process cannot deliver to a lane that has tasks: they wait for another instance',
    );
  }
}

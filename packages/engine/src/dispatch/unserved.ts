import { nearest } from 'redrive/internal';
import type { Log } from '../host.ts';

const MAX_KNOWN = 100;
const HANDLER = 'handler:';

/** Warns once about each lane that gets tasks and that this process cannot deliver to: its name may be misspelt. */
export class UnservedLanes {
  readonly #log: Log;
  readonly #handlers: ReadonlyMap<string, unknown>;
  /** With the name that may be meant. */
  readonly #known = new Map<string, string | undefined>();

  constructor(log: Log, handlers: ReadonlyMap<string, unknown>) {
    this.#log = log;
    this.#handlers = handlers;
  }

  /** A task was stored for it. `isStarted`: this process delivers; one that only submits does so for others. */
  saw(lane: string, isStarted: boolean): void {
    const isHandler = lane.startsWith(HANDLER) && this.#handlers.size > 0;
    if (!(isStarted || isHandler) || this.#known.has(lane) || this.#known.size >= MAX_KNOWN) return;
    const near = isHandler ? this.#nearTo(lane) : undefined;
    this.#known.set(lane, near);
    const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
    this.#log.warn(
      { lane, ...(near === undefined ? {} : { near }) },
      `this process cannot deliver to ${lane}: its tasks wait for a process that can.${hint}`,
    );
  }

  /** For whoever submitted a task there: a sentence where the name is probably a slip, or nobody here delivers such. */
  warningFor(lane: string): string | undefined {
    if (!this.#known.has(lane)) return undefined;
    const near = this.#known.get(lane);
    if (near === undefined) {
      if (lane.startsWith(HANDLER)) return undefined;
      return `This process cannot deliver to '${lane}', so the task waits for another one. Is its broker configured?`;
    }
    const name = lane.slice(HANDLER.length);
    return `There is no handler '${name}' in this process, so the task waits for another one. Did you mean '${near}'?`;
  }

  #nearTo(lane: string): string | undefined {
    return nearest(lane.slice(HANDLER.length), [...this.#handlers.keys()]);
  }
}

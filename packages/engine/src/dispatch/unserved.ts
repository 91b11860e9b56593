import { nearest } from 'redrive/internal';
import type { Log } from '../host.ts';

const MAX_KNOWN = 100;
const HANDLER = 'handler:';

interface Options {
  log: Log;
  handlers: ReadonlyMap<string, unknown>;
  /** False: this process leaves all deliveries to others. */
  dispatches: boolean;
}

/** Warns once about each lane that gets tasks and that this process cannot deliver to: its name may be misspelt. */
export class UnservedLanes {
  readonly #log: Log;
  readonly #handlers: ReadonlyMap<string, unknown>;
  readonly #dispatches: boolean;
  #isStarted = false;
  /** With the name that may be meant. */
  readonly #known = new Map<string, string | undefined>();
  /** Lanes about which only a process that delivers warns, as long as it is not known whether this is one. */
  readonly #early = new Set<string>();

  constructor({ log, handlers, dispatches }: Options) {
    this.#log = log;
    this.#handlers = handlers;
    this.#dispatches = dispatches;
  }

  /** From now on this process delivers. */
  started(serves: (lane: string) => boolean): void {
    this.#isStarted = true;
    for (const lane of this.#early) if (!serves(lane)) this.saw(lane);
    this.#early.clear();
  }

  /** A task was stored for it. A process that only submits does so for others. */
  saw(lane: string): void {
    if (this.#known.has(lane) || this.#known.size >= MAX_KNOWN) return;
    if (!this.#isStarted && !this.#isOdd(lane)) {
      if (this.#dispatches && this.#early.size < MAX_KNOWN) this.#early.add(lane);
      return;
    }
    const near = this.#nearTo(lane);
    this.#known.set(lane, near);
    this.#log.warn(
      { lane, ...(near === undefined ? {} : { near }) },
      `this process cannot deliver to ${lane}: its tasks wait for a process that can.${hintFor(lane, near)}`,
    );
  }

  /** For whoever submitted a task there: a sentence where the name is probably a slip, or nobody here delivers such. */
  warningFor(lane: string): string | undefined {
    if (!this.#known.has(lane)) return undefined;
    const near = this.#known.get(lane);
    const waits = 'so the task waits for another one.';
    if (lane.startsWith(HANDLER)) {
      if (near === undefined) return undefined;
      const name = lane.slice(HANDLER.length);
      return `There is no handler '${name}' in this process, ${waits}${hintFor(lane, near)}`;
    }
    const hint = hintFor(lane, near) || ' Is its broker configured?';
    return `This process cannot deliver to '${lane}', ${waits}${hint}`;
  }

  /** Before the start: a process with handlers delivers, so that it probably means those; and no handler is named like a lane. */
  #isOdd(lane: string): boolean {
    if (lane.startsWith(HANDLER + HANDLER)) return true;
    if (this.#handlers.size === 0) return false;
    return lane.startsWith(HANDLER) || (isUrl(lane) && this.#dispatches);
  }

  #nearTo(lane: string): string | undefined {
    if (!lane.startsWith(HANDLER)) return undefined;
    const name = lane.slice(HANDLER.length);
    const near = (one: string) => nearest(one, [...this.#handlers.keys()]);
    // The name of a lane, as `pause` takes it.
    if (!name.startsWith(HANDLER)) return near(name);
    const bare = name.slice(HANDLER.length);
    return this.#handlers.has(bare) ? bare : (near(bare) ?? bare);
  }
}

function hintFor(lane: string, near: string | undefined): string {
  if (isUrl(lane)) return ' Add http() to `deliveries`.';
  return near === undefined ? '' : ` Did you mean '${near}'?`;
}

function isUrl(lane: string): boolean {
  return lane.startsWith('http://') || lane.startsWith('https://');
}

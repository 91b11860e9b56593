import type { Clock } from 'redrive';
import { EngineError } from '../errors.ts';
import { type LaneState, openLane, readLaneState, saysNothing } from './lane-state.ts';
import type { Schedule } from '../ports/schedule.ts';
import type { StoreClock } from '../store-clock.ts';

/** The state of a lane and the version of the document that says so; version 0: there is none. */
export interface SharedLane {
  state: LaneState;
  version: number;
}

const PREFIX = 'lane:';
/** Others may be faster now and then, but not for ever. */
const MAX_TRIES = 20;
const none: SharedLane = Object.freeze({ state: openLane, version: 0 });

/** The documents in the store by which all instances share the state of lanes. A lane without one is closed. */
export class LaneDocuments {
  readonly #schedule: Schedule;
  readonly #clock: Clock;
  readonly #time: StoreClock;
  readonly #read: () => void;
  #known = new Map<string, SharedLane>();
  /** What was written here since the last reading was asked for: its answer may be older. */
  #written = new Map<string, SharedLane>();
  #refreshing: Promise<void> | undefined;
  #refreshNext: Promise<void> | undefined;

  /** `read` is called after each reading. */
  constructor(schedule: Schedule, clock: Clock, time: StoreClock, read: () => void) {
    this.#schedule = schedule;
    this.#clock = clock;
    this.#time = time;
    this.#read = read;
  }

  of(lane: string): SharedLane {
    return this.#known.get(lane) ?? none;
  }

  /** The lanes that have a document. */
  get known(): ReadonlyMap<string, SharedLane> {
    return this.#known;
  }

  /** Reads all of them. One reading at a time, and one more for all who ask meanwhile. */
  refresh(): Promise<void> {
    if (this.#refreshing) {
      const again = () => {
        this.#refreshNext = undefined;
        return this.refresh();
      };
      return (this.#refreshNext ??= this.#refreshing.then(again, again));
    }
    this.#refreshing = this.#refresh().finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  /** False: somebody else was faster. */
  async write(lane: string, { state, version }: SharedLane): Promise<boolean> {
    if (!(await this.#schedule.writeState(PREFIX + lane, state, version))) return false;
    const shared = { state, version: version + 1 };
    this.#known.set(lane, shared);
    this.#written.set(lane, shared);
    return true;
  }

  /** Applies a move, however often others write at the same time. */
  async update(lane: string, move: (state: LaneState) => LaneState): Promise<void> {
    for (let tries = 0; ; tries++) {
      if (tries > MAX_TRIES)
        throw new EngineError(
          'STORE_UNAVAILABLE',
          `The state of ${lane} changes all the time. Try again.`,
        );
      await this.refresh();
      const { state, version } = this.of(lane);
      if (await this.write(lane, { state: move(state), version })) break;
    }
    await this.refresh();
  }

  /** Deletes documents of lanes that are closed, as those without a document are. Answers how many. */
  async prune(limit: number): Promise<number> {
    const idle: { key: string; version: number }[] = [];
    for (const [lane, { state, version }] of this.#known) {
      if (idle.length >= limit) break;
      if (saysNothing(state, this.#time.nowMs)) idle.push({ key: PREFIX + lane, version });
    }
    if (idle.length === 0) return 0;
    const dropped = await this.#schedule.dropState(idle);
    await this.refresh();
    return dropped;
  }

  async #refresh(): Promise<void> {
    const sentAt = this.#clock.monotonic();
    this.#written = new Map();
    const { nowMs, documents } = await this.#schedule.readState(PREFIX);
    this.#time.saw(nowMs, sentAt);
    const known = new Map<string, SharedLane>();
    for (const { key, value, version } of documents) {
      known.set(key.slice(PREFIX.length), { state: readLaneState(value), version });
    }
    for (const [lane, own] of this.#written) {
      if ((known.get(lane)?.version ?? 0) < own.version) known.set(lane, own);
    }
    this.#known = known;
    this.#read();
  }
}

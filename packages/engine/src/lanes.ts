import type { DefinedPolicy } from 'redrive';
import { EngineError } from './errors.ts';
import type { Host } from './host.ts';
import { LaneRate } from './lane-rate.ts';
import {
  type BreakerSettings,
  type LaneState,
  opened,
  openLane,
  paused,
  type Permit,
  permit,
  ramped,
  readLaneState,
  resumed,
} from './lane-state.ts';
import { pause } from './patience.ts';
import type { Outcome } from './ports/delivery.ts';
import type { Schedule } from './ports/schedule.ts';
import type { RateSettings } from './rate.ts';
import { StoreClock } from './store-clock.ts';
import type { Task } from './task.ts';

/** What this instance knows of one lane. */
export interface Lane {
  readonly name: string;
  readonly settings: LaneSettings;
  state: LaneState;
  /** The version of the shared document that `state` was read from. */
  version: number;
  /** Failures of the lane in a row, and which tasks they were of. */
  failures: number;
  failedTasks: Set<number>;
  /** Successes in the present round of probing. */
  clean: number;
  writing: boolean;
  /** Claimed and not started, oldest first. */
  queue: Entry[];
  running: Set<Entry>;
  /** Deliveries that ran out of time and have not really ended: they keep their slots for a while. */
  zombies: number;
  /** Local monotonic time when something may be visible; Infinity: nothing is known to wait. */
  dueAt: number;
  /** How long a delivery takes, smoothed; NaN: none has ended yet. */
  meanMs: number;
  /** Whether there is a way to its destination now. */
  readonly isReachable: () => boolean;
  /** Where its starts are limited. */
  readonly rate?: LaneRate;
}

type RatedLane = Lane & { readonly rate: LaneRate };

/** A task that this instance has leased. */
export interface Entry {
  readonly task: Task;
  readonly lane: Lane;
  /** What decides about it: looked up once, so that it stays the same while it is here. */
  readonly policy: DefinedPolicy;
  /** Local monotonic time until which the lease surely holds: counted from before it was asked for. */
  leaseUntil: number;
  /** Local monotonic time of the start; NaN: not started. */
  startedAt: number;
  /** Its delivery is to find out whether the lane works. */
  probing: boolean;
  abort?: AbortController;
  delivery?: Promise<Outcome>;
}

export interface LaneSettings {
  /** Deliveries at once in this instance. */
  concurrency: number;
  /** How long one delivery may take. */
  timeoutMs: number;
  /** Failures in a row that open the breaker. */
  failures: number;
  breaker: BreakerSettings;
  /** Starts per second, over all instances. */
  rate?: RateSettings;
}

const PREFIX = 'lane:';
/** Others may be faster now and then, but not for ever. */
const MAX_TRIES = 20;
/** After a write that failed, so that a store in trouble is not asked without end. */
const WRITE_PAUSE_MS = 1000;
/** Past this idle lanes are forgotten. */
const MAX_LANES = 10_000;

/** The lanes of this instance and their state, which is shared by all instances through the store. */
export class Lanes {
  readonly all = new Map<string, Lane>();
  /** Those of them whose starts are limited. */
  readonly rated = new Set<RatedLane>();
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #instance: string;
  readonly #settingsOf: (lane: string) => LaneSettings;
  readonly #reachOf: (lane: string) => () => boolean;
  readonly #changed: () => void;
  #states = new Map<string, { state: LaneState; version: number }>();
  readonly #time: StoreClock;
  #refreshing: Promise<void> | undefined;
  #refreshNext: Promise<void> | undefined;

  constructor(
    schedule: Schedule,
    host: Host,
    instance: string,
    settingsOf: (lane: string) => LaneSettings,
    reachOf: (lane: string) => () => boolean,
    changed: () => void,
  ) {
    this.#schedule = schedule;
    this.#host = host;
    this.#time = new StoreClock(host.clock);
    this.#instance = instance;
    this.#settingsOf = settingsOf;
    this.#reachOf = reachOf;
    this.#changed = changed;
  }

  /** The store's time, never ahead of it. */
  get nowMs(): number {
    return this.#time.nowMs;
  }

  /** Learns the store's time from an answer that just came, to what was asked at `sentAt`. */
  sawTime(nowMs: number, sentAt: number): void {
    this.#time.saw(nowMs, sentAt);
  }

  get(name: string): Lane {
    const known = this.all.get(name);
    if (known) return known;
    const shared = this.#states.get(name) ?? { state: openLane, version: 0 };
    const settings = this.#settingsOf(name);
    const lane: Lane = {
      name,
      settings,
      ...shared,
      failures: 0,
      failedTasks: new Set(),
      clean: 0,
      writing: false,
      queue: [],
      running: new Set(),
      zombies: 0,
      dueAt: Infinity,
      meanMs: NaN,
      isReachable: this.#reachOf(name),
    };
    const made = settings.rate ? this.#rate(lane, settings.rate) : lane;
    this.all.set(name, made);
    return made;
  }

  /** Others are looked at before it next time. */
  toBack(lane: Lane): void {
    this.all.delete(lane.name);
    this.all.set(lane.name, lane);
  }

  /** Forgets lanes in which nothing waits or runs, once there are very many; their state stays in the store. */
  forgetIdle(): void {
    if (this.all.size <= MAX_LANES) return;
    for (const { name, queue, running, zombies, writing, dueAt } of this.all.values()) {
      const isIdle = queue.length + running.size + zombies === 0 && !writing && dueAt === Infinity;
      if (isIdle) this.all.delete(name);
    }
    for (const lane of this.rated) if (!this.all.has(lane.name)) this.rated.delete(lane);
  }

  /** Reads the state of all lanes from the store. One reading at a time, and one more for all who ask meanwhile. */
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

  async #refresh(): Promise<void> {
    const sentAt = this.#host.clock.monotonic();
    const { nowMs, documents } = await this.#schedule.readState(PREFIX);
    this.sawTime(nowMs, sentAt);
    this.#states = new Map(
      documents.map(({ key, value, version }) => [
        key.slice(PREFIX.length),
        { state: readLaneState(value), version },
      ]),
    );
    for (const lane of this.all.values()) {
      const shared = this.#states.get(lane.name);
      // An answer may be older than what was written since it was asked for.
      if (!lane.writing && shared && shared.version >= lane.version) {
        this.#adopt(lane, shared.state, shared.version);
      }
    }
    this.#changed();
  }

  /** What may be done with it now. To take one's turn at probing is written to the store first. */
  permit(lane: Lane): Permit {
    if (!lane.isReachable()) return { may: 'wait' };
    const { concurrency, breaker } = lane.settings;
    const granted = permit(lane.state, this.#instance, this.nowMs, concurrency, breaker);
    if (granted.may !== 'take') return granted;
    if (!lane.writing) void this.#write(lane, granted.state);
    return { may: 'wait' };
  }

  worked(lane: Lane): void {
    lane.failures = 0;
    lane.failedTasks.clear();
    const { breaker } = lane.state;
    if (breaker.state !== 'probing' || breaker.by !== this.#instance) return;
    lane.clean += 1;
    if (lane.clean < breaker.limit || lane.writing) return;
    const { concurrency, breaker: settings } = lane.settings;
    void this.#write(lane, ramped(lane.state, this.#instance, this.nowMs, concurrency, settings));
  }

  /** `ran`: it burnt an attempt. One task that keeps failing is its own trouble, not that of its lane. */
  failed(lane: Lane, taskId: number, ran: boolean): void {
    const { breaker } = lane.state;
    if (breaker.state === 'open') return;
    lane.failures += 1;
    if (lane.failedTasks.size < 2) lane.failedTasks.add(taskId);
    lane.clean = 0;
    const isProbe = breaker.state === 'probing' && breaker.limit === 1;
    const isMine = breaker.state === 'probing' && breaker.by === this.#instance;
    const isShared = lane.failedTasks.size > 1 || !ran;
    // The first probe decides alone. Later in the ramp a few tasks that keep failing must not close it to the others.
    const isDown = (isMine && isProbe) || (lane.failures >= lane.settings.failures && isShared);
    if (isDown) void this.#write(lane, opened(lane.state, this.nowMs, lane.settings.breaker));
  }

  async pause(name: string, by?: string): Promise<void> {
    await this.#update(name, (state) => paused(state, this.nowMs, by));
  }

  async resume(name: string): Promise<void> {
    await this.#update(name, resumed);
  }

  #rate(lane: Lane, settings: RateSettings): Lane {
    const parts = { schedule: this.#schedule, host: this.#host, changed: this.#changed };
    const rated = {
      ...lane,
      rate: new LaneRate(lane.name, settings, { ...parts, time: this.#time }),
    };
    this.rated.add(rated);
    return rated;
  }

  async #update(name: string, move: (state: LaneState) => LaneState): Promise<void> {
    for (let tries = 0; ; tries++) {
      if (tries > MAX_TRIES)
        throw new EngineError(
          'STORE_UNAVAILABLE',
          `The state of ${name} changes all the time. Try again.`,
        );
      await this.refresh();
      const { state, version } = this.#states.get(name) ?? { state: openLane, version: 0 };
      if (await this.#schedule.writeState(PREFIX + name, move(state), version)) break;
    }
    await this.refresh();
  }

  /** Local at once, so that nothing more starts; then shared. Where somebody was faster, theirs holds. */
  async #write(lane: Lane, state: LaneState): Promise<void> {
    const { version } = lane;
    // A turn at probing begins only when it is certain that nobody else has it.
    if (state.breaker.state !== 'probing') this.#adopt(lane, state, version);
    lane.writing = true;
    let isWritten = false;
    try {
      isWritten = await this.#schedule.writeState(PREFIX + lane.name, state, version);
    } catch (error) {
      this.#host.log.warn(
        { err: error, lane: lane.name },
        'the state of a lane could not be shared',
      );
      await pause(this.#host, WRITE_PAUSE_MS, new AbortController().signal);
    }
    lane.writing = false;
    if (isWritten) {
      this.#adopt(lane, state, version + 1);
      this.#say(lane.name, state);
      return this.#changed();
    }
    try {
      await this.refresh();
    } catch (error) {
      this.#host.log.warn({ err: error }, 'the state of the lanes could not be read');
    }
  }

  #say(lane: string, { breaker }: LaneState): void {
    if (breaker.state !== 'open') {
      this.#host.log.info({ lane, breaker: breaker.state }, 'lane changed');
      return;
    }
    const { openings, untilMs } = breaker;
    const until = new Date(untilMs).toISOString();
    this.#host.log.warn({ lane, openings, until }, 'a lane rests: too much failed there in a row');
  }

  #adopt(lane: Lane, state: LaneState, version: number): void {
    if (version !== lane.version || state.breaker.state !== lane.state.breaker.state) {
      lane.clean = 0;
      lane.failures = 0;
      lane.failedTasks.clear();
    }
    lane.state = state;
    lane.version = version;
  }
}

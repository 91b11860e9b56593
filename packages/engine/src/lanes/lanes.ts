import type { DefinedPolicy } from 'redrive';
import { DueLanes } from './due-lanes.ts';
import type { Host } from '../host.ts';
import { LaneDocuments, type SharedLane } from './lane-documents.ts';
import {
  afterFailure,
  afterSuccess,
  isOutage,
  type LaneHistory,
  newHistory,
  withoutRun,
} from './lane-history.ts';
import { LaneRate } from './lane-rate.ts';
import {
  type BreakerSettings,
  type LaneState,
  opened,
  paused,
  type Permit,
  permit,
  prolonged,
  ramped,
  resultOf,
  resumed,
  type Round,
} from './lane-state.ts';
import { pause } from '../patience.ts';
import type { Outcome } from '../ports/delivery.ts';
import type { Schedule } from '../ports/schedule.ts';
import type { RateSettings } from '../model/rate.ts';
import { StoreClock } from '../store-clock.ts';
import type { Task } from '../model/task.ts';
import { WatchedLanes } from './watched-lanes.ts';

/** What this instance knows of one lane. */
export interface Lane {
  readonly name: string;
  readonly settings: LaneSettings;
  state: LaneState;
  /** The version of the shared document that `state` was read from. */
  version: number;
  /** The outcomes of its deliveries, as far as this instance made them. */
  history: LaneHistory;
  /** Of probing, where it is this instance's turn. */
  round: Round & { taskId?: number };
  /** Local monotonic time when this turn began. */
  probingSince: number;
  writing: boolean;
  /** Claimed and not started, oldest first. */
  queue: Entry[];
  running: Set<Entry>;
  /** Deliveries that ran out of time and have not really ended: they keep their slots for a while. */
  zombies: number;
  /** The last claim left tasks behind that were due. */
  hasBacklog: boolean;
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
  /** Failures in a row that open the breaker of a lane that works otherwise. */
  failures: number;
  breaker: BreakerSettings;
  /** Starts per second, over all instances. */
  rate?: RateSettings;
}

/** After a write that failed, so that a store in trouble is not asked without end. */
const WRITE_PAUSE_MS = 1000;
/** So many lanes without work are remembered: how long their deliveries take, and how often they fail. */
const MAX_IDLE = 1000;

/** The lanes of this instance and their state, which is shared by all instances through the store. */
export class Lanes {
  /** Those that have work here now, or had some lately; the one that was due last is the last. */
  readonly all = new Map<string, Lane>();
  /** Those of them in whose queue somebody may be. */
  readonly queued = new Set<Lane>();
  /** Those of them whose starts are limited. */
  readonly rated = new Set<RatedLane>();
  readonly watched: WatchedLanes;
  readonly agenda = new DueLanes((name) => this.#touch(name));
  readonly documents: LaneDocuments;
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #instance: string;
  readonly #settingsOf: (lane: string) => LaneSettings;
  readonly #reachOf: (lane: string) => () => boolean;
  readonly #changed: () => void;
  readonly #time: StoreClock;
  #sweepAt = 2 * MAX_IDLE;

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
    this.documents = new LaneDocuments(schedule, host.clock, this.#time, () => this.#read());
    this.watched = new WatchedLanes((name) => !!this.documents.of(name).state.paused, host.log);
  }

  /** The store's time, never ahead of it. */
  get nowMs(): number {
    return this.#time.nowMs;
  }

  get skew(): { clockSkewMs?: number } {
    const { skewMs } = this.#time;
    return skewMs === undefined ? {} : { clockSkewMs: skewMs };
  }

  /** Learns the store's time from an answer that just came, to what was asked at `sentAt`. */
  sawTime(nowMs: number, sentAt: number): void {
    this.#time.saw(nowMs, sentAt);
  }

  get(name: string): Lane {
    const known = this.all.get(name);
    if (known) return known;
    if (this.all.size >= this.#sweepAt) this.#forgetIdle();
    const settings = this.#settingsOf(name);
    const lane: Lane = {
      name,
      settings,
      ...this.documents.of(name),
      history: newHistory,
      round: newRound(),
      probingSince: -Infinity,
      writing: false,
      queue: [],
      running: new Set(),
      zombies: 0,
      hasBacklog: false,
      meanMs: NaN,
      isReachable: this.#reachOf(name),
    };
    const made = settings.rate ? this.#rate(lane, settings.rate) : lane;
    this.all.set(name, made);
    return made;
  }

  refresh(): Promise<void> {
    return this.documents.refresh();
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

  /** Its lane may not be served now, although something is due there: it is not looked at again before that may change. */
  holdBack(lane: Lane, { untilMs = Infinity }: { untilMs?: number }): void {
    const inMs = Math.max(1, untilMs - this.nowMs);
    this.agenda.holdBack(lane, this.#host.clock.monotonic() + inMs);
  }

  worked({ lane, startedAt }: Entry): void {
    lane.history = afterSuccess(lane.history, startedAt, lane.settings);
    if (!this.#isMyTurn(lane, startedAt)) return;
    lane.round.worked += 1;
    this.#endRound(lane);
  }

  /** `isRefused`: it burnt no attempt. */
  failed({ lane, task, startedAt }: Entry, isRefused: boolean): void {
    const { breaker } = lane.state;
    if (breaker.state === 'open') return;
    const isFirstProbe = breaker.state === 'probing' && breaker.limit === 1;
    if (!isFirstProbe) {
      const failure = { taskId: task.id, startedAt, isRefused };
      lane.history = afterFailure(lane.history, failure, lane.settings);
    }
    if (breaker.state === 'closed') {
      const { history } = lane;
      const older = () => startedBefore(lane, history.run.startedAt);
      if (isOutage(history, lane.settings, older)) this.#open(lane);
      return;
    }
    if (!this.#isMyTurn(lane, startedAt)) return;
    const { round } = lane;
    const isAnother = round.taskId !== undefined && round.taskId !== task.id;
    lane.round = {
      worked: round.worked,
      failed: round.failed + 1,
      isShared: round.isShared || isRefused || isAnother,
      taskId: task.id,
    };
    this.#endRound(lane);
  }

  async pause(name: string, by?: string): Promise<void> {
    await this.documents.update(name, (state) => paused(state, this.nowMs, by));
  }

  async resume(name: string): Promise<void> {
    await this.documents.update(name, (state) => resumed(state, this.nowMs));
  }

  #rate(lane: Lane, settings: RateSettings): Lane {
    const parts = { schedule: this.#schedule, host: this.#host, changed: this.#changed };
    const rate = new LaneRate(lane.name, settings, { ...parts, time: this.#time });
    const rated = { ...lane, rate };
    this.rated.add(rated);
    return rated;
  }

  #touch(name: string): Lane {
    const lane = this.get(name);
    this.all.delete(name);
    this.all.set(name, lane);
    return lane;
  }

  /** Forgets lanes without work, those that were due longest ago first. What all share of them stays in the store. */
  #forgetIdle(): void {
    const idle = [...this.all.values()].filter(
      ({ name, queue, running, zombies, writing }) =>
        queue.length + running.size + zombies === 0 && !writing && !this.agenda.holds(name),
    );
    for (const lane of idle.slice(0, -MAX_IDLE)) {
      this.all.delete(lane.name);
      if (isRated(lane)) this.rated.delete(lane);
    }
    this.#sweepAt = Math.max(2 * MAX_IDLE, 2 * this.all.size);
  }

  /** All documents were read. */
  #read(): void {
    for (const lane of this.all.values()) {
      // What is being written is newer.
      if (!lane.writing) this.#adopt(lane, this.documents.of(lane.name));
    }
    this.watched.tell();
    this.#changed();
  }

  /** What started before the turn began says nothing of the lane as it is now. */
  #isMyTurn({ state: { breaker }, probingSince }: Lane, startedAt: number): boolean {
    const isMine = breaker.state === 'probing' && breaker.by === this.#instance;
    return isMine && startedAt >= probingSince;
  }

  #endRound(lane: Lane): void {
    const { breaker } = lane.state;
    if (breaker.state !== 'probing' || lane.writing) return;
    const { concurrency, breaker: settings } = lane.settings;
    switch (resultOf(lane.round, breaker.limit)) {
      case 'worked':
        return void this.#write(
          lane,
          ramped(lane.state, this.#instance, this.nowMs, concurrency, settings),
        );
      case 'down':
        return this.#open(lane);
      case 'repeat':
        lane.round = newRound();
        return this.#prolong(lane);
      case 'goesOn':
        // In a lane with little traffic a round may take longer than a turn.
        if (breaker.untilMs - this.nowMs < settings.turnMs / 2 && lane.round.worked > 0) {
          this.#prolong(lane);
        }
    }
  }

  #open(lane: Lane): void {
    void this.#write(lane, opened(lane.state, this.nowMs, lane.settings.breaker));
  }

  #prolong(lane: Lane): void {
    const { breaker } = lane.settings;
    void this.#write(lane, prolonged(lane.state, this.#instance, this.nowMs, breaker));
  }

  /** Local at once, so that nothing more starts; then shared. Where somebody was faster, theirs holds. */
  async #write(lane: Lane, state: LaneState): Promise<void> {
    const { version } = lane;
    // A turn at probing begins only when it is certain that nobody else has it.
    if (state.breaker.state !== 'probing') this.#adopt(lane, { state, version });
    lane.writing = true;
    let isWritten = false;
    try {
      isWritten = await this.documents.write(lane.name, { state, version });
    } catch (error) {
      this.#host.log.warn(
        { err: error, lane: lane.name },
        'the state of a lane could not be shared',
      );
      await pause(this.#host, WRITE_PAUSE_MS, new AbortController().signal);
    }
    lane.writing = false;
    this.agenda.release(lane.name);
    if (isWritten) {
      this.#adopt(lane, { state, version: version + 1 });
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

  #adopt(lane: Lane, { state, version }: SharedLane): void {
    const { breaker } = lane.state;
    const isNew = state.breaker.state !== breaker.state || turnOf(state) !== turnOf(lane.state);
    if (isNew) {
      lane.history = withoutRun(lane.history);
      lane.round = newRound();
      lane.probingSince = this.#host.clock.monotonic();
    } else if (limitOf(state) !== limitOf(lane.state)) {
      lane.round = newRound();
      // A turn that began again.
      if (limitOf(state) === 1) lane.probingSince = this.#host.clock.monotonic();
    }
    const isChanged = version !== lane.version;
    lane.state = state;
    lane.version = version;
    if (isChanged) this.agenda.release(lane.name);
  }
}

function newRound(): Lane['round'] {
  return { worked: 0, failed: 0, isShared: false };
}

function isRated(lane: Lane): lane is RatedLane {
  return lane.rate !== undefined;
}

/** Whose turn at probing it is. */
function turnOf({ breaker }: LaneState): string | undefined {
  return breaker.state === 'probing' ? breaker.by : undefined;
}

function limitOf({ breaker }: LaneState): number | undefined {
  return breaker.state === 'probing' ? breaker.limit : undefined;
}

/** How many deliveries in flight started before that: `running` has them in the order of their starts. */
function startedBefore({ running }: Lane, startedAt: number): number {
  let count = 0;
  for (const entry of running) {
    if (entry.startedAt >= startedAt) break;
    count += 1;
  }
  return count;
}

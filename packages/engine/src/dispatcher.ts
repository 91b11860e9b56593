import type { Courier } from './courier.ts';
import type { Host } from './host.ts';
import { release } from './judge.ts';
import type { Entry, Lane, Lanes } from './lanes.ts';
import { hindrance } from './moves.ts';
import type { Policies } from './policies.ts';
import type { Claim, ClaimFrom, Schedule } from './ports/schedule.ts';
import type { Settler } from './settler.ts';
import { Solo } from './solo.ts';

export interface DispatcherSettings {
  leaseMs: number;
  pollMs: number;
  maxLostLeases: number;
  /** Tasks leased at once in this instance, and their payloads. */
  maxHeld: number;
  maxHeldBytes: number;
}

/** One claim takes at most so many. */
const MAX_CLAIM = 1000;
const MAX_CLAIM_LANES = 1000;
/** Tasks are held in advance for at most so long: another instance might be idle. */
const AHEAD_MS = 1000;
/** Where a claim found nothing although something is due, it is locked by somebody: no use to ask at once. */
const BUSY_MS = 20;
const LANES_PER_LOOK = 1000;

/**
 * Due, claimed, delivered, settled. Sleeps until the next due time it knows, is woken when something earlier
 * arrives, and looks by itself every `pollMs` as the safety net.
 */
export class Dispatcher {
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #lanes: Lanes;
  readonly #courier: Courier;
  readonly #settler: Settler;
  readonly #policies: Policies;
  readonly #settings: DispatcherSettings;
  readonly #serves: (lane: string) => boolean;
  readonly #solo: Solo;
  #isRunning = false;
  #isScheduled = false;
  #claiming: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  #lookAt = 0;
  #lookAfter = '';
  /** When the next lease may be over that nobody settled. */
  #lostAt = 0;
  #wasLost = false;
  #claimFailures = 0;
  #notBefore = -Infinity;
  /** The token of a claim whose answer was lost: what it leased, if anything, is given back first. */
  #orphan: number | undefined;
  #timer: unknown;
  #timerAt = Infinity;

  constructor(parts: {
    schedule: Schedule;
    host: Host;
    lanes: Lanes;
    courier: Courier;
    settler: Settler;
    policies: Policies;
    settings: DispatcherSettings;
    /** Whether this instance can deliver to such a lane. */
    serves: (lane: string) => boolean;
  }) {
    this.#schedule = parts.schedule;
    this.#host = parts.host;
    this.#lanes = parts.lanes;
    this.#courier = parts.courier;
    this.#settler = parts.settler;
    this.#policies = parts.policies;
    this.#settings = parts.settings;
    this.#serves = parts.serves;
    this.#solo = new Solo(parts.host.clock, parts.settings.leaseMs);
    this.#courier.onEnd = (entry) => {
      this.#solo.ended(entry);
      this.wake();
    };
  }

  start(): void {
    this.#isRunning = true;
    this.#lookAt = 0;
    this.wake();
  }

  /** Claims nothing more and gives back what was not started. What runs goes on. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#host.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    await this.#claiming;
    await this.#looking;
    const held = [...this.#lanes.all.values()].flatMap((lane) => lane.queue.splice(0));
    const waiting = this.#solo.takeWaiting();
    if (waiting) held.push(waiting);
    await Promise.all(held.map((entry) => this.#release(entry)));
  }

  /** Something may be due in these lanes, in so many ms; or anything, anywhere. */
  expect(lanes: readonly string[] | undefined, inMs = 0): void {
    const at = this.#host.clock.monotonic() + inMs;
    if (!lanes) this.#lookAt = Math.min(this.#lookAt, at);
    for (const name of lanes ?? []) {
      if (!this.#serves(name)) continue;
      const lane = this.#lanes.get(name);
      lane.dueAt = Math.min(lane.dueAt, at);
    }
    this.wake();
  }

  /** Looks again at what could be done, once this turn is over. */
  wake(): void {
    if (this.#isScheduled || !this.#isRunning) return;
    this.#isScheduled = true;
    this.#host.defer(() => {
      this.#isScheduled = false;
      if (this.#isRunning) this.#step();
    });
  }

  #step(): void {
    const now = this.#host.clock.monotonic();
    this.#solo.step(now);
    this.#startSolo(now);
    for (const lane of this.#lanes.all.values()) this.#startQueued(lane);
    if (now >= this.#lookAt && !this.#looking) {
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined;
        this.wake();
      });
    }
    if (this.#claiming === undefined && now >= this.#notBefore) {
      const from = this.#wanted(now);
      if (from) {
        this.#claiming = this.#claim(from).finally(() => {
          this.#claiming = undefined;
          this.wake();
        });
      }
    }
    this.#arm(now);
  }

  /** What to claim now. Lost leases take turns with what is due. */
  #wanted(now: number): ClaimFrom | undefined {
    const room = Math.min(
      this.#settings.maxHeld - this.#courier.held - this.#settler.unsettled,
      MAX_CLAIM,
    );
    if (this.#solo.isAlone || room <= 0 || this.#bytesLeft() <= 0) return undefined;
    const lost = this.#wasLost ? undefined : this.#wantedLost(now);
    this.#wasLost = lost !== undefined;
    if (lost) return lost;
    const wanting: { lane: Lane; limit: number }[] = [];
    for (const lane of this.#lanes.all.values()) {
      if (wanting.length >= MAX_CLAIM_LANES) break;
      const limit = lane.dueAt > now ? 0 : this.#roomIn(lane);
      if (limit > 0) wanting.push({ lane, limit });
    }
    if (wanting.length === 0) return undefined;
    // An equal share for each, and whoever was asked goes to the back: a busy lane never starves another.
    const share = Math.max(1, Math.floor(room / wanting.length));
    const lanes = wanting.slice(0, room).map(({ lane, limit }) => {
      this.#lanes.toBack(lane);
      return { lane: lane.name, limit: Math.min(limit, share) };
    });
    return { kind: 'due', lanes };
  }

  /** A task that may have killed its worker is claimed alone; others in small numbers. */
  #wantedLost(now: number): ClaimFrom | undefined {
    if (now < this.#lostAt) return undefined;
    const lanes: string[] = [];
    let limit = Infinity;
    for (const lane of this.#lanes.all.values()) {
      const isSolo = Solo.concerns(lane.name);
      if (isSolo && !this.#solo.isFree(now)) continue;
      const permit = this.#lanes.permit(lane);
      if (permit.may !== 'serve') continue;
      const room = permit.limit - lane.running.size - lane.queue.length - lane.zombies;
      if (room <= 0) continue;
      limit = Math.min(limit, isSolo ? 1 : room);
      lanes.push(lane.name);
    }
    return lanes.length > 0 ? { kind: 'lost', lanes, limit } : undefined;
  }

  /** What a lane may start now, and what it will start soon at its pace. */
  #roomIn(lane: Lane): number {
    const permit = this.#lanes.permit(lane);
    if (permit.may !== 'serve') return 0;
    const held = lane.running.size + lane.queue.length + lane.zombies;
    if (permit.probing || Number.isNaN(lane.meanMs)) return permit.limit - held;
    const aheadMs = Math.min(AHEAD_MS, this.#settings.leaseMs / 2);
    const pace = (permit.limit * aheadMs) / Math.max(lane.meanMs, 0.01);
    const ahead = Math.min(MAX_CLAIM, Math.floor(pace));
    // Not for every single one that ended: a claim for one costs as much as for many.
    return lane.queue.length > ahead / 2 ? 0 : permit.limit + ahead - held;
  }

  async #claim(from: ClaimFrom): Promise<void> {
    const { clock, random, log } = this.#host;
    const { leaseMs } = this.#settings;
    let claim: Claim;
    let sentAt: number;
    // What is heard of while the claim is under way came after it, perhaps: it must not be forgotten.
    this.#expectAgain(from, Infinity);
    try {
      if (this.#orphan !== undefined) await this.#schedule.abandon(this.#orphan);
      const lease = Math.floor(random() * 2 ** 52) + 1;
      this.#orphan = lease;
      sentAt = clock.monotonic();
      claim = await this.#schedule.claim({ from, lease, leaseMs, maxBytes: this.#bytesLeft() });
      this.#orphan = undefined;
      await this.#policies.know(claim.tasks);
    } catch (error) {
      this.#claimFailures = Math.min(this.#claimFailures + 1, 8);
      this.#notBefore = clock.monotonic() + 25 * 2 ** this.#claimFailures;
      this.#expectAgain(from, clock.monotonic());
      log.warn({ err: error }, 'claiming failed, trying again');
      return;
    }
    this.#claimFailures = 0;
    this.#lanes.sawTime(claim.nowMs);
    this.#plan(from, claim);
    this.#take(claim, sentAt + leaseMs);
  }

  #expectAgain(from: ClaimFrom, at: number): void {
    if (from.kind === 'lost') this.#lostAt = at;
    if (from.kind === 'due') for (const { lane } of from.lanes) this.#lanes.get(lane).dueAt = at;
  }

  /** When to look at these lanes again. */
  #plan(from: ClaimFrom, { tasks, nextInMs }: Claim): void {
    const now = this.#host.clock.monotonic();
    const got = new Set(tasks.map((task) => task.lane));
    const at = (inMs: number | undefined, isEmpty: boolean) =>
      inMs === undefined ? Infinity : now + (inMs === 0 && isEmpty ? BUSY_MS : inMs);
    if (from.kind === 'due') {
      for (const [i, { lane: name }] of from.lanes.entries()) {
        const lane = this.#lanes.get(name);
        lane.dueAt = Math.min(lane.dueAt, at(nextInMs[i], !got.has(name)));
      }
    } else {
      const nextAt = Math.min(at(nextInMs[0], got.size === 0), now + this.#settings.pollMs);
      this.#lostAt = Math.min(this.#lostAt, nextAt);
    }
  }

  #take({ tasks, nowMs }: Claim, leaseUntil: number): void {
    for (const task of tasks) {
      const mostAttempts = this.#policies.mostAttempts(task);
      const { maxLostLeases } = this.#settings;
      const why = hindrance(task, nowMs, { maxLostLeases, mostAttempts });
      if (why && why !== 'NOT_DUE') {
        void this.#courier.refuse(task, why);
        continue;
      }
      const lane = this.#lanes.get(task.lane);
      const entry: Entry = { task, lane, leaseUntil, startedAt: NaN, probing: false };
      this.#courier.hold(entry);
      if (why || !this.#isRunning) void this.#release(entry);
      else if (task.claims > 1 && Solo.concerns(lane.name)) this.#solo.wait(entry);
      else lane.queue.push(entry);
    }
  }

  /** It waits until all is quiet, and what waits here goes back to others meanwhile. */
  #startSolo(now: number): void {
    if (!this.#solo.waiting) return;
    for (const lane of this.#lanes.all.values()) {
      for (const entry of lane.queue.splice(0)) void this.#release(entry);
    }
    if (this.#courier.running > 0) return;
    const entry = this.#solo.begin(now);
    if (entry) this.#start(entry);
  }

  #startQueued(lane: Lane): void {
    if (lane.queue.length === 0 || this.#solo.isAlone) return;
    const permit = this.#lanes.permit(lane);
    if (permit.may !== 'serve') {
      for (const entry of lane.queue.splice(0)) void this.#release(entry);
      return;
    }
    let started = 0;
    while (started < lane.queue.length && lane.running.size + lane.zombies < permit.limit) {
      const entry = lane.queue[started]!;
      started += 1;
      entry.probing = permit.probing && permit.limit === 1;
      this.#start(entry);
    }
    lane.queue.splice(0, started);
  }

  /** Starts only what will surely end, or be renewed, before its lease does. */
  #start(entry: Entry): void {
    const needMs = Math.min(entry.lane.settings.timeoutMs, this.#settings.leaseMs / 2);
    if (this.#host.clock.monotonic() + needMs <= entry.leaseUntil) this.#courier.start(entry);
    else void this.#release(entry);
  }

  async #release(entry: Entry): Promise<void> {
    this.#solo.ended(entry);
    await this.#courier.giveBack(entry, release(entry.task));
    this.#lostAt = Math.min(
      this.#lostAt,
      entry.task.claims > 1 ? this.#host.clock.monotonic() : Infinity,
    );
    entry.lane.dueAt = Math.min(entry.lane.dueAt, this.#host.clock.monotonic());
    this.wake();
  }

  /** Finds lanes that nobody told of, and notices what a lost wake-up left behind. */
  async #look(): Promise<void> {
    const { clock, log } = this.#host;
    this.#lookAt = clock.monotonic() + this.#settings.pollMs;
    try {
      await this.#lanes.refresh();
      const page = { after: this.#lookAfter, limit: LANES_PER_LOOK };
      const found = await this.#schedule.lanes(page);
      const isLast = found.length < LANES_PER_LOOK;
      this.#lookAfter = isLast ? '' : found.at(-1)!.lane;
      if (!isLast) this.#lookAt = clock.monotonic();
      for (const { lane, inMs } of found) {
        if (!this.#serves(lane)) continue;
        const known = this.#lanes.get(lane);
        known.dueAt = Math.min(known.dueAt, clock.monotonic() + inMs);
      }
      this.#lostAt = Math.min(this.#lostAt, clock.monotonic());
    } catch (error) {
      log.warn({ err: error }, 'looking for lanes failed, trying again');
      this.#lookAt = clock.monotonic() + Math.min(this.#settings.pollMs, 1000);
    }
  }

  /** One timer, for the earliest thing that is known. */
  #arm(now: number): void {
    let at = Math.min(this.#lookAt, this.#solo.until);
    if (this.#lostAt > now) at = Math.min(at, this.#lostAt);
    if (this.#notBefore > now) at = Math.min(at, this.#notBefore);
    for (const lane of this.#lanes.all.values()) {
      if (lane.dueAt < at) at = Math.min(at, Math.max(lane.dueAt, this.#servedFrom(lane, now)));
    }
    // What is due already waits for something that wakes us: a slot, a settle, an answer.
    if (at <= now) at = this.#lookAt > now ? this.#lookAt : now + this.#settings.pollMs;
    if (this.#timer !== undefined && this.#timerAt === at) return;
    const { clock } = this.#host;
    clock.clearTimer(this.#timer);
    this.#timerAt = at;
    this.#timer = clock.setTimer(
      () => {
        this.#timer = undefined;
        this.wake();
      },
      Math.max(0, Math.ceil(at - now)),
    );
  }

  #servedFrom(lane: Lane, now: number): number {
    const permit = this.#lanes.permit(lane);
    if (permit.may !== 'wait') return now;
    if (permit.untilMs === undefined) return Infinity;
    return now + Math.max(1, permit.untilMs - this.#lanes.nowMs);
  }

  #bytesLeft(): number {
    return this.#settings.maxHeldBytes - this.#courier.heldBytes;
  }
}

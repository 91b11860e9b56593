import { type ClaimLimits, ClaimPlan } from './claim-plan.ts';
import type { Executor } from './executor.ts';
import type { Host } from '../host.ts';
import { release } from '../model/judge.ts';
import type { Entry, Lane, Lanes } from '../lanes/lanes.ts';
import { hindrance } from '../model/moves.ts';
import type { Policies } from './policies.ts';
import type { Claim, ClaimFrom, Schedule } from '../ports/schedule.ts';
import type { Settler } from './settler.ts';
import { Solo } from './solo.ts';

interface DispatcherSettings extends ClaimLimits {
  maxLostLeases: number;
}

const LANES_PER_LOOK = 1000;
/** Deliveries are started for so long in one turn of the event loop. */
const START_MS = 5;

/**
 * Due, claimed, delivered, settled. Sleeps until the next due time it knows, is woken when something earlier
 * arrives, and looks by itself every `pollMs` as the safety net.
 */
export class Dispatcher {
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #lanes: Lanes;
  readonly #executor: Executor;
  readonly #policies: Policies;
  readonly #settings: DispatcherSettings;
  readonly #serves: (lane: string) => boolean;
  readonly #solo: Solo;
  readonly #plan: ClaimPlan;
  #isRunning = false;
  #isScheduled = false;
  #claiming: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  #lookAt = 0;
  #lookAfter = '';
  #claimFailures = 0;
  #notBefore = -Infinity;
  /** The token of a claim whose answer was lost. What the claim leased, if anything, is given back before the next claim. */
  #lostClaim: number | undefined;
  #timer: unknown;
  #timerAt = Infinity;

  constructor(parts: {
    schedule: Schedule;
    host: Host;
    lanes: Lanes;
    executor: Executor;
    settler: Settler;
    policies: Policies;
    settings: DispatcherSettings;
    /** Whether this instance can deliver to such a lane. */
    serves: (lane: string) => boolean;
  }) {
    this.#schedule = parts.schedule;
    this.#host = parts.host;
    this.#lanes = parts.lanes;
    this.#executor = parts.executor;
    this.#policies = parts.policies;
    this.#settings = parts.settings;
    this.#serves = parts.serves;
    this.#solo = new Solo(parts.host.clock, parts.settings.leaseMs);
    this.#plan = new ClaimPlan(
      parts.lanes,
      parts.executor,
      parts.settler,
      this.#solo,
      parts.settings,
    );
    this.#executor.onRoom = () => this.wake();
    this.#executor.onEnd = (entry) => {
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
    await Promise.all([this.#claiming, this.#looking]);
    const held = [...this.#lanes.queued].flatMap((lane) => lane.queue.splice(0));
    held.push(...this.#solo.takeWaiting());
    await Promise.all([...held.map((entry) => this.#release(entry)), this.#abandon()]);
  }

  /** Something may be due in these lanes, in so many ms; or anything, anywhere. */
  expect(lanes: readonly string[] | undefined, inMs = 0): void {
    const at = this.#host.clock.monotonic() + inMs;
    if (!lanes) this.#lookAt = Math.min(this.#lookAt, at);
    for (const name of lanes ?? []) if (this.#serves(name)) this.#lanes.agenda.expect(name, at);
    this.wake();
  }

  /** A destination can be reached again, or not any more. */
  reachChanged(): void {
    this.#lanes.agenda.releaseAll();
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
    this.#startSolo(now);
    if (now >= this.#lookAt && !this.#looking) {
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined;
        this.wake();
      });
    }
    const mayClaim = this.#claiming === undefined && now >= this.#notBefore;
    const from = mayClaim ? this.#plan.wanted(now) : undefined;
    if (from) {
      this.#ask(this.#claim(from));
      // A turn later, so that the claim is on its way first: the store works on it while a thousand deliveries start.
      this.#host.defer(() => this.#isRunning && this.#startAll());
    } else {
      if (mayClaim && this.#lostClaim !== undefined) this.#ask(this.#abandon());
      this.#startAll();
    }
    this.#arm(now);
  }

  #startAll(): void {
    const { clock } = this.#host;
    const endAt = clock.monotonic() + START_MS;
    for (const lane of this.#lanes.queued) {
      this.#startQueued(lane);
      if (lane.queue.length === 0) this.#lanes.queued.delete(lane);
      // A thousand lanes that became due together would hold up everything else.
      if (clock.monotonic() >= endAt) return this.wake();
    }
  }

  /** Claims and gives back what a lost claim leased, one at a time. */
  #ask(work: Promise<void>): void {
    this.#claiming = work.finally(() => {
      this.#claiming = undefined;
      this.wake();
    });
  }

  async #claim(from: ClaimFrom): Promise<void> {
    const { clock, random, log } = this.#host;
    const { leaseMs } = this.#settings;
    let claim: Claim;
    let sentAt: number;
    let lease: number | undefined;
    this.#plan.asked(from);
    try {
      if (this.#lostClaim !== undefined) await this.#giveBack(this.#lostClaim);
      lease = Math.floor(random() * 2 ** 52) + 1;
      sentAt = clock.monotonic();
      const { maxBytes } = this.#plan;
      claim = await this.#schedule.claim({ from, lease, leaseMs, maxBytes });
      // Not delivered by a wrong policy: what was claimed goes back instead.
      await this.#policies.know(claim.tasks);
    } catch (error) {
      if (lease !== undefined) this.#lostClaim = lease;
      this.#backOff();
      this.#plan.failed(from, clock.monotonic());
      log.warn({ err: error }, 'claiming failed, trying again');
      return;
    }
    this.#claimFailures = 0;
    this.#lanes.sawTime(claim.nowMs, sentAt);
    this.#plan.answered(from, claim, clock.monotonic());
    this.#take(claim, sentAt + leaseMs);
  }

  #take({ tasks, nowMs }: Claim, leaseUntil: number): void {
    for (const task of tasks) {
      const mostAttempts = this.#policies.mostAttempts(task);
      const { maxLostLeases } = this.#settings;
      const why = hindrance(task, nowMs, { maxLostLeases, mostAttempts });
      if (why && why !== 'NOT_DUE') {
        void this.#executor.refuse(task, why);
        continue;
      }
      const lane = this.#lanes.get(task.lane);
      const policy = this.#policies.of(task);
      const entry: Entry = { task, lane, policy, leaseUntil, startedAt: NaN, probing: false };
      this.#executor.hold(entry);
      if (why || !this.#isRunning) void this.#release(entry);
      else if (task.claims < 2 || !Solo.concerns(lane.name)) this.#enqueue(entry);
      else if (this.#solo.admits(entry)) this.#solo.wait(entry);
      else void this.#release(entry);
    }
  }

  #enqueue(entry: Entry): void {
    entry.lane.queue.push(entry);
    this.#lanes.queued.add(entry.lane);
  }

  /** It waits until all is quiet, and what waits here goes back to others meanwhile. */
  #startSolo(now: number): void {
    for (const entry of this.#solo.expire(now)) void this.#release(entry);
    for (const entry of this.#solo.waiting) {
      if (this.#lanes.permit(entry.lane).may !== 'serve') void this.#release(entry);
    }
    if (this.#solo.waiting.length === 0) return;
    for (const lane of this.#lanes.queued) {
      for (const entry of lane.queue.splice(0)) void this.#release(entry);
    }
    // Also what is being given back must be out of our hands first: its lease would be one more that was lost.
    if (this.#executor.held > this.#solo.waiting.length) return;
    if (this.#solo.waiting.some(({ lane }) => lane.rate?.take(1) === false)) return;
    for (const entry of this.#solo.begin(now)) this.#start(entry);
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
      if (lane.rate?.take(lane.queue.length - started) === false) break;
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
    if (this.#host.clock.monotonic() + needMs <= entry.leaseUntil) this.#executor.start(entry);
    else void this.#release(entry);
  }

  async #giveBack(lostClaim: number): Promise<void> {
    await this.#schedule.abandon(lostClaim);
    this.#lostClaim = undefined;
  }

  async #abandon(): Promise<void> {
    if (this.#lostClaim === undefined) return;
    try {
      await this.#giveBack(this.#lostClaim);
    } catch (error) {
      this.#backOff();
      this.#host.log.warn({ err: error }, 'a lost claim was not given back: its leases will end');
    }
  }

  /** The store failed: it is not asked again at once. */
  #backOff(): void {
    this.#claimFailures = Math.min(this.#claimFailures + 1, 8);
    this.#notBefore = this.#host.clock.monotonic() + 25 * 2 ** this.#claimFailures;
  }

  async #release(entry: Entry): Promise<void> {
    this.#solo.ended(entry);
    await this.#executor.giveBack(entry, release(entry.task));
    const now = this.#host.clock.monotonic();
    if (entry.task.claims > 1) this.#plan.expectLost(now);
    this.#lanes.agenda.expect(entry.lane.name, now);
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
        this.#lanes.agenda.release(lane);
        this.#lanes.agenda.expect(lane, clock.monotonic() + inMs);
      }
      this.#plan.expectLost(clock.monotonic());
    } catch (error) {
      log.warn({ err: error }, 'looking for lanes failed, trying again');
      this.#lookAt = clock.monotonic() + Math.min(this.#settings.pollMs, 1000);
    }
  }

  /** One timer, for the earliest thing that is known. */
  #arm(now: number): void {
    let at = Math.min(this.#plan.nextAt(now), now + this.#settings.pollMs);
    for (const one of [this.#lookAt, this.#notBefore, this.#solo.until]) {
      if (one > now && one < at) at = one;
    }
    // One that is too early only makes us look once more.
    if (this.#timer !== undefined && this.#timerAt <= at) return;
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
}

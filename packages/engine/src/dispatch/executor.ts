import { classify, type Failure } from 'redrive';
import type { Host } from '../host.ts';
import { type Circumstances, judge, type Judgement, refuse } from '../model/judge.ts';
import { openingMs } from '../lanes/lane-state.ts';
import type { Entry, Lanes } from '../lanes/lanes.ts';
import { leaseOf } from '../model/line.ts';
import type { Delivery, Outcome, Run } from '../ports/delivery.ts';
import type { Renewed, Schedule, Settled, Settlement } from '../ports/schedule.ts';
import type { Settler } from './settler.ts';
import type { Reason, Task } from '../model/task.ts';
import { cleanFailure, cleanText } from '../model/text.ts';

interface ExecutorSettings {
  leaseMs: number;
  heartbeatMs: number;
}

/** Why a delivery was told to end before its time. */
type Cause = 'timeout' | 'leaseLost' | 'stop';

/** What the rest of the engine wants to know of a delivery. */
interface ExecutorEvents {
  started(task: Task): void;
  settled(task: Task, judgement: Judgement, result: Exclude<Settled, 'busy'>): void;
  refused(task: Task, reason: Reason | 'CANCELLED', by: Settlement): void;
}

const MAX_RENEWALS = 1000;

/** Carries out the deliveries of leased tasks: time limits, heartbeats, and what follows from the outcome. */
export class Executor {
  /** Told when a task is out of this instance's hands. */
  onEnd: (entry: Entry) => void = () => undefined;
  /** Told when there is room for more. */
  onRoom: () => void = () => undefined;
  running = 0;
  heldBytes = 0;
  readonly #entries = new Set<Entry>();
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #lanes: Lanes;
  readonly #settler: Settler;
  readonly #deliveryOf: (kind: string) => Delivery | undefined;
  readonly #events: ExecutorEvents;
  readonly #settings: ExecutorSettings;
  readonly #circumstances: () => Pick<Circumstances, 'seed' | 'review'>;
  readonly #causes = new Map<Entry, Cause>();
  #heartbeat: unknown;
  #renewing = false;
  #watchdog: unknown;
  #watchdogAt = Infinity;
  #quiet: (() => void)[] = [];
  #refusing = 0;

  constructor(parts: {
    schedule: Schedule;
    host: Host;
    lanes: Lanes;
    settler: Settler;
    deliveryOf: (kind: string) => Delivery | undefined;
    events: ExecutorEvents;
    settings: ExecutorSettings;
    circumstances: () => Pick<Circumstances, 'seed' | 'review'>;
  }) {
    this.#schedule = parts.schedule;
    this.#host = parts.host;
    this.#lanes = parts.lanes;
    this.#settler = parts.settler;
    this.#deliveryOf = parts.deliveryOf;
    this.#events = parts.events;
    this.#settings = parts.settings;
    this.#circumstances = parts.circumstances;
  }

  /** Tasks leased by this instance. */
  get held(): number {
    return this.#entries.size + this.#refusing;
  }

  hold(entry: Entry): void {
    this.#entries.add(entry);
    this.heldBytes += entry.task.payload.length;
    this.#heartbeat ??= this.#host.clock.setTimer(
      () => this.#beat(),
      this.#settings.heartbeatMs,
      true,
    );
  }

  start(entry: Entry): void {
    const { task, lane } = entry;
    const now = this.#host.clock.monotonic();
    entry.startedAt = now;
    lane.running.add(entry);
    this.running += 1;
    this.#watch(now + lane.settings.timeoutMs);
    this.#events.started(task);
    entry.delivery = this.#deliver(entry);
    void entry.delivery.then((outcome) => this.#finish(entry, outcome));
  }

  /** Settles what must not be delivered. */
  async refuse(task: Task, reason: Reason | 'CANCELLED'): Promise<void> {
    this.#refusing += 1;
    try {
      const refusal = this.#refusal(task, reason);
      const result = await this.#settler.settle(refusal);
      if (result === 'settled') this.#events.refused(task, reason, refusal);
    } catch (error) {
      this.#host.log.error({ err: error, id: task.messageId }, 'not settled: its lease will end');
    }
    this.#refusing -= 1;
    this.#becameQuiet();
    this.onRoom();
  }

  /** Ends a lease without a delivery. */
  async giveBack(entry: Entry, settlement: Settlement): Promise<void> {
    try {
      await this.#settler.settle(settlement);
    } catch (error) {
      this.#host.log.error(
        { err: error, id: entry.task.messageId },
        'not given back: its lease will end',
      );
    }
    this.#letGo(entry);
  }

  /** Tells what runs to end. */
  abortAll(): void {
    for (const lane of this.#lanes.all.values()) {
      for (const entry of lane.running) this.#abort(entry, 'stop');
    }
  }

  /** Resolves when nothing is leased any more. */
  async idle(): Promise<void> {
    if (this.held === 0) return;
    await new Promise<void>((resolve) => {
      this.#quiet.push(resolve);
    });
  }

  close(): void {
    this.#host.clock.clearTimer(this.#heartbeat);
    this.#host.clock.clearTimer(this.#watchdog);
  }

  async #deliver(entry: Entry): Promise<Outcome> {
    const { task } = entry;
    const delivery = this.#deliveryOf(task.destination.kind);
    try {
      if (!delivery) throw new Error(`No delivery for ${task.destination.kind}.`);
      return await delivery.deliver(task, new DeliveryRun(entry, this.#host));
    } catch (error) {
      return { type: 'failed', failure: classify(error, { nowMs: this.#host.clock.now() }) };
    }
  }

  #finish(entry: Entry, outcome: Outcome): void {
    const { lane } = entry;
    // A delivery that ran out of time may still end; that was settled without it.
    if (!lane.running.delete(entry)) return;
    this.running -= 1;
    const now = this.#host.clock.monotonic();
    const durationMs = now - entry.startedAt;
    lane.meanMs = Number.isNaN(lane.meanMs) ? durationMs : lane.meanMs * 0.9 + durationMs * 0.1;
    const judgement = this.#judge(entry, outcome, durationMs);
    if (judgement.lane === 'worked') this.#lanes.worked(entry);
    if (judgement.lane === 'failed') this.#lanes.failed(entry, outcome.type === 'refused');
    void this.#settle(entry, judgement);
    this.onEnd(entry);
  }

  #judge(entry: Entry, outcome: Outcome, durationMs: number): Judgement {
    const { task, lane, probing } = entry;
    const cause = this.#causes.get(entry);
    this.#causes.delete(entry);
    if ((cause === 'stop' || cause === 'leaseLost') && outcome.type === 'failed') {
      // It ended because we told it to: that is no failure of its own.
      return { settlement: interrupted(task), lane: 'neutral' };
    }
    const { review, ...circumstances } = this.#circumstances();
    const by: Circumstances = {
      ...circumstances,
      policy: entry.policy,
      nowMs: this.#lanes.nowMs,
      durationMs: Math.round(durationMs),
      laneOpen: lane.state.breaker.state === 'open',
      ...(probing
        ? { probing: { closedForMs: openingMs(lane.state, lane.settings.breaker) } }
        : {}),
    };
    try {
      return judge(task, kept(outcome), review ? { ...by, review } : by);
    } catch (error) {
      // What somebody handed in is not what it should be: an outcome, or the review of an item.
      this.#host.log.error({ err: error, id: task.messageId }, 'an outcome could not be judged');
      return judge(task, plain(error), by);
    }
  }

  /** Also where the review of the item cannot be made: the item is what counts. */
  #refusal(task: Task, reason: Reason | 'CANCELLED'): Settlement {
    try {
      return refuse(task, reason, this.#circumstances());
    } catch (error) {
      this.#host.log.error({ err: error, id: task.messageId }, 'the review of an item failed');
      return refuse(task, reason, {});
    }
  }

  async #settle(entry: Entry, judgement: Judgement): Promise<void> {
    try {
      const result = await this.#settler.settle(judgement.settlement);
      this.#events.settled(entry.task, judgement, result);
    } catch (error) {
      this.#host.log.error(
        { err: error, id: entry.task.messageId },
        'not settled: it will be delivered again',
      );
    }
    this.#letGo(entry);
    this.onEnd(entry);
  }

  #letGo(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    this.heldBytes -= entry.task.payload.length;
    this.#becameQuiet();
  }

  #becameQuiet(): void {
    if (this.held > 0) return;
    for (const resolve of this.#quiet.splice(0)) resolve();
  }

  #abort(entry: Entry, cause: Cause): void {
    const before = this.#causes.get(entry);
    if (!before) {
      this.#causes.set(entry, cause);
      abortController(entry).abort(abortReasons[cause]());
    }
    // On stop its lease stays with it until it ends. Otherwise nothing keeps a slot past its time.
    if (cause !== 'timeout' || before === 'stop') return;
    const isHandedOver = this.#deliveryOf(entry.task.destination.kind)?.handsOver === true;
    this.#finish(entry, { type: isHandedOver ? 'refused' : 'failed', failure: timedOut });
    this.#mourn(entry);
  }

  /** Work that ignores its signal goes on. It keeps its slot, so that such do not pile up, but not for ever. */
  #mourn(entry: Entry): void {
    const { lane } = entry;
    let isGone = false;
    const free = () => {
      if (isGone) return;
      isGone = true;
      this.#host.clock.clearTimer(timer);
      lane.zombies -= 1;
      this.onEnd(entry);
    };
    lane.zombies += 1;
    const timer = this.#host.clock.setTimer(free, this.#settings.leaseMs, true);
    void entry.delivery?.then(free);
  }

  /** Prolongs the leases of all that is here, waiting or running, in good time. */
  #beat(): void {
    const { clock } = this.#host;
    this.#heartbeat = undefined;
    if (this.#entries.size === 0) return;
    this.#heartbeat = clock.setTimer(() => this.#beat(), this.#settings.heartbeatMs, true);
    if (!this.#renewing) void this.#renew();
    // Not renewed in time, perhaps because the store is away: others may have it by now.
    const now = clock.monotonic();
    for (const entry of this.#entries) {
      if (entry.leaseUntil <= now && entry.lane.running.has(entry)) this.#abort(entry, 'leaseLost');
    }
  }

  async #renew(): Promise<void> {
    const { clock, log } = this.#host;
    const { leaseMs, heartbeatMs } = this.#settings;
    this.#renewing = true;
    const soon = clock.monotonic() + leaseMs - heartbeatMs / 2;
    const due = [...this.#entries].filter((entry) => entry.leaseUntil < soon);
    try {
      for (let i = 0; i < due.length; i += MAX_RENEWALS) {
        const some = due.slice(i, i + MAX_RENEWALS);
        const sentAt = clock.monotonic();
        const leases = some.map(({ task }) => leaseOf(task));
        const held = await this.#schedule.renew(leases, leaseMs);
        for (const [j, entry] of some.entries()) {
          this.#renewed(entry, held[j]!, sentAt + leaseMs);
        }
      }
    } catch (error) {
      log.warn({ err: error }, 'a heartbeat failed');
    }
    this.#renewing = false;
  }

  #renewed(entry: Entry, answer: Renewed, leaseUntil: number): void {
    const isStarted = !Number.isNaN(entry.startedAt);
    if (answer === 'held' || (answer === 'arrived' && isStarted)) entry.leaseUntil = leaseUntil;
    // Somebody else has it, or has news of it: what waits here is not started, what runs is told to end.
    else if (answer !== 'busy') entry.leaseUntil = -Infinity;
    if (answer === 'lost' && entry.lane.running.has(entry)) this.#abort(entry, 'leaseLost');
  }

  /** One timer for all time limits: within a lane the limit is the same, so its oldest delivery is the first to end. */
  #watch(at: number): void {
    if (at >= this.#watchdogAt) return;
    const { clock } = this.#host;
    clock.clearTimer(this.#watchdog);
    this.#watchdogAt = at;
    this.#watchdog = clock.setTimer(
      () => this.#patrol(),
      Math.max(0, Math.ceil(at - clock.monotonic())),
      true,
    );
  }

  #patrol(): void {
    const now = this.#host.clock.monotonic();
    this.#watchdogAt = Infinity;
    let next = Infinity;
    for (const lane of this.#lanes.all.values()) {
      for (const entry of lane.running) {
        const endAt = entry.startedAt + lane.settings.timeoutMs;
        if (endAt > now) {
          next = Math.min(next, endAt);
          break;
        }
        this.#abort(entry, 'timeout');
      }
    }
    if (next < Infinity) this.#watch(next);
  }
}

class DeliveryRun implements Run {
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly #entry: Entry;
  readonly #host: Host;

  constructor(entry: Entry, host: Host) {
    this.attempt = entry.task.attempt + 1;
    this.maxAttempts = entry.task.trial ? 1 : entry.task.maxAttempts;
    this.#entry = entry;
    this.#host = host;
  }

  get signal(): AbortSignal {
    return abortController(this.#entry).signal;
  }

  get remainingMs(): number {
    const { startedAt, lane } = this.#entry;
    return Math.max(0, startedAt + lane.settings.timeoutMs - this.#host.clock.monotonic());
  }
}

/** Made when it is first needed: most deliveries never look at their signal. */
function abortController(entry: Entry): AbortController {
  return (entry.abort ??= new AbortController());
}

const abortReasons: Record<Cause, () => Error> = {
  timeout: () => new DOMException('The delivery took longer than its time limit.', 'TimeoutError'),
  leaseLost: () => new DOMException('The lease of this task was lost.', 'AbortError'),
  stop: () => new DOMException('The engine stops.', 'AbortError'),
};

const timedOut: Failure = Object.freeze({
  class: 'transient',
  code: 'TIMEOUT',
  message: 'The delivery took longer than its time limit.',
});

/** A fault of whoever delivers, not of the destination. */
function plain(error: unknown): Outcome {
  return { type: 'failed', failure: cleanFailure(classify(error)) };
}

function kept(outcome: Outcome): Outcome {
  if (!('failure' in outcome)) return outcome;
  const failure = cleanFailure(outcome.failure);
  if (!('answer' in outcome) || outcome.answer === undefined) return { ...outcome, failure };
  return { ...outcome, failure, answer: cleanText(outcome.answer) };
}

/** Back to the others as it was: it did start, but its worker is well. */
function interrupted(task: Task): Settlement {
  const { attempt, uncounted } = task;
  const same = { delayMs: 0, attempt, uncounted, claims: 0, reschedule: false };
  return { ...leaseOf(task), to: 'pending', ...same };
}

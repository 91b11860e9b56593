/** Due wake-ups become attempts: claimed by compare-and-set, then delivered, then settled like any other report. */
import type { DelayAnswer, DelayConsumer, DelayLimits, DueEntry } from '@redrive/engine';
import { persist } from '@redrive/engine/internal';
import { claim, type Claimed, handedOver, putBack } from '../model/claims.ts';
import type { DeliveryAttempt, DeliveryRecord, NotificationRecord } from '../model/notification.ts';
import { type Lane, lanes } from '../model/retry-config.ts';
import { type Deliver, type DeliverOutcome, runDelivery } from './delivery.ts';
import type { Parts } from './parts.ts';
import type { Publisher } from './publisher.ts';
import type { RecordWriter } from './record-writer.ts';
import type { Report } from './report.ts';
import type { Reports } from './reports.ts';
import { Room } from './room.ts';
import { readWakeUp, type WakeUps, type WokenUp } from './wake-ups.ts';

interface WakerOptions {
  deliver: Deliver;
  /** How long one delivery may take. */
  deliverTimeoutMs: number;
  leaseMs: number;
  maxLostLeases: number;
  /** Deliveries at once in each lane. */
  concurrency: number;
  limits: DelayLimits;
  newLease: () => string;
}

interface WakerParts extends Parts {
  writer: RecordWriter;
  reports: Reports;
  wakeUps: WakeUps;
  publisher: Publisher;
}

interface Attempt extends WokenUp {
  lane: Lane;
  lease: string;
  record: NotificationRecord;
  delivery: DeliveryRecord;
  /** By the monotonic clock, counted from before the claim was sent. */
  leaseEndsMs: number;
  places: Places;
}

/** Those in the lane that its batch has taken. Each delivery keeps one. */
interface Places {
  left: number;
}

const done: DelayAnswer = { type: 'done' };
/** The lane was paused while this batch waited for room. Its queue is not asked any more when it is due again. */
const paused: DelayAnswer = { type: 'again', delayMs: 1000 };
/** For another instance. */
const now: DelayAnswer = { type: 'again', delayMs: 0 };

export class Waker {
  readonly #parts: WakerParts;
  readonly #options: WakerOptions;
  readonly #stopping = new AbortController();
  readonly #running = new Map<Lane, Set<Promise<void>>>(lanes.map((lane) => [lane, new Set()]));
  readonly #rooms: Readonly<Record<Lane, Room>>;
  readonly #consumers = new Map<Lane, DelayConsumer>();
  readonly #paused = new Set<Lane>();
  readonly #started = new Set<Lane>();
  /** One change of what a lane consumes after the other. No lane waits for the queue of another. */
  readonly #turns = new Map<Lane, Promise<void>>();
  #isStopping = false;

  constructor(parts: WakerParts, options: WakerOptions) {
    this.#parts = parts;
    this.#options = options;
    const { concurrency } = options;
    this.#rooms = { urgent: new Room(concurrency), bulk: new Room(concurrency) };
  }

  /** Deliveries under way. */
  running(lane: Lane): number {
    return this.#running.get(lane)!.size;
  }

  isPaused(lane: Lane): boolean {
    return this.#paused.has(lane);
  }

  /** Its queue is open. Rejects where the queue is away. Repeating the call is safe. */
  start(lane: Lane): Promise<void> {
    this.#started.add(lane);
    return this.consume(lane);
  }

  /** Nothing more begins in a lane that is paused. `consume` follows. */
  setPaused(lane: Lane, isPaused: boolean): void {
    if (isPaused) this.#paused.add(lane);
    else this.#paused.delete(lane);
  }

  /** Takes nothing more, and waits for what runs. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(lanes.map((lane) => this.consume(lane)));
    await Promise.all([...this.#running.values()].flatMap((set) => [...set]));
  }

  /** Takes from the queue of a lane, or no longer. Rejects where the queue is away. Repeating the call is safe. */
  consume(lane: Lane): Promise<void> {
    const work = () => this.#consumeFrom(lane);
    // Who asked before has the error of before.
    const turn = (this.#turns.get(lane) ?? Promise.resolve()).then(work, work);
    this.#turns.set(lane, turn);
    return turn;
  }

  async #consumeFrom(lane: Lane): Promise<void> {
    const isWanted = this.#started.has(lane) && !this.#paused.has(lane) && !this.#isStopping;
    const consumer = this.#consumers.get(lane);
    if (isWanted === (consumer !== undefined)) return;
    if (consumer) {
      this.#consumers.delete(lane);
      return consumer.stop();
    }
    const handle = (batch: readonly DueEntry[], signal: AbortSignal) =>
      this.handle(lane, batch, signal);
    const { queues } = this.#parts;
    this.#consumers.set(lane, await queues[lane].consume(handle, this.#options.limits));
  }

  /** Aborts what runs: whether it was sent nobody knows, and another looks when its lease is over. */
  abort(): void {
    this.#stopping.abort();
  }

  /**
   * An entry is done as soon as its attempt is claimed: the record wakes somebody if this process dies. So a slow delivery
   * holds up no other.
   */
  async handle(
    lane: Lane,
    batch: readonly DueEntry[],
    signal: AbortSignal,
  ): Promise<DelayAnswer[]> {
    const answers: DelayAnswer[] = [];
    const room = this.#rooms[lane];
    for (let next = 0; next < batch.length;) {
      // Before the claim, since other batches claim meanwhile.
      const count = await room.take(batch.length - next);
      const places = { left: count };
      try {
        if (signal.aborted) throw signal.reason;
        const rest = batch.slice(next);
        // A claim would keep them from all others until its lease is over.
        if (this.#isStopping) return [...answers, ...rest.map(() => now)];
        if (this.#paused.has(lane)) return [...answers, ...rest.map(() => paused)];
        answers.push(...(await this.#begin(lane, rest.slice(0, count), false, places)));
      } finally {
        room.leave(places.left);
      }
      next += count;
    }
    return answers;
  }

  async #begin(
    lane: Lane,
    entries: readonly DueEntry[],
    isUnrecorded: boolean,
    places: Places,
  ): Promise<DelayAnswer[]> {
    const { writer, host, rules } = this.#parts;
    const { leaseMs, maxLostLeases, newLease } = this.#options;
    const nowMs = host.clock.now();
    const leaseEndsMs = host.clock.monotonic() + leaseMs;
    const woken = entries.map(({ payload }) => readWakeUp(payload));
    const known = woken.flatMap((wakeUp) => (wakeUp ? [{ ...wakeUp, lease: newLease() }] : []));
    const applied = await writer.apply(
      known.map(({ notificationId, ...wakeUp }) => ({
        id: notificationId,
        apply: (record: NotificationRecord | undefined) =>
          claim(record, { ...wakeUp, nowMs, leaseMs, maxLostLeases, isUnrecorded }, rules),
      })),
    );
    const answers: DelayAnswer[] = [];
    const lost: { index: number; wakeUp: WokenUp }[] = [];
    let next = 0;
    for (const [i, entry] of entries.entries()) {
      const answer = woken[i] ? applied[next] : undefined;
      if (!answer || 'error' in answer) {
        answers[i] = this.#drop(lane, 'unreadable');
        if (woken[i]) next += 1;
        continue;
      }
      const { result, record } = answer;
      const wakeUp = known[next++]!;
      if (result.type === 'lost_lease') lost.push({ index: i, wakeUp });
      else {
        const claimed = { ...wakeUp, lane, leaseEndsMs, places };
        answers[i] = this.#answer(lane, entry, claimed, result, record);
      }
    }
    // Last: where one of them fails, what was claimed has begun. Else it would wait for the end of its lease.
    for (const { index, wakeUp } of lost) {
      answers[index] = await this.#takeOver(lane, entries[index]!, { ...wakeUp, places });
    }
    return answers;
  }

  #answer(
    lane: Lane,
    entry: DueEntry,
    wakeUp: Omit<Attempt, 'record' | 'delivery'>,
    result: Exclude<Claimed, { type: 'lost_lease' }>,
    record: NotificationRecord | undefined,
  ): DelayAnswer {
    const { tell, publisher } = this.#parts;
    if (!record || result.type === 'dropped') {
      return this.#drop(lane, result.type === 'dropped' ? result.reason : 'unknown');
    }
    const { priority } = record.notification;
    switch (result.type) {
      case 'claimed': {
        const { delivery } = result;
        const again = (delivery.leases ?? 1) > 1;
        tell({ type: 'started', priority, lane, lateMs: entry.lateMs, again });
        this.#start({ ...wakeUp, record, delivery });
        return done;
      }
      case 'again':
        if (result.isDeferred) tell({ type: 'postponed', lane, reason: 'quiet_hours' });
        return { type: 'again', delayMs: Math.max(1, Math.ceil(result.delayMs)) };
      case 'expired':
        tell({ type: 'expired', priority });
        break;
      case 'worker_lost':
        tell({ type: 'failed', priority, reason: 'WORKER_LOST' });
    }
    publisher.publishSoon([record]);
    return done;
  }

  #drop(lane: Lane, reason: Extract<Claimed, { type: 'dropped' }>['reason']): DelayAnswer {
    this.#parts.tell({ type: 'dropped', lane, reason });
    return done;
  }

  /** Its worker was lost. Had it recorded the outcome, the outcome counts, and nothing is sent once more. */
  async #takeOver(
    lane: Lane,
    entry: DueEntry,
    { notificationId, deviceId, attempt, places }: WokenUp & { places: Places },
  ): Promise<DelayAnswer> {
    const { repository, reports } = this.#parts;
    const after = { deviceId, attemptNumber: attempt - 1 };
    const [recorded] = await repository.attempts(notificationId, { deviceId, after, limit: 1 });
    if (recorded?.attemptNumber !== attempt) {
      const [answer] = await this.#begin(lane, [entry], true, places);
      return answer!;
    }
    await reports.add(reportOf(recorded));
    return done;
  }

  #start(attempt: Attempt): void {
    const running = this.#running.get(attempt.lane)!;
    attempt.places.left -= 1;
    const work = this.#run(attempt)
      .catch((err: unknown) => {
        const { notificationId, deviceId } = attempt;
        this.#parts.host.log.warn(
          { err, notification: notificationId, device: deviceId, attempt: attempt.attempt },
          'the outcome of a delivery could not be written; it is looked at when its lease is over',
        );
      })
      .finally(() => {
        running.delete(work);
        this.#rooms[attempt.lane].leave(1);
      });
    running.add(work);
  }

  async #run(attempt: Attempt): Promise<void> {
    const { host } = this.#parts;
    const { deliver, deliverTimeoutMs } = this.#options;
    // A claim that took long may leave too little of the lease: another would begin while this one still runs.
    const isLate = host.clock.monotonic() + deliverTimeoutMs > attempt.leaseEndsMs;
    // Or its notification ended meanwhile: the next look says so.
    const isOver = host.clock.now() >= attempt.record.notification.expiresAtMs;
    const outcome: DeliverOutcome =
      isLate || isOver
        ? { outcome: 'not_sent', delayMs: 0 }
        : await runDelivery(deliver, attempt, deliverTimeoutMs, host, this.#stopping.signal);
    // Until it is written, or another may have it.
    await persist(() => this.#settle(attempt, outcome), {
      host,
      what: 'writing the outcome of a delivery',
      until: this.#stopping.signal,
      isWorthIt: () => host.clock.monotonic() < attempt.leaseEndsMs,
    });
  }

  async #settle(attempt: Attempt, outcome: DeliverOutcome): Promise<void> {
    const { reports, tell } = this.#parts;
    const { notificationId, deviceId, attempt: attemptNumber, lease, lane } = attempt;
    const subject = { notificationId, deviceId, attemptNumber };
    switch (outcome.outcome) {
      case 'delivered':
      case 'failed': {
        const { outcome: type, ...rest } = outcome;
        const report = { ...subject, ...rest };
        const answer = await reports.add(
          type === 'delivered'
            ? { type: 'success', report, lease }
            : { type: 'failure', report, lease },
        );
        if (answer.type === 'rejected') throw answer.error;
        if (answer.type === 'lease_lost') tell({ type: 'leaseLost', lane });
        return;
      }
      case 'handed_over':
        return this.#handOver(attempt);
      case 'not_sent':
        return this.#putBack(attempt, outcome.delayMs ?? DEFAULT_NOT_SENT_MS);
      case 'stopped':
        // Whether it was sent nobody knows: its lease ends, and another looks.
        return;
    }
  }

  async #handOver({ notificationId, deviceId, lease }: Attempt): Promise<void> {
    const { writer, host } = this.#parts;
    const nowMs = host.clock.now();
    // A failure may be reported faster than this is written: then there is nothing left to write.
    await writer.apply([
      {
        id: notificationId,
        apply: (record) =>
          record ? handedOver(record, deviceId, lease, nowMs) : { result: false },
      },
    ]);
  }

  async #putBack(
    { notificationId, deviceId, attempt, lease, lane }: Attempt,
    delayMs: number,
  ): Promise<void> {
    const { writer, host, rules, wakeUps, tell } = this.#parts;
    const nowMs = host.clock.now();
    const [applied] = await writer.apply([
      {
        id: notificationId,
        apply: (record) =>
          record ? putBack(record, deviceId, lease, delayMs, nowMs, rules) : { result: undefined },
      },
    ]);
    if (!applied || 'error' in applied || !applied.result) return;
    tell({ type: 'postponed', lane, reason: 'not_sent' });
    const { dueAtMs } = applied.result;
    const wakeUp = { notificationId, deviceId, attempt, lane, dueAtMs };
    await wakeUps.schedule([{ ...wakeUp, isAgain: true }]);
  }
}

const DEFAULT_NOT_SENT_MS = 5000;

function reportOf(attempt: DeliveryAttempt): Report {
  const { notificationId, deviceId, attemptNumber, platformResponse, attemptedAtMs } = attempt;
  const { status, errorCode, errorMessage } = attempt;
  const report = {
    notificationId,
    deviceId,
    attemptNumber,
    attemptedAtMs,
    ...(platformResponse === undefined ? {} : { platformResponse }),
    ...(errorCode === undefined ? {} : { errorCode }),
    ...(errorMessage === undefined ? {} : { errorMessage }),
  };
  return status === 'delivered' ? { type: 'success', report } : { type: 'failure', report };
}

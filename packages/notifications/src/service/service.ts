/** The notification service: records, retries and their end, on a repository and two queues. */
import { randomUUID } from 'node:crypto';
import { closeAll, type Host, hostOf, persist, within } from '@redrive/engine/internal';
import type { Clock } from 'redrive';
import { NotificationError, type NotificationFault } from '../errors.ts';
import type { FailureReport } from '../model/assess.ts';
import { replayed, type Replayed } from '../model/moves.ts';
import type { DeliveryAttempt, NotificationRecord } from '../model/notification.ts';
import { type Lane, laneOfPriority, lanes, policiesWith } from '../model/retry-config.ts';
import type { AttemptPage, NotificationQuery } from '../ports/repository.ts';
import { checkReport, type NewNotification, notificationFaults, reportFaults } from './checks.ts';
import { createAll } from './creation.ts';
import { deviceService } from './devices.ts';
import type {
  CreatedNotification,
  LaneStats,
  Notifications,
  NotificationStats,
  Refused,
} from './notifications.ts';
import { checkedLane, checkedTimes, type NotificationOptions } from './options.ts';
import type { Parts } from './parts.ts';
import { publicationsOf, Publisher } from './publisher.ts';
import { RecordWriter } from './record-writer.ts';
import {
  type FailureAnswer,
  type Report,
  type SuccessAnswer,
  type SuccessReport,
  unknownNotification,
} from './report.ts';
import { Reports } from './reports.ts';
import { Sweeper } from './sweeper.ts';
import { Waker } from './waker.ts';
import { WakeUps } from './wake-ups.ts';

const PUBLISH_WITHIN_MS = 15_000;
const WAKE_PAUSES = { firstMs: 10_000, longestMs: 600_000 };
const SWEEP_BATCH = 200;
/** For what was aborted, and for each part that is closed: none may keep the process for ever. */
const ABORT_MS = 1000;
const CLOSE_MS = 5000;

export function createNotifications(options: NotificationOptions): Notifications {
  return new NotificationService(options);
}

class NotificationService implements Notifications {
  readonly #options: NotificationOptions;
  readonly #parts: Parts;
  readonly #writer: RecordWriter;
  readonly #wakeUps: WakeUps;
  readonly #publisher: Publisher;
  readonly #reports: Reports;
  readonly #waker: Waker;
  readonly #sweeper: Sweeper;
  readonly #newId: () => string;
  readonly #stopTimeoutMs: number;
  readonly #stopping = new AbortController();
  #started: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  readonly #troubles = new Map<'repository' | Lane, string>();
  #isOpen = false;
  readonly #openLanes = new Set<Lane>();

  constructor(options: NotificationOptions) {
    const times = checkedTimes(options);
    const { repository, queues, on, audit, seed = 0 } = options;
    const host = wholeMs(hostOf(options));
    const { graceMs, stopTimeoutMs } = times;
    this.#stopTimeoutMs = stopTimeoutMs;
    this.#options = options;
    this.#newId = options.newId ?? randomUUID;
    const parts: Parts = {
      host,
      repository,
      queues,
      policies: policiesWith(options.policies),
      rules: { graceMs, publishWithinMs: PUBLISH_WITHIN_MS, publishes: publicationsOf(options) },
      seed: typeof seed === 'function' ? seed : () => seed,
      tell: (event) => on?.(event),
      audit,
    };
    const { devices: given } = options;
    const devices = given && ('look' in given ? given : deviceService(given, host));
    const writer = (this.#writer = new RecordWriter(parts));
    const wakeUps = (this.#wakeUps = new WakeUps(parts, writer));
    const publisher = (this.#publisher = new Publisher(parts, writer, options));
    const reports = (this.#reports = new Reports({
      ...parts,
      writer,
      wakeUps,
      publisher,
      devices,
    }));
    this.#parts = parts;
    this.#waker = new Waker(
      { ...parts, writer, reports, wakeUps, publisher },
      {
        ...times,
        deliver: options.deliver,
        // No more than can be started soon: what is leased here nobody else can deliver.
        limits: { stopTimeoutMs, maxBatch: Math.min(times.concurrency, 100), ...options.limits },
        newLease: this.#newId,
      },
    );
    const { sweepMs: everyMs, retentionMs } = times;
    this.#sweeper = new Sweeper(
      { ...parts, writer, publisher, wakeUps },
      {
        everyMs,
        batch: SWEEP_BATCH,
        pauses: WAKE_PAUSES,
        isPaused: (lane) => this.#waker.isPaused(lane),
        ...(retentionMs === 0 ? {} : { retentionMs }),
        onTrouble: (error) => {
          if (error === undefined) this.#troubles.delete('repository');
          else this.#troubles.set('repository', messageOf(error));
        },
      },
    );
  }

  start(): Promise<void> {
    if (this.#stopped) {
      const message = 'The notification service was stopped. Create a new one.';
      return Promise.reject(new NotificationError('NOTIFICATIONS_STOPPED', message));
    }
    return (this.#started ??= this.#start());
  }

  async #start(): Promise<void> {
    const { repository } = this.#parts;
    await this.#reach('repository', 'opening the repository', () => repository.open());
    this.#isOpen = true;
    if (this.#stopping.signal.aborted) return;
    if (this.#options.consume !== false) this.#sweeper.start();
    // Each by itself: a queue that is away must not keep the other lane from its work.
    await Promise.all(lanes.map((lane) => this.#startLane(lane)));
  }

  async #startLane(lane: Lane): Promise<void> {
    const { queues } = this.#parts;
    await this.#reach(lane, `opening the ${lane} queue`, () => queues[lane].open());
    this.#openLanes.add(lane);
    if (this.#stopping.signal.aborted || this.#options.consume === false) return;
    await this.#reach(lane, `consuming ${lane} retries`, () => this.#waker.start(lane));
  }

  /** Tries until it works or the service stops. Rejects at once where no waiting helps. */
  async #reach(place: 'repository' | Lane, what: string, work: () => Promise<void>): Promise<void> {
    const attempt = async () => {
      try {
        await work();
        this.#troubles.delete(place);
      } catch (error) {
        this.#troubles.set(place, messageOf(error));
        throw error;
      }
    };
    const { host } = this.#parts;
    const until = this.#stopping.signal;
    await persist(attempt, { host, what, until, isWorthIt: (error) => !isHopeless(error) });
  }

  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    const { repository, queues, host } = this.#parts;
    const drained = this.#drain();
    if (!(await within(host, this.#stopTimeoutMs, drained))) {
      this.#waker.abort();
      if (!(await within(host, ABORT_MS, drained)))
        host.log.warn(
          {},
          'some deliveries did not end in time; another instance takes them over when their leases expire',
        );
    }
    await closeAll(host, CLOSE_MS, [
      () => queues.urgent.close(),
      () => queues.bulk.close(),
      () => repository.close(),
    ]);
  }

  async #drain(): Promise<void> {
    // Not after the start: the queue of one lane may still open, for ever, while the other one delivers.
    await Promise.all([this.#sweeper.stop(), this.#waker.stop()]);
    await this.#publisher.settle();
    // Whoever started it has the error of the start.
    await this.#started?.catch(() => undefined);
  }

  async create(given: NewNotification): Promise<CreatedNotification> {
    const [created] = await this.createMany([given]);
    if ('error' in created!) throw created.error;
    return created!;
  }

  createMany(given: readonly NewNotification[]): Promise<(CreatedNotification | Refused)[]> {
    const { existing } = this.#options;
    return createAll(given, { ...this.#parts, newId: this.#newId, existing });
  }

  async reportFailure(report: FailureReport): Promise<FailureAnswer> {
    return only(await this.reportFailures([report]));
  }

  async reportFailures(reports: readonly FailureReport[]): Promise<(FailureAnswer | Refused)[]> {
    return this.#report<FailureAnswer>(reports.map((report) => ({ type: 'failure', report })));
  }

  async reportSuccess(report: SuccessReport): Promise<SuccessAnswer> {
    return only(await this.reportSuccesses([report]));
  }

  async reportSuccesses(reports: readonly SuccessReport[]): Promise<(SuccessAnswer | Refused)[]> {
    return this.#report<SuccessAnswer>(reports.map((report) => ({ type: 'success', report })));
  }

  async #report<Answer>(reports: readonly Report[]): Promise<(Answer | Refused)[]> {
    const nowMs = this.#parts.host.clock.now();
    return Promise.all(
      reports.map(async (report): Promise<Answer | Refused> => {
        try {
          checkReport(report.report, nowMs);
        } catch (error) {
          if (error instanceof NotificationError) return { error };
          throw error;
        }
        const answer = await this.#reports.add(report);
        if (answer.type === 'rejected') return { error: answer.error };
        if (answer.type === 'lease_lost')
          return { error: unknownNotification(report.report.notificationId) };
        const { type: _, ...rest } = answer;
        return rest as Answer;
      }),
    );
  }

  faultsOf(notification: NewNotification): readonly NotificationFault[] {
    return notificationFaults(notification);
  }

  reportFaultsOf(report: FailureReport): readonly NotificationFault[] {
    return reportFaults(report, this.#parts.host.clock.now());
  }

  async get(id: string): Promise<NotificationRecord | undefined> {
    const [record] = await this.#parts.repository.find([id]);
    return record;
  }

  attempts(id: string, page: AttemptPage): Promise<DeliveryAttempt[]> {
    return this.#parts.repository.attempts(id, page);
  }

  list(query: NotificationQuery): Promise<NotificationRecord[]> {
    return this.#parts.repository.list(query);
  }

  async replay(id: string, deviceId: string): Promise<Replayed> {
    const { host, rules, tell } = this.#parts;
    const nowMs = host.clock.now();
    const change = {
      id,
      apply: (record: NotificationRecord | undefined) =>
        record
          ? replayed(record, deviceId, nowMs, rules)
          : { result: { result: 'unknown' } as const },
    };
    const [applied] = await this.#writer.apply<Replayed>([change]);
    if (!applied) return { result: 'unknown' };
    if ('error' in applied) throw applied.error;
    const { result, record } = applied;
    if (!record || result.attempt === undefined) return result;
    const { priority } = record.notification;
    const lane = laneOfPriority[priority];
    if (result.result === 'scheduled') tell({ type: 'replayed', priority });
    const dueAtMs = record.deliveries[deviceId]?.dueAtMs ?? nowMs;
    await this.#wakeUps.schedule([
      { notificationId: id, deviceId, attempt: result.attempt, lane, dueAtMs },
    ]);
    this.#publisher.publishSoon([{ record, deviceIds: [deviceId] }]);
    return result;
  }

  async pause(lane: Lane): Promise<void> {
    this.#waker.setPaused(checkedLane(lane), true);
    await this.#waker.consume(lane);
  }

  async resume(lane: Lane): Promise<void> {
    this.#waker.setPaused(checkedLane(lane), false);
    // A queue that is away is asked until it answers. The lane may be paused again meanwhile.
    await this.#reach(lane, `consuming ${lane} retries`, () => this.#waker.consume(lane));
  }

  stats(): NotificationStats {
    const of = (lane: Lane): LaneStats => {
      const trouble = this.#troubles.get(lane) ?? this.#waker.trouble(lane);
      return {
        running: this.#waker.running(lane),
        isPaused: this.#waker.isPaused(lane),
        isOpen: this.#openLanes.has(lane),
        ...(trouble === undefined ? {} : { trouble }),
      };
    };
    const [urgent, bulk] = [of('urgent'), of('bulk')];
    const trouble = this.#troubles.get('repository');
    return {
      running: urgent.running + bulk.running,
      isOpen: this.#isOpen,
      lanes: { urgent, bulk },
      ...(trouble === undefined ? {} : { trouble }),
    };
  }
}

/** What is the same tomorrow. An operator can heal everything else while the service waits. */
const hopeless: readonly unknown[] = [
  'PEER_MISSING',
  'NODE_TOO_OLD',
  'INVALID_CONFIG',
  'SCHEMA_TOO_NEW',
  'TABLE_NOT_OURS',
  'STORE_CORRUPT',
  'STORE_NOT_LOCAL',
];

function isHopeless(error: unknown): boolean {
  return error instanceof Error && 'code' in error && hopeless.includes(error.code);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Records hold whole ms. */
function wholeMs(host: Host): Host {
  const { clock } = host;
  const whole: Clock = {
    now: () => Math.floor(clock.now()),
    monotonic: () => clock.monotonic(),
    setTimer: (callback, ms, unref) => clock.setTimer(callback, Math.ceil(ms), unref),
    clearTimer: (timer) => clock.clearTimer(timer),
  };
  return { ...host, clock: whole };
}

function only<Answer>([answer]: readonly (Answer | Refused)[]): Answer {
  if (typeof answer === 'object' && answer !== null && 'error' in answer) throw answer.error;
  return answer as Answer;
}

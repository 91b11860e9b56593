/** Looks at every record past its time: schedules again what waits, publishes what is flagged. All instances may run it. */
import { looked, type WakePause } from '../model/claims.ts';
import type { NotificationRecord } from '../model/notification.ts';
import { deliveryOf, withoutReports } from '../model/record.ts';
import { type Lane, laneOfPriority } from '../model/retry-config.ts';
import type { Parts } from './parts.ts';
import type { Publisher } from './publisher.ts';
import type { RecordWriter } from './record-writer.ts';
import type { WakeUp, WakeUps } from './wake-ups.ts';

interface SweeperParts extends Parts {
  writer: RecordWriter;
  publisher: Publisher;
  wakeUps: WakeUps;
}

interface SweeperOptions {
  everyMs: number;
  batch: number;
  pauses: WakePause;
  isPaused: (lane: Lane) => boolean;
  /** How long a record is kept after its last write. Undefined: for ever. */
  retentionMs?: number;
  onTrouble: (error: unknown) => void;
}

const PRUNE_EVERY_MS = 60_000;
const PRUNE_BATCH = 1000;

export class Sweeper {
  readonly #parts: SweeperParts;
  readonly #options: SweeperOptions;
  readonly #scheduling = new Set<Promise<void>>();
  #timer: unknown;
  #underway: Promise<void> | undefined;
  #isStopped = false;
  #prunedAtMs = -Infinity;

  constructor(parts: SweeperParts, options: SweeperOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  start(): void {
    this.#plan();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#parts.host.clock.clearTimer(this.#timer);
    await this.#underway;
    await Promise.all(this.#scheduling);
  }

  /** Spread, so that many instances do not look at the same moment. */
  #plan(): void {
    if (this.#isStopped) return;
    const { host } = this.#parts;
    const ms = this.#options.everyMs * (0.5 + host.random());
    this.#timer = host.clock.setTimer(
      () => {
        this.#underway = this.#round().finally(() => {
          this.#underway = undefined;
          this.#plan();
        });
      },
      ms,
      true,
    );
  }

  async #round(): Promise<void> {
    try {
      let found: number;
      do found = await this.sweep();
      while (found >= this.#options.batch && !this.#isStopped);
      await this.#prune();
      this.#options.onTrouble(undefined);
    } catch (err) {
      this.#parts.host.log.warn({ err }, 'a sweep failed, and is tried again');
      this.#options.onTrouble(err);
    }
  }

  /** One batch. Answers how many records it found. */
  async sweep(): Promise<number> {
    const { repository, writer, host, tell } = this.#parts;
    const { batch } = this.#options;
    const nowMs = host.clock.now();
    const due = await repository.due(nowMs, batch);
    if (due.length === 0) return 0;
    const looks = due.map((record) => this.#look(record, nowMs));
    const { lost, refused } = await writer.write(looks.map(({ record }) => record));
    // Another one looks at those that are lost.
    const mine = looks.filter(({ record: { id } }) => !lost.has(id) && !refused.has(id));
    tell({ type: 'swept', count: mine.length });
    for (const { record, expired } of mine) {
      const { priority } = record.notification;
      for (let i = 0; i < expired; i++) tell({ type: 'expired', priority });
    }
    this.#follow(mine);
    return due.length;
  }

  #look(record: NotificationRecord, nowMs: number): Looked {
    if (Object.keys(record.deliveries).length === 0) {
      return { before: record, record: withoutReports(record, nowMs), deviceIds: [], expired: 0 };
    }
    const { pauses } = this.#options;
    return { before: record, ...looked(record, nowMs, pauses, this.#parts.rules) };
  }

  /** Nobody waits for the queues: one that does not answer must not keep the records of the other from being looked at. */
  #follow(looks: readonly Looked[]): void {
    const { wakeUps, publisher } = this.#parts;
    const wanted = looks.flatMap(({ before, record, deviceIds }) =>
      deviceIds
        .filter((deviceId) => this.#isMissing(before, deviceId))
        .flatMap((deviceId) => wakeUpOf(record, deviceId)),
    );
    const work = wakeUps.schedule(wanted).finally(() => this.#scheduling.delete(work));
    this.#scheduling.add(work);
    publisher.publishSoon(looks);
  }

  /** Nobody takes entries from a paused queue: one that was scheduled is there, and more would only heap up. */
  #isMissing(before: NotificationRecord, deviceId: string): boolean {
    if (!this.#options.isPaused(laneOfPriority[before.notification.priority])) return true;
    const { wakes = 0, unscheduled } = deliveryOf(before, deviceId)!;
    return wakes === 0 || unscheduled === true;
  }

  async #prune(): Promise<void> {
    const { repository, host } = this.#parts;
    const { retentionMs } = this.#options;
    const nowMs = host.clock.monotonic();
    if (retentionMs === undefined || nowMs - this.#prunedAtMs < PRUNE_EVERY_MS) return;
    this.#prunedAtMs = nowMs;
    const beforeMs = host.clock.now() - retentionMs;
    while (!this.#isStopped && (await repository.prune(beforeMs, PRUNE_BATCH)) >= PRUNE_BATCH);
  }
}

interface Looked {
  before: NotificationRecord;
  record: NotificationRecord;
  deviceIds: readonly string[];
  /** How many of its deliveries ended with it now. */
  expired: number;
}

/** Whatever is not over. The record says, when the wake-up comes, what there is to be done. */
function wakeUpOf(record: NotificationRecord, deviceId: string): WakeUp[] {
  const delivery = deliveryOf(record, deviceId);
  if (delivery?.state !== 'AwaitingRetry' && delivery?.state !== 'Retrying') return [];
  const { attempt, dueAtMs, leaseUntilMs } = delivery;
  const lane = laneOfPriority[record.notification.priority];
  return [
    { notificationId: record.id, deviceId, attempt, lane, dueAtMs: dueAtMs ?? leaseUntilMs ?? 0 },
  ];
}

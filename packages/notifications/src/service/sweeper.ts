/** Looks at every record past its time: schedules again what waits, publishes what is flagged. All instances may run it. */
import { looked, type WakePause } from '../model/claims.ts';
import type { NotificationRecord } from '../model/notification.ts';
import { deliveryOf, withoutReports } from '../model/record.ts';
import { laneOfPriority } from '../model/retry-config.ts';
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
  /** How long a record is kept after its last write. Undefined: for ever. */
  retentionMs?: number;
  onTrouble: (error: unknown) => void;
}

const PRUNE_EVERY_MS = 60_000;
const PRUNE_BATCH = 1000;

export class Sweeper {
  readonly #parts: SweeperParts;
  readonly #options: SweeperOptions;
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
      this.#parts.host.log.warn({ err }, 'the sweeper waits for the repository');
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
    await this.#follow(mine);
    return due.length;
  }

  #look(record: NotificationRecord, nowMs: number): Looked {
    if (Object.keys(record.deliveries).length === 0) {
      return { record: withoutReports(record, nowMs), deviceIds: [] };
    }
    return looked(record, nowMs, this.#options.pauses, this.#parts.rules);
  }

  async #follow(looks: readonly Looked[]): Promise<void> {
    const { wakeUps, publisher } = this.#parts;
    const wanted = looks.flatMap(({ record, deviceIds }) =>
      deviceIds.flatMap((deviceId) => wakeUpOf(record, deviceId)),
    );
    await wakeUps.schedule(wanted);
    // Behind it: a topic that is away must not hold up the wake-ups of others.
    publisher.publishSoon(looks.map(({ record }) => record));
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
  record: NotificationRecord;
  deviceIds: readonly string[];
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

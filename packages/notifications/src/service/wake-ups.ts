/** Wake-ups: what goes into the queues, and comes out of them when it is due. */
import { createHash } from 'node:crypto';
import type { DelayedEntry } from '@redrive/engine';
import { MAX_ENTRY_DELAY_MS, MAX_ENTRY_ID_LENGTH } from '@redrive/engine';
import { lookSoon } from '../model/claims.ts';
import type { Lane } from '../model/retry-config.ts';
import { inTime } from './in-time.ts';
import type { Parts } from './parts.ts';
import type { RecordWriter } from './record-writer.ts';

export interface WakeUp {
  notificationId: string;
  deviceId: string;
  attempt: number;
  lane: Lane;
  dueAtMs: number;
  /** The attempt waits again. Its entry may still be in hand, so that a queue would take one of the same id for known. */
  isAgain?: true;
}

/** How soon the sweeper looks at what could not be scheduled. */
const SOON_MS = 2000;
/** A queue that does not answer must not hold up reports: the record is durable, and the sweeper does it again. */
const SCHEDULE_TIMEOUT_MS = 5000;
/** Wake-ups that this process has scheduled, so that a report that is repeated adds no entry: so many, and as many before. */
const MAX_REMEMBERED = 10_000;
/** Wake-ups of a lane on their way to its queue. A queue that does not answer must not take all memory. */
const MAX_UNDERWAY = 10_000;

export class WakeUps {
  readonly #parts: Parts;
  readonly #writer: RecordWriter;
  #scheduled = new Set<string>();
  #scheduledBefore = new Set<string>();
  readonly #underway: Record<Lane, number> = { urgent: 0, bulk: 0 };

  constructor(parts: Parts, writer: RecordWriter) {
    this.#parts = parts;
    this.#writer = writer;
  }

  /** Never rejects: what could not be scheduled is looked at soon by the sweeper. */
  async schedule(wakeUps: readonly WakeUp[]): Promise<void> {
    const urgent = wakeUps.filter(({ lane }) => lane === 'urgent');
    const bulk = wakeUps.filter(({ lane }) => lane === 'bulk');
    await Promise.all([this.#scheduleIn('urgent', urgent), this.#scheduleIn('bulk', bulk)]);
  }

  /** Whether this process has surely scheduled it already. */
  has(wakeUp: WakeUp): boolean {
    const key = keyOf(wakeUp);
    return this.#scheduled.has(key) || this.#scheduledBefore.has(key);
  }

  async #scheduleIn(lane: Lane, wakeUps: readonly WakeUp[]): Promise<void> {
    if (wakeUps.length === 0) return;
    const { host, queues, tell } = this.#parts;
    const nowMs = host.clock.now();
    const count = wakeUps.length;
    this.#underway[lane] += count;
    try {
      if (this.#underway[lane] > MAX_UNDERWAY)
        throw new Error(`More than ${MAX_UNDERWAY} wake-ups wait for the queue.`);
      const entries = wakeUps.map((wakeUp) => entryOf(wakeUp, nowMs));
      await inTime(host.clock, SCHEDULE_TIMEOUT_MS, 'The queue', queues[lane].schedule(entries));
      for (const wakeUp of wakeUps) this.#remember(keyOf(wakeUp));
    } catch (err) {
      host.log.warn(
        { err, lane, count },
        'retries could not be scheduled; the sweeper schedules them again',
      );
      tell({ type: 'unscheduled', lane, count });
      await this.#lookSoon(wakeUps);
    } finally {
      this.#underway[lane] -= count;
    }
  }

  async #lookSoon(wakeUps: readonly WakeUp[]): Promise<void> {
    const { host } = this.#parts;
    const nowMs = host.clock.now();
    const changes = wakeUps.map((wakeUp) => ({
      id: wakeUp.notificationId,
      apply: (record: Parameters<typeof lookSoon>[0] | undefined) =>
        record ? lookSoon(record, wakeUp, SOON_MS, nowMs) : { result: false },
    }));
    try {
      await this.#writer.apply(changes);
    } catch (err) {
      // The record has a time of its own at which somebody looks, only later.
      host.log.warn(
        { err, count: wakeUps.length },
        'the sweeper could not be told of these retries, and finds them later',
      );
    }
  }

  /** By generations: to find the oldest in a set of which many were deleted takes long. */
  #remember(key: string): void {
    this.#scheduled.add(key);
    if (this.#scheduled.size < MAX_REMEMBERED) return;
    this.#scheduledBefore = this.#scheduled;
    this.#scheduled = new Set();
  }
}

/** A due time that was moved is another wake-up. */
function keyOf(wakeUp: WakeUp): string {
  return `${idOf(wakeUp)} ${wakeUp.dueAtMs}`;
}

function idOf({ notificationId, deviceId, attempt, dueAtMs, isAgain }: WakeUp): string {
  const which = isAgain ? `${attempt}:${dueAtMs}` : `${attempt}`;
  const id = `${notificationId}:${deviceId}:${which}`;
  if (id.length <= MAX_ENTRY_ID_LENGTH) return id;
  // Some ids of devices are tokens. What the entry is about stands in its payload.
  return `${notificationId}:${createHash('sha256').update(deviceId).digest('hex')}:${which}`;
}

function entryOf(wakeUp: WakeUp, nowMs: number): DelayedEntry {
  const { notificationId, deviceId, attempt, dueAtMs } = wakeUp;
  const payload = { notification_id: notificationId, device_id: deviceId, attempt };
  return {
    id: idOf(wakeUp),
    delayMs: Math.min(Math.max(0, Math.ceil(dueAtMs - nowMs)), MAX_ENTRY_DELAY_MS),
    payload: Buffer.from(JSON.stringify(payload)),
    key: notificationId,
  };
}

export interface WokenUp {
  notificationId: string;
  deviceId: string;
  attempt: number;
}

/** Undefined: not one of ours. */
export function readWakeUp(payload: Uint8Array): WokenUp | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(payload).toString('utf8'));
  } catch {
    return undefined;
  }
  const {
    notification_id: notificationId,
    device_id: deviceId,
    attempt,
  } = Object(value) as Record<string, unknown>;
  if (typeof notificationId !== 'string' || typeof deviceId !== 'string') return undefined;
  if (!Number.isInteger(attempt)) return undefined;
  return { notificationId, deviceId, attempt: attempt as number };
}

/** Looks at every write and every delivery of a made-up world, and says what must never be. */
import type { Clock } from 'redrive';
import {
  type DeliveryAttempt,
  type DeliveryRecord,
  type DeliveryState,
  mayMove,
  type NotificationRecord,
  type NotificationRepository,
  statusOf,
  type Written,
} from '@redrive/notifications';

type From = Parameters<typeof mayMove>[0];

/** The ways that one write may go: through states that are never stored. */
const ways: readonly (readonly DeliveryState[])[] = [
  ['DeliveryFailed', 'AssessingRetry', 'SchedulingRetry', 'AwaitingRetry'],
  ['DeliveryFailed', 'AssessingRetry', 'PermanentFailure'],
  ['DeliveryFailed', 'AssessingRetry', 'Skipped'],
  ['DeliveryFailed', 'AssessingRetry', 'Expired'],
  ['SchedulingRetry', 'AwaitingRetry'],
  ['AwaitingRetry'],
  ['Retrying'],
  ['DeliverySucceeded'],
  ['Expired'],
];

export class Witness {
  readonly faults: string[] = [];
  readonly #clock: Clock;
  /** By attempt: when it is due, as it is stored. */
  readonly #due = new Map<string, number>();
  readonly #deliveries = new Map<string, { instance: string; atMs: number }[]>();
  readonly #dead = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  died(instance: string): void {
    this.#dead.add(instance);
  }

  /** How often each attempt was delivered. */
  get deliveries(): ReadonlyMap<string, readonly { instance: string; atMs: number }[]> {
    return this.#deliveries;
  }

  async write(
    repository: NotificationRepository,
    records: readonly NotificationRecord[],
    attempts: readonly DeliveryAttempt[] = [],
  ): Promise<Written> {
    const before = await repository.find(records.map(({ id }) => id));
    const written = await repository.write(records, attempts);
    for (const [i, record] of records.entries())
      if (written.records[i]) this.#compare(before[i]!, record);
    return written;
  }

  #compare(before: NotificationRecord, after: NotificationRecord): void {
    const all = Object.entries(after.deliveries);
    for (const [deviceId, delivery] of all) {
      const old = Object.hasOwn(before.deliveries, deviceId)
        ? before.deliveries[deviceId]
        : undefined;
      this.#move(`${after.id} ${deviceId}`, old, delivery);
    }
    const sum = all.reduce((count, [, { retryCount }]) => count + retryCount, 0);
    this.#must(
      after.retryCount === sum,
      `${after.id} counts ${after.retryCount} of ${sum} retries`,
    );
    const isExpired = all.length === 0 && after.status === 'expired';
    const status = statusOf(all.map(([, delivery]) => delivery));
    this.#must(
      isExpired || after.status === status,
      `${after.id} is ${after.status}, not ${status}`,
    );
    const open = all.some(([, { state }]) => state === 'AwaitingRetry' || state === 'Retrying');
    this.#must(!open || after.wakeAtMs !== undefined, `${after.id} waits, and nobody wakes it`);
  }

  #move(name: string, old: DeliveryRecord | undefined, next: DeliveryRecord): void {
    const from: From = old?.state ?? '[*]';
    const isSame =
      old?.state === next.state && old.lease === next.lease && old.dueAtMs === next.dueAtMs;
    this.#must(isSame || isWay(from, next.state), `${name} went from ${from} to ${next.state}`);
    // A late success names the attempt that worked, while the next one was awaited.
    const isBack = next.attempt < (old?.attempt ?? 1) && next.state !== 'DeliverySucceeded';
    this.#must(!isBack, `${name} went back to attempt ${next.attempt}`);
    if (next.state === 'AwaitingRetry') this.#due.set(`${name} ${next.attempt}`, next.dueAtMs!);
  }

  delivering(instance: string, attempt: string, isSent: boolean): void {
    const dueMs = this.#due.get(attempt);
    this.#must(dueMs !== undefined, `${attempt} was delivered, and never scheduled`);
    const earlyMs = (dueMs ?? 0) - this.#clock.now();
    this.#must(earlyMs <= 0, `${attempt} was delivered ${earlyMs} ms early`);
    if (!isSent) return;
    const others = this.#deliveries.get(attempt) ?? [];
    const isExplained = others.every((other) => this.#dead.has(other.instance));
    this.#must(isExplained, `${attempt} was delivered twice, and no crash explains it`);
    this.#deliveries.set(attempt, [...others, { instance, atMs: this.#clock.now() }]);
  }

  #must(isTrue: boolean, fault: string): void {
    if (!isTrue) this.faults.push(fault);
  }
}

function isWay(from: From, to: DeliveryState): boolean {
  return ways.some((way) => {
    if (way.at(-1) !== to) return false;
    return way.every((state, i) => mayMove(i === 0 ? from : way[i - 1]!, state));
  });
}

/** What became of every retry, compared with what was delivered: the faults, in sentences. */
import type { NotificationRecord } from '@redrive/notifications';
import { BASE_MS, MAX_ATTEMPTS } from './parts.ts';
import type { Delivered, Receiver } from './receiver.ts';

export const devices = ['phone', 'tablet'];

/** Every fifth notification never works; the others work at their third attempt. */
export function statusFor({ id, attempt }: Delivered): number {
  return !isHopeless(id) && attempt >= 3 ? 200 : 500;
}

function isHopeless(id: string): boolean {
  return Number(id.slice(1)) % 5 === 0;
}

export function nameOf({ id, deviceId, attempt }: Omit<Delivered, 'worker' | 'atMs'>): string {
  return `${id} ${deviceId} ${attempt}`;
}

const priorities = ['critical', 'high', 'medium', 'low'] as const;

export function newNotifications(count: number) {
  return Array.from({ length: count }, (_, i) => ({
    id: `n${i}`,
    recipient: { userId: 'u' },
    priority: priorities[i % 4]!,
    notification: { title: 't', body: 'b' },
    source: 'test',
  }));
}

type ReadAll = () => Promise<readonly (NotificationRecord | undefined)[]>;

/** The records when all of them have ended. */
export async function settled(receiver: Receiver, read: ReadAll): Promise<NotificationRecord[]> {
  for (;;) {
    const records = await read();
    if (records.every((record) => record?.status === 'delivered' || record?.status === 'failed'))
      return records as NotificationRecord[];
    await receiver.more(1);
  }
}

/** The attempts that a worker had in hand when it was killed: only these may be delivered once more. */
export class InHand {
  readonly read: ReadAll;
  readonly #held = new Set<string>();

  constructor(read: ReadAll) {
    this.read = read;
  }

  /** Right after the kill: nobody takes over before the lease is over. */
  async note(worker: string): Promise<void> {
    for (const record of await this.read()) {
      for (const [deviceId, { state, attempt }] of Object.entries(record!.deliveries)) {
        if (state === 'Retrying')
          this.#held.add(`${worker} ${nameOf({ id: record!.id, deviceId, attempt })}`);
      }
    }
  }

  has(one: Delivered): boolean {
    return this.#held.has(`${one.worker} ${nameOf(one)}`);
  }
}

/** `isExplained`: why this delivery was made again is known. */
export function account(
  records: readonly NotificationRecord[],
  delivered: readonly Delivered[],
  isExplained: (one: Delivered) => boolean,
): string[] {
  const faults: string[] = [];
  const byName = Map.groupBy(delivered, nameOf);
  for (const { id, deliveries, retryCount } of records) {
    const last = isHopeless(id) ? MAX_ATTEMPTS : 3;
    for (const deviceId of devices) {
      const { state, attempt } = deliveries[deviceId]!;
      const wanted = isHopeless(id) ? 'PermanentFailure' : 'DeliverySucceeded';
      if (state !== wanted || attempt !== last)
        faults.push(`${id} ${deviceId} is ${state}(${attempt})`);
      let beforeMs = 0;
      for (let n = 2; n <= last; n++) {
        const name = nameOf({ id, deviceId, attempt: n });
        const made = byName.get(name) ?? [];
        byName.delete(name);
        if (made.length === 0) faults.push(`${name} was never delivered`);
        if (made.slice(0, -1).some((one) => !isExplained(one)))
          faults.push(`${name} was delivered ${made.length} times`);
        for (const { atMs } of made) {
          if (atMs - beforeMs < BASE_MS) faults.push(`${name} was early`);
        }
        beforeMs = made.at(-1)?.atMs ?? beforeMs;
      }
    }
    if (retryCount !== devices.length * (last - 1)) faults.push(`${id} counts ${retryCount}`);
  }
  for (const name of byName.keys()) faults.push(`${name} should not have been`);
  return faults;
}

import type { Host } from '../../../host.ts';
import type { Leased, LeaseEnd, LeaseSource, Taken } from '../../../delay-queue/lease-source.ts';
import { MAX_ENTRIES, partsBySlot, readContent, type SlotKeys } from './layout.ts';
import { scripts } from './scripts.ts';
import type { RedisServer } from './server.ts';
import type { SlotCount } from './slot-count.ts';
import type { Wakes } from './wakes.ts';

/** Every slot is looked at so often, whatever is known of it. */
export const POLL_MS = 1000;
/** A slot whose server does not answer. */
const TROUBLE_MS = 250;
/** Asking one slot for many costs less than asking many for a few. */
const MIN_SHARE = 25;

interface RedisLease extends Leased {
  readonly slot: number;
  readonly token: string;
}

interface SourceParts {
  readonly server: RedisServer;
  readonly slots: readonly SlotKeys[];
  readonly slotCount: SlotCount;
  readonly channel: string;
  readonly leaseMs: number;
  readonly host: Host;
  /** Makes names that no other process makes. */
  readonly nextToken: () => string;
  /** Told to all consumers of this process: something may be due in this slot in so many ms. */
  readonly wakes: Wakes;
}

/** Leases of all slots. It knows of each when there may be something to take. */
export class RedisSource implements LeaseSource<RedisLease> {
  readonly #parts: SourceParts;
  /** By the monotonic clock, one for each slot. */
  readonly #nextAtMs: number[];
  readonly #troubled = new Set<number>();
  /** Why the last slot failed. */
  #failure: unknown;
  #turn = 0;

  constructor(parts: SourceParts) {
    this.#parts = parts;
    this.#nextAtMs = parts.slots.map(() => 0);
  }

  get leaseMs(): number {
    return this.#parts.leaseMs;
  }

  async take(limit: number): Promise<Taken<RedisLease>> {
    const { slots, slotCount, nextToken } = this.#parts;
    const chosen = this.#choose(limit);
    const token = nextToken();
    const share = Math.floor(limit / Math.max(1, chosen.length));
    const spare = limit - share * chosen.length;
    const leased: RedisLease[] = [];
    const claims = chosen.map(async (slot, i) => {
      try {
        leased.push(...(await this.#claim(slots[slot]!, share + (i < spare ? 1 : 0), token)));
        this.#works(slot);
      } catch (error) {
        this.#fails(slot, error);
      }
    });
    await Promise.all([...claims, slotCount.keep()]);
    // Also where it is too soon to ask one of them again: nothing can be taken, so the pauses of the consumer go on growing.
    if (this.#troubled.size === slots.length) throw this.#failure;
    return { leased, nextInMs: Math.max(0, Math.min(...this.#nextAtMs) - this.#nowMs) };
  }

  async renew(leased: readonly RedisLease[]): Promise<boolean[]> {
    const held = new Map<RedisLease, boolean>();
    await this.#bySlot(leased, async (keys, part) => {
      const args = [part[0]!.token, `${this.leaseMs}`, ...part.map(({ entry }) => entry.id)];
      const answer = (await this.#run('renew', keys, args)) as number[];
      for (const [i, one] of part.entries()) held.set(one, Number(answer[i]) === 1);
    });
    return leased.map((one) => held.get(one) === true);
  }

  async end(leased: readonly RedisLease[], ends: readonly LeaseEnd[]): Promise<void> {
    const endOf = new Map(leased.map((one, i) => [one, ends[i]!]));
    const { channel } = this.#parts;
    await this.#bySlot(leased, async (keys, part) => {
      const each = part.flatMap((one) => argsOf(one.entry.id, endOf.get(one)!));
      const args = [part[0]!.token, channel, `${keys.slot}`, `${POLL_MS}`, ...each];
      await this.#run('end', keys, args);
    });
    for (const [i, { slot }] of leased.entries()) {
      const one = ends[i]!;
      if (one.type !== 'done') this.#parts.wakes.tell(slot, 'delayMs' in one ? one.delayMs : 0);
    }
  }

  watch(listener: (inMs: number) => void): () => void {
    return this.#parts.wakes.listen((slot, inMs) => {
      this.#lookIn(slot, inMs);
      listener(inMs);
    });
  }

  /** Slots in which something may be due, in turn, and no more than there is room for. */
  #choose(limit: number): number[] {
    const nowMs = this.#nowMs;
    const count = this.#nextAtMs.length;
    const most = Math.max(1, Math.ceil(limit / MIN_SHARE));
    const chosen: number[] = [];
    for (let i = 0; i < count && chosen.length < most; i++) {
      const slot = (this.#turn + i) % count;
      if (this.#nextAtMs[slot]! <= nowMs) chosen.push(slot);
    }
    if (chosen.length > 0) this.#turn = chosen.at(-1)! + 1;
    // Whoever wakes while they are asked sets it again.
    for (const slot of chosen) this.#nextAtMs[slot] = Infinity;
    return chosen;
  }

  async #claim(keys: SlotKeys, limit: number, token: string): Promise<RedisLease[]> {
    const args = [`${Math.min(limit, MAX_ENTRIES)}`, `${this.leaseMs}`, token];
    const answer = (await this.#run('claim', keys, args)) as (number | Buffer)[];
    const [nextInMs, gone] = answer as number[];
    this.#lookIn(keys.slot, nextInMs === -1 ? POLL_MS : Math.min(Number(nextInMs), POLL_MS));
    if (Number(gone) > 0) {
      this.#parts.host.log.error(
        { count: Number(gone), key: keys.entries },
        'delayed entries are lost: Redis has their ids and not their content. Look whether maxmemory-policy evicts keys, or whether somebody deleted the key',
      );
    }
    const leased: RedisLease[] = [];
    for (let i = 2; i < answer.length; i += 4) {
      const id = String(answer[i]);
      const [lateMs, redeliveries] = [Number(answer[i + 1]), Number(answer[i + 2])];
      const entry = { id, ...readContent(id, answer[i + 3] as Buffer), lateMs, redeliveries };
      leased.push({ entry, slot: keys.slot, token });
    }
    return leased;
  }

  async #bySlot(
    leased: readonly RedisLease[],
    work: (keys: SlotKeys, part: RedisLease[]) => Promise<void>,
  ): Promise<void> {
    const parts = partsBySlot(leased, ({ slot }) => slot);
    await Promise.all(parts.map(({ slot, part }) => work(this.#parts.slots[slot]!, part)));
  }

  #run(name: 'claim' | 'end' | 'renew', keys: SlotKeys, args: string[]): Promise<unknown> {
    const { queue, entries, hands } = keys;
    return this.#parts.server.run(scripts[name], [queue, entries, hands], args);
  }

  #works(slot: number): void {
    if (this.#troubled.delete(slot)) {
      this.#parts.host.log.info({ slot }, 'a slot of the delay queue in Redis answers again');
    }
  }

  /** The other slots go on: a node of a cluster that is away is one of several. */
  #fails(slot: number, error: unknown): void {
    this.#lookIn(slot, TROUBLE_MS);
    this.#failure = error;
    if (this.#troubled.has(slot)) return;
    this.#troubled.add(slot);
    this.#parts.host.log.warn({ err: error, slot }, 'a slot of the delay queue in Redis fails');
  }

  #lookIn(slot: number, inMs: number): void {
    this.#nextAtMs[slot] = Math.min(this.#nextAtMs[slot]!, this.#nowMs + inMs);
  }

  get #nowMs(): number {
    return this.#parts.host.clock.monotonic();
  }
}

function argsOf(id: string, end: LeaseEnd): string[] {
  switch (end.type) {
    case 'done':
      return [id, 'd', '0'];
    case 'again':
      return [id, 'a', `${end.delayMs}`];
    case 'unanswered':
      return [id, 'u', `${end.delayMs}`];
    case 'released':
      return [id, 'r', '0'];
  }
}

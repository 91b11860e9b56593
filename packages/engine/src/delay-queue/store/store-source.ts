import { EngineError } from '../../errors.ts';
import type { Host } from '../../host.ts';
import type { Task } from '../../model/task.ts';
import type { Claim, ClaimFrom, Settlement } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import type { Leased, LeaseEnd, LeaseSource, Taken } from '../lease-source.ts';
import { dueEntry, finish, OLDER_THAN_ALL_ELSE_MS, type QueuePlace } from './entry-task.ts';

const MAX_CLAIM_BYTES = 8 * 1024 * 1024;
/** Where a claim found nothing although something is due, it is locked by somebody: no use to ask at once. */
const BUSY_MS = 20;
const PRUNE_STEP = 1000;

interface StoreLease extends Leased {
  readonly task: Task;
  readonly lease: number;
}

/** Leases of one lane of the engine's store. */
export class StoreSource implements LeaseSource<StoreLease> {
  readonly leaseMs: number;
  readonly #store: Store;
  readonly #place: QueuePlace;
  readonly #host: Host;
  /** By the monotonic clock: when a lease may be over that nobody ended. */
  #lostAtMs = 0;
  #finished = 0;

  constructor(store: Store, place: QueuePlace, leaseMs: number, host: Host) {
    this.#store = store;
    this.#place = place;
    this.leaseMs = leaseMs;
    this.#host = host;
  }

  async take(limit: number): Promise<Taken<StoreLease>> {
    const { lane } = this.#place;
    const { clock } = this.#host;
    const lost: StoreLease[] = [];
    if (clock.monotonic() >= this.#lostAtMs) {
      const claim = await this.#claim({ kind: 'lost', lanes: [lane], limit }, lost);
      // Leases that others take meanwhile are not known here, but none of them is over before its time.
      const knownMs = nextInMs(claim, lost.length);
      this.#lostAtMs = clock.monotonic() + Math.min(knownMs, this.leaseMs / 2);
    }
    const due: StoreLease[] = [];
    let dueInMs = 0;
    if (lost.length < limit) {
      const lanes = [{ lane, limit: limit - lost.length }];
      dueInMs = nextInMs(await this.#claim({ kind: 'due', lanes }, due), due.length);
    }
    const lostInMs = Math.max(0, this.#lostAtMs - clock.monotonic());
    return { leased: [...lost, ...due], nextInMs: Math.min(dueInMs, lostInMs) };
  }

  async renew(leased: readonly StoreLease[]): Promise<boolean[]> {
    const leases = leased.map(({ task: { id }, lease }) => ({ id, lease }));
    const renewed = await this.#store.renew(leases, this.leaseMs);
    if (renewed.includes('busy')) throw busy('renewed');
    return renewed.map((one) => one !== 'lost');
  }

  async end(leased: readonly StoreLease[], ends: readonly LeaseEnd[]): Promise<void> {
    const finished = leased.filter((_, i) => ends[i]!.type === 'done');
    const settlements = leased.flatMap((one, i) => settlementOf(one, ends[i]!) ?? []);
    if (finished.length > 0) {
      const keys = finished.map(({ task: { id } }) => ({ id }));
      await this.#store.change(keys, (task, _, i) => finish(task, finished[i]!.lease));
    }
    if (settlements.length > 0) {
      const settled = await this.#store.settle(settlements);
      if (settled.includes('busy')) throw busy('settled');
    }
    this.#finished += finished.length;
    if (this.#finished >= PRUNE_STEP) await this.#prune();
  }

  watch(listener: (inMs: number) => void): () => void {
    return this.#store.watch(({ lanes, inMs, state }) => {
      if (lanes ? lanes.includes(this.#place.lane) : !state) listener(inMs ?? 0);
    });
  }

  async #claim(from: ClaimFrom, into: StoreLease[]): Promise<Claim> {
    const lease = Math.floor(this.#host.random() * 2 ** 52) + 1;
    const request = { from, lease, leaseMs: this.leaseMs, maxBytes: MAX_CLAIM_BYTES };
    const claim = await this.#store.claim(request);
    for (const task of claim.tasks) into.push({ entry: dueEntry(task, claim.nowMs), task, lease });
    return claim;
  }

  /** Rows of entries that are over. Whether it works does not matter to the answers, which are written. */
  async #prune(): Promise<void> {
    this.#finished -= PRUNE_STEP;
    const olderThanMs = {
      done: OLDER_THAN_ALL_ELSE_MS,
      retried: OLDER_THAN_ALL_ELSE_MS,
      cancelled: OLDER_THAN_ALL_ELSE_MS,
    };
    await this.#store.prune({ olderThanMs, limit: 2 * PRUNE_STEP }).catch((error: unknown) => {
      this.#host.log.warn({ err: error }, 'pruning delayed entries failed, trying again later');
    });
  }
}

function settlementOf({ task, lease }: StoreLease, end: LeaseEnd): Settlement | undefined {
  const { id, uncounted, attempt, claims } = task;
  const base = { id, lease, to: 'pending', uncounted } as const;
  switch (end.type) {
    case 'done':
      return undefined;
    case 'again':
      return { ...base, attempt: 0, claims: 0, reschedule: true, delayMs: end.delayMs };
    case 'unanswered': {
      // All leases without an answer so far, the present one included.
      const redeliveries = attempt + claims;
      return { ...base, attempt: redeliveries, claims: 0, reschedule: true, delayMs: end.delayMs };
    }
    case 'released':
      return { ...base, attempt, claims: claims - 1, reschedule: false, delayMs: task.delayMs };
  }
}

function nextInMs({ nextInMs: [inMs] }: Claim, count: number): number {
  if (inMs === undefined) return Infinity;
  return inMs === 0 && count === 0 ? BUSY_MS : inMs;
}

function busy(what: string): EngineError {
  const message = `An entry is locked by somebody, and could not be ${what}. Trying again is safe.`;
  return new EngineError('STORE_UNAVAILABLE', message);
}

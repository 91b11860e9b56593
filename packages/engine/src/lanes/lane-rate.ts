import type { Host } from '../host.ts';
import { pause } from '../patience.ts';
import type { Schedule } from '../ports/schedule.ts';
import {
  givenBack,
  type RateSettings,
  type RateState,
  readRateState,
  reserve,
} from '../model/rate.ts';
import type { StoreClock } from '../store-clock.ts';

const PREFIX = 'rate:';
/** A slot that nobody uses is given up after this, however long it would be good. */
const KEEP_MS = 1000;
/** How long it may take from asking for a slot to the start, as far as it is made up for. */
const MAX_LEAD_MS = 1000;
/** No slot is ever taken for so far ahead. */
const MAX_AHEAD_MS = 5000;
/** After a write that failed, so that a store in trouble is not asked without end. */
const PAUSE_MS = 1000;

/** When leases may be over that nobody settled, in local monotonic time. */
export interface LostAgenda {
  /** When it is worth a look. */
  lostAt: number;
  /** When there will be some, as the store said; Infinity: it knew of none. */
  knownAt: number;
}

export const newAgenda = (): LostAgenda => ({ lostAt: 0, knownAt: Infinity });

interface Slot {
  /** In the store's time. */
  atMs: number;
  /** In local monotonic time, which nobody sets: a slot from before the store's clock was set back is not good once more. */
  keptUntil: number;
}

/**
 * The part that this instance has in the rate of one lane: the slots that it took from the document all share. It lies
 * apart from that of the lane's breaker: it is written many times a second, and would make every other write lose.
 */
export class LaneRate {
  /** What others have lost in this lane. */
  readonly lost = newAgenda();
  readonly #key: string;
  readonly #settings: RateSettings;
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #time: StoreClock;
  readonly #changed: () => void;
  #state: RateState | undefined;
  #version = 0;
  /** Oldest first. */
  #slots: Slot[] = [];
  /** How many to take next: twice as many when all were used, half when some were not, so that few are given up. */
  #chunk = 1;
  #isWasting = false;
  #isAsking = false;
  /** How long a reservation takes, smoothed; NaN: there was none. */
  #askMs = NaN;
  #timer: unknown;
  #wakeAt = Infinity;

  constructor(
    lane: string,
    settings: RateSettings,
    parts: { schedule: Schedule; host: Host; time: StoreClock; changed: () => void },
  ) {
    this.#key = PREFIX + lane;
    this.#settings = settings;
    this.#schedule = parts.schedule;
    this.#host = parts.host;
    this.#time = parts.time;
    this.#changed = parts.changed;
  }

  /** How many of `room` may be claimed beside the `queued`, which need a slot each. Asks for more when there are none. */
  claimable(room: number, queued: number): number {
    if (room <= 0) return 0;
    this.#dropLate();
    const free = this.#slots.length - queued;
    if (free <= 0) this.#ask(room - free);
    return Math.max(0, Math.min(room, free));
  }

  /** Takes the slot in which one of the `queued` starts now. False: it may not, and `changed` is called as soon as it may. */
  take(queued: number): boolean {
    this.#dropLate();
    if (this.#slots.length < queued) this.#ask(queued - this.#slots.length);
    const next = this.#slots[0];
    if (!next) return false;
    const inMs = next.atMs - this.#time.nowMs;
    if (inMs > 0) this.#wakeIn(inMs);
    else this.#slots.shift();
    return inMs <= 0;
  }

  /** How many slots are left beside the `queued`; asks for none. */
  inHand(queued: number): number {
    this.#dropLate();
    return Math.max(0, this.#slots.length - queued);
  }

  get #leadMs(): number {
    // To ask, to claim, and to be late with both.
    return Number.isNaN(this.#askMs) ? 0 : Math.min(MAX_LEAD_MS, 4 * this.#askMs);
  }

  #dropLate(): void {
    const { lateMs } = this.#settings;
    // A store that takes long to answer must not make every slot too late.
    const nowMs = this.#time.nowMs + Math.min(this.#time.doubtMs, lateMs / 2);
    // Those that lie too far ahead are from before the clock was set back.
    const localMs = this.#host.clock.monotonic();
    const isGood = ({ atMs, keptUntil }: Slot) =>
      atMs + lateMs >= nowMs && localMs <= keptUntil && atMs - nowMs < MAX_AHEAD_MS;
    const bad = this.#slots.findIndex(isGood);
    if (bad === 0 || this.#slots.length === 0) return;
    const dropped = this.#slots.splice(0, bad < 0 ? this.#slots.length : bad);
    if (this.#state && this.#slots.length === 0) {
      const slots = dropped.map(({ atMs }) => atMs);
      // It counts once it is written, and that fails where others have taken some since.
      this.#state = givenBack(this.#state, slots, this.#settings);
    }
    this.#chunk = Math.max(1, Math.floor(this.#chunk / 2));
    this.#isWasting = true;
  }

  #ask(count: number): void {
    if (this.#isAsking) return;
    const found = this.#reserve(Math.min(count, this.#chunk));
    if (found.may === 'wait') this.#wakeIn(found.untilMs - this.#time.nowMs);
    else void this.#write(found);
  }

  #reserve(count: number) {
    return reserve(this.#state, this.#time.nowMs, count, this.#settings, this.#leadMs);
  }

  /** Where somebody was faster, it is asked for again by whoever still wants it. */
  async #write({ slots, state }: { slots: number[]; state: RateState }): Promise<void> {
    const { clock, log } = this.#host;
    this.#isAsking = true;
    const sentAt = clock.monotonic();
    const askedMs = this.#time.nowMs;
    try {
      if (await this.#schedule.writeState(this.#key, state, this.#version)) {
        this.#state = state;
        this.#version += 1;
        this.#took(slots, askedMs, sentAt);
      } else {
        await this.#read();
      }
    } catch (error) {
      log.warn({ err: error, key: this.#key }, 'the rate of a lane could not be shared');
      await pause(this.#host, PAUSE_MS, new AbortController().signal);
    }
    this.#isAsking = false;
    this.#changed();
  }

  #took(slots: readonly number[], askedMs: number, sentAt: number): void {
    const { chunk } = this.#settings;
    for (const atMs of slots) {
      const keptUntil = sentAt + Math.max(0, atMs - askedMs) + KEEP_MS;
      this.#slots.push({ atMs, keptUntil });
    }
    const tookMs = this.#host.clock.monotonic() - sentAt;
    this.#askMs = Number.isNaN(this.#askMs) ? tookMs : this.#askMs * 0.8 + tookMs * 0.2;
    if (slots.length === this.#chunk && !this.#isWasting) {
      this.#chunk = Math.min(chunk, this.#chunk * 2);
    }
    this.#isWasting = false;
  }

  /** With the store's time: a slot lies far ahead only by that, not by what was heard before somebody set the clock. */
  async #read(): Promise<void> {
    const sentAt = this.#host.clock.monotonic();
    const { nowMs, documents } = await this.#schedule.readState(this.#key);
    this.#time.saw(nowMs, sentAt);
    const shared = documents.find(({ key }) => key === this.#key);
    this.#state = readRateState(shared?.value);
    this.#version = shared?.version ?? 0;
  }

  /** One timer, for the earliest: the dispatcher need not look at lanes that wait for their rate. */
  #wakeIn(ms: number): void {
    const { clock } = this.#host;
    const at = clock.monotonic() + ms;
    if (at >= this.#wakeAt) return;
    clock.clearTimer(this.#timer);
    this.#wakeAt = at;
    this.#timer = clock.setTimer(
      () => {
        this.#wakeAt = Infinity;
        this.#changed();
      },
      Math.max(1, Math.ceil(ms)),
      true,
    );
  }
}

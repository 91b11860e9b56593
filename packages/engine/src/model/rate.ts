/**
 * The rate of a lane, shared by all instances. Pure; the state is written by compare-and-set.
 *
 * GCRA, as slots: points in the store's time, `everyMs` apart, each handed out once. A start needs a slot that has come
 * and is not `lateMs` old. In a window of w ms there are then at most (w + lateMs) / everyMs + 1 starts, which is
 * burst + rate * w, however many instances there are, and however long a slot lay unused in one of them.
 */
export interface RateSettings {
  /** From one slot to the next. */
  everyMs: number;
  /** For so long a slot is good. */
  lateMs: number;
  /** Slots taken at once, at most: 100 ms worth. */
  chunk: number;
  /** Slots are handed out for so long in advance: while one chunk is in use, the next can be fetched. */
  aheadMs: number;
}

export interface RateState {
  /** The first slot that nobody has, by the store's clock. */
  freeMs: number;
}

/** `wait`: so many are to be had from then on. No slots: only the state is to be written, which a clock has led astray. */
type Reservation =
  | { may: 'start'; slots: number[]; state: RateState }
  | { may: 'wait'; untilMs: number };

const CHUNK_MS = 100;
/** One claim takes no more. */
const MAX_CHUNK = 1000;
/** With less than this to be late, what a timer or a store delays would be lost. */
const LEAST_LATE_MS = 20;
/** A burst of one leaves nothing to be late: its slots lie this much of their distance further apart instead. */
const LATE_SHARE = 0.02;
const MAX_SINGLE_PER_SECOND = 2;
/** What it takes from a reservation to the start, where that is not known yet. */
const LEAST_LEAD_MS = 10;
/** Instances differ by this in what they take for the store's time, and no more. A slot past it: the clock was set back. */
const CLOCK_MS = 5000;

export function rateSettings(perSecond: number, burst: number): RateSettings {
  const chunk = Math.min(MAX_CHUNK, Math.max(1, Math.ceil((perSecond * CHUNK_MS) / 1000)));
  const aheadMs = chunk > 1 ? 2 * CHUNK_MS : 0;
  const everyMs = 1000 / perSecond;
  if (burst > 1) return { everyMs, lateMs: (burst - 1) * everyMs, chunk, aheadMs };
  const lateMs = everyMs * LATE_SHARE;
  return { everyMs: everyMs + lateMs, lateMs, chunk, aheadMs };
}

/** The smallest burst with which the rate can be reached, over several machines. */
export function leastBurst(perSecond: number): number {
  if (perSecond <= MAX_SINGLE_PER_SECOND) return 1;
  return 1 + Math.max(1, Math.ceil((perSecond * LEAST_LATE_MS) / 1000));
}

/** 100 ms worth: whoever says 100 per second means no second with 200, which a burst of a second would allow. */
export function usualBurst(perSecond: number): number {
  return Math.max(leastBurst(perSecond), Math.ceil((perSecond * CHUNK_MS) / 1000));
}

/**
 * Takes the oldest slots there are, or says from when on there are so many. `leadMs`: how long it takes from here to the
 * start; older slots would be too late by then.
 */
export function reserve(
  state: RateState | undefined,
  nowMs: number,
  count: number,
  { everyMs, lateMs, aheadMs }: RateSettings,
  leadMs: number,
): Reservation {
  const oldestMs = nowMs - lateMs + Math.max(leadMs, Math.min(lateMs, LEAST_LEAD_MS));
  const lastMs = nowMs + aheadMs + leadMs;
  if (state && state.freeMs > lastMs + everyMs + CLOCK_MS) {
    return { may: 'start', slots: [], state: { freeMs: lastMs + everyMs } };
  }
  const freeMs = Math.max(state?.freeMs ?? oldestMs, oldestMs);
  const missingMs = freeMs + (count - 1) * everyMs - lastMs;
  if (missingMs > 0) return { may: 'wait', untilMs: nowMs + missingMs };
  const slots = Array.from({ length: count }, (_, n) => freeMs + n * everyMs);
  return { may: 'start', slots, state: { freeMs: freeMs + count * everyMs } };
}

/** As if the newest of these slots, which were not used, had not been taken: as far as nobody has one between or after them. */
export function givenBack(
  state: RateState,
  slots: readonly number[],
  { everyMs }: RateSettings,
): RateState {
  let { freeMs } = state;
  for (const slotMs of slots.toReversed()) {
    // Another's slot would lie at least `everyMs` from both.
    if (freeMs - slotMs > 1.5 * everyMs || slotMs > freeMs) break;
    freeMs = slotMs;
  }
  return { freeMs };
}

/** Reads what is in the store. Written by another version or by hand, it may be anything. */
export function readRateState(value: unknown): RateState | undefined {
  const { freeMs } = Object(value) as { freeMs?: unknown };
  return typeof freeMs === 'number' && Number.isFinite(freeMs) ? { freeMs } : undefined;
}

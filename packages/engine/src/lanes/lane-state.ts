/** The state of a lane that all instances share, and its legal moves. Pure; written by compare-and-set. */

export interface LaneState {
  /** Set by an operator: nothing is claimed until it is resumed. */
  paused?: { atMs: number; by?: string };
  breaker: BreakerState;
}

/** The states that a lane is reported in. `NO_HANDLER`: an instance cannot deliver there. */
export const laneStates = ['closed', 'open', 'probing', 'paused', 'NO_HANDLER'] as const;

/**
 * `closed`: since `sinceMs`, where it was open before. `open`: nothing is claimed until `untilMs`. `probing`: only the
 * instance `by` serves the lane, `limit` tasks at once, from one on; `untilMs` is the end of its turn. `openings` counts
 * in a row, and lengthens the next one.
 */
type BreakerState =
  | { state: 'closed'; sinceMs?: number }
  | { state: 'open'; untilMs: number; openings: number }
  | { state: 'probing'; untilMs: number; openings: number; by: string; limit: number };

/** What an instance may do with a lane now: serve so many at once, wait, or first take its turn. */
export type Permit =
  | { may: 'serve'; limit: number; probing: boolean }
  | { may: 'wait'; untilMs?: number }
  | { may: 'take'; state: LaneState };

export interface BreakerSettings {
  openForMs: number;
  maxOpenForMs: number;
  /** How long an instance may probe without a sign of life. */
  turnMs: number;
}

export const openLane: LaneState = Object.freeze({ breaker: Object.freeze({ state: 'closed' }) });

export function permit(
  lane: LaneState,
  instance: string,
  nowMs: number,
  concurrency: number,
  { turnMs }: BreakerSettings,
): Permit {
  if (lane.paused) return { may: 'wait' };
  const { breaker } = lane;
  if (breaker.state === 'closed') return { may: 'serve', limit: concurrency, probing: false };
  const mine = breaker.state === 'probing' && breaker.by === instance;
  if (nowMs < breaker.untilMs) {
    if (!mine) return { may: 'wait', untilMs: breaker.untilMs };
    return { may: 'serve', limit: Math.min(breaker.limit, concurrency), probing: true };
  }
  const { openings } = breaker;
  const untilMs = nowMs + turnMs;
  const probing = { state: 'probing', untilMs, openings, by: instance, limit: 1 } as const;
  return { may: 'take', state: { ...lane, breaker: probing } };
}

/** The destination is in trouble. Each opening in a row lasts twice as long as the one before. */
export function opened(lane: LaneState, nowMs: number, settings: BreakerSettings): LaneState {
  const before = lane.breaker.state === 'closed' ? 0 : lane.breaker.openings;
  const untilMs = nowMs + openingMs(lane, settings);
  return { ...lane, breaker: { state: 'open', untilMs, openings: before + 1 } };
}

/** How long it would be open, if it opened now. */
export function openingMs({ breaker }: LaneState, settings: BreakerSettings): number {
  const before = breaker.state === 'closed' ? 0 : breaker.openings;
  return Math.min(settings.openForMs * 2 ** Math.min(before, 30), settings.maxOpenForMs);
}

/** The outcomes of one round of probing. */
export interface Round {
  worked: number;
  failed: number;
  /** Whether more than one task failed, or the destination refused one. */
  isShared: boolean;
}

/** A round has at least so many outcomes, unless it worked before: fewer say little of a lane that is flaky. */
const LEAST_OUTCOMES = 8;

/**
 * What a round has shown so far. `worked`: as many successes as the limit, or successes in a quarter of it. `down`: none.
 * `repeat`: it was too flaky for more at once.
 */
export function resultOf(
  { worked, failed, isShared }: Round,
  limit: number,
): 'goesOn' | 'worked' | 'down' | 'repeat' {
  const outcomes = worked + failed;
  if (worked >= limit) return 'worked';
  // The first probe decides alone.
  if (limit === 1) return failed > 0 ? 'down' : 'goesOn';
  if (outcomes < Math.max(limit, LEAST_OUTCOMES)) return 'goesOn';
  // One task that keeps failing must not close the lane to the others.
  if (worked === 0) return isShared ? 'down' : 'repeat';
  return worked * 4 >= outcomes ? 'worked' : 'repeat';
}

/** A round has worked: the next one has twice as many at once, or the lane is closed for all instances. */
export function ramped(
  lane: LaneState,
  instance: string,
  nowMs: number,
  concurrency: number,
  { turnMs }: BreakerSettings,
): LaneState {
  const { breaker } = lane;
  if (breaker.state !== 'probing' || breaker.by !== instance) return lane;
  const limit = breaker.limit * 2;
  if (limit >= concurrency) return { ...lane, breaker: { state: 'closed', sinceMs: nowMs } };
  // It did work: the next opening is a new one, and short.
  return { ...lane, breaker: { ...breaker, limit, openings: 0, untilMs: nowMs + turnMs } };
}

/** The same round once more, in a new turn. */
export function prolonged(
  lane: LaneState,
  instance: string,
  nowMs: number,
  { turnMs }: BreakerSettings,
): LaneState {
  const { breaker } = lane;
  if (breaker.state !== 'probing' || breaker.by !== instance) return lane;
  return { ...lane, breaker: { ...breaker, untilMs: nowMs + turnMs } };
}

export function paused(lane: LaneState, nowMs: number, by?: string): LaneState {
  return { ...lane, paused: { atMs: nowMs, ...(by === undefined ? {} : { by }) } };
}

export function resumed({ breaker }: LaneState, nowMs: number): LaneState {
  return { breaker: breaker.state === 'closed' ? { ...breaker, sinceMs: nowMs } : breaker };
}

/** A closed lane is remembered for this long, so that an instance that was suspended does not mistake a new document for it. */
const CLOSED_FOR_MS = 3_600_000;

/** Whether its document says nothing more than that there is none. */
export function saysNothing({ paused: pause, breaker }: LaneState, nowMs: number): boolean {
  if (pause || breaker.state !== 'closed') return false;
  return nowMs - (breaker.sinceMs ?? 0) >= CLOSED_FOR_MS;
}

/** Reads what is in the store. Written by another version or by hand, it may be anything. */
export function readLaneState(value: unknown): LaneState {
  const { paused: pause, breaker } = Object(value) as { paused?: unknown; breaker?: unknown };
  const lane: LaneState = { breaker: readBreaker(Object(breaker) as Record<string, unknown>) };
  if (pause !== undefined && pause !== null) lane.paused = pause as { atMs: number };
  return lane;
}

function readBreaker(breaker: Record<string, unknown>): BreakerState {
  const { state, by } = breaker;
  const untilMs = Number(breaker['untilMs']);
  const openings = Number(breaker['openings']) || 0;
  if (state === 'closed' && Number.isFinite(breaker['sinceMs'])) {
    return { state, sinceMs: breaker['sinceMs'] as number };
  }
  if (!Number.isFinite(untilMs)) return { state: 'closed' };
  if (state === 'open') return { state, untilMs, openings };
  if (state === 'probing' && typeof by === 'string') {
    return { state, untilMs, openings, by, limit: Math.max(1, Number(breaker['limit']) || 1) };
  }
  return { state: 'closed' };
}

/** The state of a lane that all instances share, and its legal moves. Pure; written by compare-and-set. */

export interface LaneState {
  /** Set by an operator: nothing is claimed until it is resumed. */
  paused?: { atMs: number; by?: string };
  breaker: BreakerState;
}

/**
 * `open`: nothing is claimed until `untilMs`. `probing`: only the instance `by` serves the lane, `limit` tasks at
 * once, from one on; `untilMs` is the end of its turn. `openings` counts in a row, and lengthens the next one.
 */
type BreakerState =
  | { state: 'closed' }
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

/** A clean round: as many successes as the limit, and no failure. Twice as many next time, or closed for all. */
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
  if (limit >= concurrency) return { ...lane, breaker: { state: 'closed' } };
  // It did work: the next opening is a new one, and short.
  return { ...lane, breaker: { ...breaker, limit, openings: 0, untilMs: nowMs + turnMs } };
}

export function paused(lane: LaneState, nowMs: number, by?: string): LaneState {
  return { ...lane, paused: { atMs: nowMs, ...(by === undefined ? {} : { by }) } };
}

export function resumed({ breaker }: LaneState): LaneState {
  return { breaker };
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
  if (!Number.isFinite(untilMs)) return { state: 'closed' };
  if (state === 'open') return { state, untilMs, openings };
  if (state === 'probing' && typeof by === 'string') {
    return { state, untilMs, openings, by, limit: Math.max(1, Number(breaker['limit']) || 1) };
  }
  return { state: 'closed' };
}

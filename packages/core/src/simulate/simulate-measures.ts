/**
 * How an attempt ended: served, refused because the service was down or had too much to do, or no longer
 * waited for.
 */
export type AttemptOutcome = 'served' | 'down' | 'overloaded' | 'timedOut';

/** One step of time. What was served counts when the service worked on it, all else when it was sent. */
export interface LoadBucket extends Record<AttemptOutcome, number> {
  atMs: number;
  attempts: number;
}

export interface Percentiles {
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

const USUAL_BUCKETS = 100;
const MAX_BUCKETS = 10_000;

/** Counts in buckets of the width asked for, or of a round one. A width that gives too many is doubled. */
export function loadOverTime(
  attemptTimes: readonly number[],
  outcomeTimes: Readonly<Record<AttemptOutcome, readonly number[]>>,
  endedMs: number,
  askedMs: number | undefined,
): { bucketMs: number; load: LoadBucket[] } {
  let bucketMs = askedMs ?? roundUp(endedMs / USUAL_BUCKETS);
  while (endedMs / bucketMs > MAX_BUCKETS) bucketMs *= 2;
  const load = Array.from({ length: Math.floor(endedMs / bucketMs) + 1 }, (_, i) => ({
    atMs: i * bucketMs,
    attempts: 0,
    served: 0,
    down: 0,
    overloaded: 0,
    timedOut: 0,
  }));
  for (const at of attemptTimes) load[Math.floor(at / bucketMs)]!.attempts += 1;
  for (const outcome of ['served', 'down', 'overloaded', 'timedOut'] as const) {
    for (const at of outcomeTimes[outcome]) load[Math.floor(at / bucketMs)]![outcome] += 1;
  }
  return { bucketMs, load };
}

/** The most of these times, which are in order, that lie within any one second. */
export function peakPerSecond(times: readonly number[], fromMs = 0): number {
  let peak = 0;
  let oldest = 0;
  while (oldest < times.length && times[oldest]! < fromMs) oldest += 1;
  for (let newest = oldest; newest < times.length; newest++) {
    while (times[newest]! - times[oldest]! >= 1000) oldest += 1;
    peak = Math.max(peak, newest - oldest + 1);
  }
  return peak;
}

/** By the nearest rank: each of them is a value that occurred. */
export function percentiles(values: readonly number[]): Percentiles | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const rank = (percent: number) => sorted[Math.ceil((percent / 100) * sorted.length) - 1]!;
  return { p50: rank(50), p90: rank(90), p99: rank(99), max: rank(100) };
}

/** To 1, 2 or 5 times a power of ten, and at least 1. */
function roundUp(ms: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, ms)));
  for (const factor of [1, 2, 5]) if (factor * power >= ms) return factor * power;
  return 10 * power;
}

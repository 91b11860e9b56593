import { type CompletePolicy, defined } from './policy.ts';
import type { Policy } from './policy-fields.ts';

export interface DelayFacts {
  /** The 1-based number of the execution that just failed. */
  attempt: number;
  /** In [0, 1). Left out: the middle of the jitter's range. */
  random?: number;
  /** The delay before this attempt, for the decorrelated jitter. */
  previousMs?: number;
}

/**
 * The delay that follows a failed attempt, in whole ms, rounded down. Pure and total: odd numbers are clamped,
 * and a field of an undefined policy that makes no sense falls back to its default.
 */
export function delayFor(policy: Policy, facts: DelayFacts): number {
  const { attempt, random, previousMs } = Object(facts) as DelayFacts;
  return delayOf(defined(policy), attempt, () => clampRandom(random) ?? 0.5, previousMs);
}

/** The fields of a policy that a delay follows from. */
export type DelayRule = Pick<
  CompletePolicy,
  | 'strategy'
  | 'base'
  | 'cap'
  | 'multiplier'
  | 'schedule'
  | 'jitter'
  | 'jitterRatio'
  | 'jitterAdd'
  | 'hardCap'
>;

/** `delayFor` without its object of facts. The random number is asked for where there is something to spread. */
export function delayOf(
  p: DelayRule,
  attempt: number,
  random: () => number,
  previousMs: number | undefined,
): number {
  return Math.floor(spreadDelay(p, rawDelay(p, attempt), random, previousMs));
}

/** What cap and jitter make of a raw delay. Not rounded: the criterion rounds up, everything else down. */
export function spreadDelay(
  p: DelayRule,
  rawMs: number,
  random: () => number,
  previousMs: number | undefined,
): number {
  const delayMs = jittered(p, Math.min(rawMs, p.cap), random, previousMs);
  return p.hardCap ? Math.min(delayMs, p.cap) : delayMs;
}

/** Into [0, 1]. Nothing for what JSON would not keep either, so that a trail replays. */
export function clampRandom(random: number | undefined): number | undefined {
  return Number.isFinite(random) ? Math.min(Math.max(random as number, 0), 1) : undefined;
}

/** A number from outside: `min` if it is less or none at all, and at most what can still be counted exactly. */
export function atLeast(value: number | undefined, min: number): number {
  return typeof value === 'number' && value >= min ? Math.min(value, Number.MAX_SAFE_INTEGER) : min;
}

/** The delay before cap and jitter. A high attempt makes it Infinity, which the cap then cuts. */
export function rawDelay(p: DelayRule, attempt: number): number {
  const n = atLeast(attempt, 1);
  switch (p.strategy) {
    case 'exponential':
      // 0 * Infinity would be NaN.
      return p.base && p.base * p.multiplier ** (n - 1);
    case 'linear':
      return p.base * n;
    case 'fixed':
      return p.base;
    case 'schedule': {
      const list = p.schedule as readonly number[];
      return list[Math.min(Math.floor(n), list.length) - 1] as number;
    }
  }
}

function jittered(
  p: DelayRule,
  d: number,
  random: () => number,
  previousMs: number | undefined,
): number {
  // Of nothing there is nothing to spread, but by the jitters that add.
  if (d === 0 && p.jitter !== 'add' && p.jitter !== 'decorrelated') return 0;
  switch (p.jitter) {
    case 'none':
      return d;
    case 'up':
      return d + random() * p.jitterRatio * d;
    case 'around':
      return d + (2 * random() - 1) * p.jitterRatio * d;
    case 'add':
      return d + random() * p.jitterAdd;
    case 'full':
      return random() * d;
    case 'equal':
      return (d + random() * d) / 2;
    case 'decorrelated': {
      const low = Math.min(p.base, p.cap);
      return low + random() * (Math.min(p.cap, 3 * atLeast(previousMs, low)) - low);
    }
  }
}

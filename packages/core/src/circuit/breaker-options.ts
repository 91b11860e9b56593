import type { DelayRule } from '../policy/backoff.ts';
import type { Clock, Random } from '../clock.ts';
import type { Duration } from '../policy/duration.ts';
import { ConfigError, type Fault } from '../errors.ts';
import type { Failure } from '../failure/failure.ts';
import { defaultOf, type Fields, isObject, readFields } from '../options/fields.ts';
import { readBackoff } from '../policy/policy.ts';
import type { Backoff } from '../policy/policy-fields.ts';

export type BreakerState = 'closed' | 'open' | 'half_open';

export interface BreakerOptions {
  /** Consecutive failures that open it (5; never where only a `rate` is given). */
  failures?: number;
  /** Or the share of failed calls, 0 to 1, over a window, once there were `minimumCalls`. Off unless given. */
  rate?: number;
  /** The window of the rate by time (10 s). */
  window?: Duration;
  /** Or by number: the rate is that of this many calls, however long ago they were. Give one of the two. */
  windowCalls?: number;
  /** Calls in the window before the rate means something (20, or `windowCalls` where that is less). */
  minimumCalls?: number;
  /**
   * How long it stays open before it lets a probe through (30 s). A backoff makes each opening longer than the last, until the
   * breaker closes: `{ base: '10s', cap: '5m' }`. Its defaults are `base: '30s'`, `cap: '5m'` and `jitter: 'none'`.
   */
  openFor?: Duration | Backoff;
  /** Calls that it lets through at once while half open (1). */
  probes?: number;
  /** Successful probes that close it (1). */
  successes?: number;
  /** Failed probes that do not open it again, until it closes or opens (0). */
  probeFailures?: number;
  /** Which failures say that the other side is in trouble. By default transient and unknown ones, but not 429. Not async. */
  trips?: (failure: Failure) => boolean;
  onChange?: (state: BreakerState, before: BreakerState) => unknown;
  clock?: Clock;
  /** Randomness for the jitter of a growing `openFor`. */
  random?: Random;
}

/** The options as numbers, with their defaults. */
export interface BreakerSettings {
  failures: number;
  rate: number | undefined;
  window: number;
  windowCalls: number | undefined;
  minimumCalls: number;
  openFor: number | DelayRule;
  probes: number;
  successes: number;
  probeFailures: number;
}

const DEFAULT_FAILURES = 5;
const DEFAULT_MINIMUM_CALLS = 20;

const breakerFields = {
  failures: { kind: 'integer', min: 1, max: 1_000_000 },
  rate: { kind: 'number', min: 0.01, max: 1 },
  window: { kind: 'duration', min: 10, default: 10_000 },
  windowCalls: { kind: 'integer', min: 1, max: 1_000_000 },
  minimumCalls: { kind: 'integer', min: 1, max: 1_000_000 },
  openFor: { kind: 'duration', min: 1, default: 30_000 },
  probes: { kind: 'integer', min: 1, max: 1000, default: 1 },
  successes: { kind: 'integer', min: 1, max: 1000, default: 1 },
  probeFailures: { kind: 'integer', min: 0, max: 1000, default: 0 },
} as const satisfies Fields;

/** Those that are no data stand here for "did you mean". */
const names = [...Object.keys(breakerFields), 'trips', 'onChange', 'clock', 'random'];

/** Throws one `ConfigError` with every fault. */
export function readBreakerOptions(data: object): BreakerSettings {
  const faults: Fault[] = [];
  const { openFor, ...others } = data as { openFor?: unknown };
  const grows = isObject(openFor);
  const flat = grows ? others : data;
  const values = readFields(flat, breakerFields, names, '', faults);
  const { rate, window, windowCalls, minimumCalls } = values as Partial<BreakerSettings>;
  const wrong = (path: string, message: string) =>
    faults.push({ path, code: 'INVALID_VALUE', message });
  if (windowCalls !== undefined) {
    if (rate === undefined) wrong('windowCalls', 'is the window of a rate: give a rate too.');
    if (window !== undefined) wrong('windowCalls', 'give window or windowCalls, not both.');
    if (minimumCalls !== undefined && minimumCalls > windowCalls) {
      wrong('minimumCalls', `${minimumCalls} can never be reached in ${windowCalls} calls.`);
    }
  }
  if (grows) values['openFor'] = readBackoff(openFor, 'openFor', usualOpening, faults);
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', 'The breaker has faults:', faults);
  for (const [name, field] of Object.entries(breakerFields)) values[name] ??= defaultOf(field);
  values['failures'] ??= rate === undefined ? DEFAULT_FAILURES : Infinity;
  values['minimumCalls'] ??= Math.min(DEFAULT_MINIMUM_CALLS, windowCalls ?? Infinity);
  return values as unknown as BreakerSettings;
}

const usualOpening = { base: 30_000, cap: 300_000, jitter: 'none' } as const;

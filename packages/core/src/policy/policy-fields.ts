import type { Duration } from './duration.ts';
import { type FailureClass, failureClasses } from '../failure/failure.ts';
import type { Field } from '../options/fields.ts';
import { policyDefaults } from './policy-defaults.ts';

/** The words of our own among the names of failures. */
const failureWords = [...failureClasses, 'any'];

/**
 * The one source of what a policy is: its types, its validation, its JSON Schema and its reference page all
 * come from this table. The comments are the descriptions that the schema and the page show.
 */
export const policyFields = {
  /** Executions in all, the first included. */
  maxAttempts: { kind: 'integer', min: 1, max: 1_000_000_000, default: policyDefaults.maxAttempts },
  /** How the raw delay grows with the attempt: base * multiplier^(n-1), base * n, base, or a list. */
  strategy: {
    kind: 'choice',
    of: ['exponential', 'linear', 'fixed', 'schedule'],
    default: policyDefaults.strategy,
  },
  /** The raw delay after the first failure. */
  base: { kind: 'duration', min: 0, default: policyDefaults.base },
  /** The raw delay never exceeds this. Applied before jitter, so that jitter survives at the cap. */
  cap: { kind: 'duration', min: 0, default: policyDefaults.cap },
  /** Growth per attempt of the exponential strategy. */
  multiplier: { kind: 'number', min: 1, max: 1000, default: policyDefaults.multiplier },
  /** The raw delays one by one; the last entry repeats. Implies the strategy `schedule`. */
  schedule: { kind: 'durations', max: 1000 },
  /** How a delay d is spread: d, d to d + ratio * d, d - ratio * d to d + ratio * d, d plus up to jitterAdd, 0 to d, d/2 to d, or by the previous delay. */
  jitter: {
    kind: 'choice',
    of: ['none', 'up', 'around', 'add', 'full', 'equal', 'decorrelated'],
    default: policyDefaults.jitter,
  },
  /** The ratio of the jitters `up` and `around`. */
  jitterRatio: { kind: 'number', min: 0, max: 1, default: policyDefaults.jitterRatio },
  /** The most that the jitter `add` adds. */
  jitterAdd: { kind: 'duration', min: 0, default: policyDefaults.jitterAdd },
  /** Clamp to the cap once more after jitter. */
  hardCap: { kind: 'boolean', default: policyDefaults.hardCap },
  /** How long one attempt may take. Without it an attempt may take for ever. */
  attemptTimeout: { kind: 'duration', min: 1 },
  /** How long everything may take, attempts and waits together. */
  deadline: { kind: 'duration', min: 1 },
  /** A server that asks for a longer wait than this is not waited for. */
  maxRetryAfter: { kind: 'duration', min: 0, default: policyDefaults.maxRetryAfter },
  /** What is retried: failure classes, codes, HTTP statuses, error names, `5xx`, or `any`. */
  retryOn: { kind: 'names', known: failureWords, default: policyDefaults.retryOn },
  /** What is not retried. The more specific word wins; named alike in both lists, it is retried. */
  neverOn: { kind: 'names', known: failureWords, default: policyDefaults.neverOn },
  /** How many failures that consume no attempt (breaker open, `counted: false`) are allowed. */
  maxUncounted: { kind: 'integer', min: 0, max: 1_000_000, default: policyDefaults.maxUncounted },
  /** False: retry only what surely was not executed (connection refused, name not found, 429). */
  idempotent: { kind: 'boolean', default: policyDefaults.idempotent },
  /** Other numbers for some failures, by class, code, HTTP status or error name: a schedule of its own for 429, say. */
  overrides: { kind: 'objects', max: 100 },
} as const satisfies Record<string, Field>;

/** The fields that a delay follows from. */
export const backoffFields = [
  'strategy',
  'base',
  'cap',
  'multiplier',
  'schedule',
  'jitter',
  'jitterRatio',
  'jitterAdd',
  'hardCap',
] as const satisfies readonly (keyof typeof policyFields)[];

/** The fields that an override may have. */
export const overrideFields = [
  'maxAttempts',
  ...backoffFields,
  'maxRetryAfter',
] as const satisfies readonly (keyof typeof policyFields)[];

/** A policy as one writes it, in TypeScript, in a file or on a wire: every field has a default. */
export type Policy = {
  readonly [K in keyof typeof policyFields]?: Written<(typeof policyFields)[K]> | undefined;
};

/** What a policy may change for some failures. */
export type PolicyOverride = Pick<Policy, (typeof overrideFields)[number]>;

/** How delays grow and are spread: the same fields as in a policy, for other things that back off. */
export type Backoff = Pick<Policy, (typeof backoffFields)[number]>;

/** A class, a code, an HTTP status, an error name, or `any`. */
export type FailureName = FailureClass | 'any' | (string & {});

type Written<F> = F extends { kind: 'integer' | 'number' }
  ? number
  : F extends { kind: 'duration' }
    ? Duration
    : F extends { kind: 'durations' }
      ? readonly Duration[]
      : F extends { kind: 'boolean' }
        ? boolean
        : F extends { kind: 'choice'; of: readonly (infer C)[] }
          ? C
          : F extends { kind: 'names' }
            ? readonly FailureName[]
            : Readonly<Record<string, PolicyOverride>>;

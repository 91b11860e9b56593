import { definePolicy, type DefinedPolicy } from '../policy/policy.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { type CategoryName, categoryMatrix } from './matrix.ts';

/** A category as the manager knows it. */
export interface Category {
  /** As events and errors have it: `RETRY_KV_GET`. */
  code: string;
  policy: DefinedPolicy;
}

/** Every name and every code by which a category may be called. The document's spelling of the two replays is accepted too. */
export type CategoryId<Own extends string = never> =
  | CategoryName
  | `RETRY_${CategoryName}`
  | 'REPLAY_REPLAY_PROCESSING'
  | 'REPLAY_REPLAY_VALIDATION'
  | Own
  | `RETRY_${Own}`;

/** What an attempt may take unless a policy says otherwise: no input and no output is without a timeout. */
const ATTEMPT_TIMEOUT_MS = 30_000;

const usual = {
  maxAttempts: 3,
  base: 1000,
  jitter: 'around',
  jitterRatio: 0.1,
  attemptTimeout: ATTEMPT_TIMEOUT_MS,
} as const satisfies Policy;

/**
 * A policy in the manner of the categories: what is left out is that of the default category, and what neither list names
 * is retried. So `retryOn` only says what is retried although `neverOn` names it. `timeoutMs` is the
 * `attemptTimeout` of one call.
 */
export function categoryPolicy(given: Policy = {}, timeoutMs?: number): DefinedPolicy {
  const written = Object.fromEntries(
    Object.entries(Object(given) as Policy).filter(([, value]) => value !== undefined),
  ) as Policy;
  const { retryOn = [] } = written;
  return definePolicy({
    ...usual,
    ...written,
    ...(timeoutMs === undefined ? {} : { attemptTimeout: timeoutMs }),
    retryOn: Array.isArray(retryOn) ? [...(retryOn as string[]), 'any'] : retryOn,
  });
}

/** The built-in categories and those of the user, by every name and code. `onFault` hears of a policy that has faults. */
export function ownCategories(
  own: Readonly<Record<string, Policy>>,
  onFault: (name: string, error: unknown) => void,
): Map<string, Category> {
  const known = new Map<string, Category>();
  for (const [name, { maxAttempts, base, cap }] of Object.entries(categoryMatrix)) {
    const category = { code: codeOf(name), policy: categoryPolicy({ maxAttempts, base, cap }) };
    known.set(name, category).set(category.code, category);
    // As the document prints the codes of the two replays.
    if (name.startsWith('REPLAY_')) known.set(`REPLAY_${name}`, category);
  }
  for (const [name, policy] of Object.entries(own)) {
    try {
      const category = { code: codeOf(name), policy: categoryPolicy(policy) };
      // A built-in one may be called by its code here too.
      const short = name.replace(/^RETRY_/, '');
      known.set(name, category).set(category.code, category).set(short, category);
      if (known.has(`REPLAY_${short}`)) known.set(`REPLAY_${short}`, category);
    } catch (error) {
      onFault(name, error);
    }
  }
  return known;
}

export function codeOf(name: string): string {
  return name.startsWith('RETRY_') ? name : `RETRY_${name}`;
}

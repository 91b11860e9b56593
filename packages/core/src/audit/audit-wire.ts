/** Facts and decisions as an audit trail has them: `snake_case`, as on any wire, and nothing that JSON would change. */
import type { Decision, Facts, GiveUp, Retry } from '../decide.ts';
import type { Failure } from '../failure/failure.ts';

export type Wire = Record<string, unknown>;

/** A decision without its failure, which stands among the facts. */
export function decisionToWire(decision: Decision): Wire {
  return toWire(decision, failureOnly);
}

export function decisionFromWire(data: Wire): Omit<Decision, 'failure'> {
  return fromWire(data) as unknown as Omit<Decision, 'failure'>;
}

/** The facts but seed and key, which have their own place, and the failure's message, which decides nothing. */
export function factsToWire(facts: Facts): Wire {
  const { failure, circuit } = facts;
  const wire = toWire(facts, factsElsewhere);
  if (isObject(failure)) wire['failure'] = toWire(failure, messageOnly);
  if (circuit) wire['circuit'] = toWire(circuit);
  return wire;
}

export function factsFromWire(data: Wire, seed: unknown, key: unknown): Facts {
  const facts = fromWire(data);
  if (isObject(data['failure'])) facts['failure'] = fromWire(data['failure']);
  if (isObject(data['circuit'])) facts['circuit'] = fromWire(data['circuit']);
  return { ...facts, seed, key } as unknown as Facts;
}

export function isObject(value: unknown): value is Wire {
  return typeof value === 'object' && value !== null;
}

type KeyOf<T> = T extends unknown ? keyof T & string : never;
type Name = KeyOf<Facts | Failure | NonNullable<Facts['circuit']> | Retry | GiveUp>;
type CamelCased<N extends string> = N extends Lowercase<N> ? never : N;

/** Every name of theirs that is written differently: the compiler misses none. */
const wireNames: Readonly<Record<CamelCased<Name>, string>> = {
  previousMs: 'previous_ms',
  elapsedMs: 'elapsed_ms',
  remainingMs: 'remaining_ms',
  beforeRetryFailed: 'before_retry_failed',
  budgetExhausted: 'budget_exhausted',
  bulkheadFull: 'bulkhead_full',
  waitMs: 'wait_ms',
  retryAfterMs: 'retry_after_ms',
  notExecuted: 'not_executed',
  delayMs: 'delay_ms',
  nextAttempt: 'next_attempt',
  maxAttempts: 'max_attempts',
};
const toNames: ReadonlyMap<string, string> = new Map(Object.entries(wireNames));
const fromNames: ReadonlyMap<string, string> = new Map(
  Object.entries(wireNames).map(([name, wire]) => [wire, name]),
);

const none: ReadonlySet<string> = new Set();
const failureOnly: ReadonlySet<string> = new Set(['failure']);
const factsElsewhere: ReadonlySet<string> = new Set(['seed', 'key', 'failure', 'circuit']);
const messageOnly: ReadonlySet<string> = new Set(['message']);

/** Once for every failure of a trail: no copies, no pairs. */
function toWire(data: object, without = none): Wire {
  const wire: Wire = {};
  for (const name of Object.keys(data)) {
    if (without.has(name)) continue;
    const value: unknown = (data as Wire)[name];
    const kept: unknown = typeof value === 'number' ? finite(name, value) : value;
    if (kept !== undefined) wire[toNames.get(name) ?? name] = kept;
  }
  return wire;
}

function fromWire(wire: Wire): Wire {
  const data: Wire = {};
  for (const [name, value] of Object.entries(wire)) data[fromNames.get(name) ?? name] = value;
  return data;
}

/** What `decide` takes for the same, where JSON would make null of it. */
function finite(name: string, value: number): number | undefined {
  if (Number.isFinite(value)) return value;
  // No number at all, no limit, no random number: as if it had not been given.
  if (Number.isNaN(value) || name === 'random') return undefined;
  if (name === 'remainingMs') return value < 0 ? -Number.MAX_SAFE_INTEGER : undefined;
  return value > 0 ? Number.MAX_SAFE_INTEGER : undefined;
}

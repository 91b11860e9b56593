import { ConfigError, type Fault } from '../errors.ts';
import { type Failure, namesIn, statusText } from '../failure/failure.ts';
import { fault, isName, joinPath, readFields, type Values } from '../options/fields.ts';
import { policyDefaults } from './policy-defaults.ts';
import {
  backoffFields,
  overrideFields,
  type Policy,
  policyFields,
  type PolicyOverride,
} from './policy-fields.ts';
import { hash64 } from './random.ts';

/** The values of a policy, none of them missing, durations in ms: what a decision needs. */
export class CompletePolicy {
  declare readonly maxAttempts: number;
  declare readonly strategy: NonNullable<Policy['strategy']>;
  declare readonly base: number;
  declare readonly cap: number;
  declare readonly multiplier: number;
  declare readonly schedule: readonly number[] | undefined;
  declare readonly jitter: NonNullable<Policy['jitter']>;
  declare readonly jitterRatio: number;
  declare readonly jitterAdd: number;
  declare readonly hardCap: boolean;
  declare readonly attemptTimeout: number | undefined;
  declare readonly deadline: number | undefined;
  declare readonly maxRetryAfter: number;
  declare readonly retryOn: readonly string[];
  declare readonly neverOn: readonly string[];
  declare readonly maxUncounted: number;
  declare readonly idempotent: boolean;
  declare readonly overrides: Readonly<Record<string, PolicyOverride>> | undefined;

  /** @internal */
  constructor(values: Values) {
    // Always every field, in one order: one hidden class, and one order of JSON, for all policies.
    for (const name in policyDefaults) {
      (this as unknown as Values)[name] = Object.freeze(values[name]);
    }
  }
}

/**
 * A policy that was checked: defaults filled in, durations in ms, frozen. It is still plain data:
 * as JSON it is a policy again, with the same fingerprint.
 */
export class DefinedPolicy extends CompletePolicy {
  readonly #overridden: ReadonlyMap<string, DefinedPolicy> | undefined;
  #fingerprint: string | undefined;

  /** @internal Use `definePolicy`. */
  constructor(values: Values, overridden?: ReadonlyMap<string, DefinedPolicy>) {
    super(values);
    this.#overridden = overridden;
    Object.freeze(this);
  }

  /** Equal for equal policies, however they were written: defaults left out, durations in any unit. */
  get fingerprint(): string {
    return (this.#fingerprint ??= hash64(JSON.stringify(this, leaveOutDefaults)));
  }

  /** The policy for failures of this name, where an override names them. */
  for(name: string): DefinedPolicy | undefined {
    return this.#overridden?.get(name);
  }

  /** @internal The override that names the failure most specifically: by code, status, error name, class, then `any`. */
  forFailure(failure: Failure): DefinedPolicy {
    const called = namesIn(failure).filter((name) => name !== 'Error');
    const status = statusText(failure);
    const names = [
      failure.code,
      status,
      `${status?.[0]}xx`,
      ...called,
      failure.class,
      'Error',
      'any',
    ];
    for (const name of names) {
      const policy = name === undefined ? undefined : this.for(name);
      if (policy) return policy;
    }
    return this;
  }
}

/**
 * Checks a policy once. Throws one `ConfigError` that lists every fault with its path and a suggestion.
 *
 * @example const policy = definePolicy({ maxAttempts: 5, base: '250ms', deadline: '10s' });
 */
export function definePolicy(policy: Policy = {}): DefinedPolicy {
  return parsePolicy(policy);
}

/** `definePolicy` for what came from a file or a wire. */
export function parsePolicy(data: unknown): DefinedPolicy {
  if (data instanceof DefinedPolicy) return data;
  const faults: Fault[] = [];
  const policy = normalise(data, faults);
  if (faults.length > 0) throw new ConfigError('INVALID_POLICY', 'The policy has faults:', faults);
  return policy;
}

/** For the total functions: a faulty field falls back to its default instead of throwing. */
export function defined(policy: Policy): DefinedPolicy {
  return policy instanceof DefinedPolicy ? policy : normalise(policy, []);
}

function normalise(data: unknown, faults: Fault[]): DefinedPolicy {
  const fields = Object.keys(policyFields);
  return definedBy(readFields(data, policyFields, fields, '', faults), faults);
}

/** Of values that were read: what does not fit together becomes a fault. */
export function definedBy(read: Values, faults: Fault[]): DefinedPolicy {
  const { overrides, ...written } = read as { overrides?: Values; [name: string]: unknown };
  const values = completeFitting(written, '', faults);
  const names = Object.keys(overrides ?? {}).sort();
  if (names.length === 0) return new DefinedPolicy(values);

  const { known } = policyFields.retryOn;
  const overridden = new Map<string, DefinedPolicy>();
  const changes: [string, PolicyOverride][] = [];
  for (const name of names) {
    const path = `overrides.${name}`;
    if (!isName(name, known)) fault(faults, path, 'INVALID_VALUE', { kind: 'name', known }, name);
    const override = readFields(overrides?.[name], policyFields, overrideFields, path, faults);
    const policy = new DefinedPolicy(completeFitting(laidOver(values, override), path, faults));
    overridden.set(name, policy);
    changes.push([name, changesFrom(values, policy)]);
  }
  // From entries, since an assignment to `__proto__` would get lost.
  return new DefinedPolicy({ ...values, overrides: Object.fromEntries(changes) }, overridden);
}

/** The fields of a policy that a delay follows from, with defaults of the caller's own. */
export function readBackoff(
  data: unknown,
  path: string,
  usual: { base: number; cap: number; jitter: NonNullable<Policy['jitter']> },
  faults: Fault[],
): CompletePolicy {
  const written = readFields(data, policyFields, backoffFields, path, faults);
  written['cap'] ??= Math.max(usual.cap, longest(written));
  return new CompletePolicy(completeFitting({ ...usual, ...written }, path, faults));
}

/** What was written, with the defaults filled in. */
export function complete(written: Values): Values {
  const values: Values = {};
  for (const [name, usual] of Object.entries(policyDefaults)) values[name] = written[name] ?? usual;
  if (!written['strategy'] && values['schedule']) values['strategy'] = 'schedule';
  // A cap that was not written must not cut a longer base or schedule that was.
  if (written['cap'] === undefined) {
    values['cap'] = Math.max(values['cap'] as number, longest(values));
  }
  return values;
}

/** `complete`, and a fault for fields that do not fit each other. */
function completeFitting(written: Values, path: string, faults: Fault[]): Values {
  const values = complete(written);
  const { schedule } = values;
  if ((values['strategy'] === 'schedule') !== (schedule !== undefined)) {
    fault(faults, joinPath(path, 'schedule'), 'INVALID_VALUE', { kind: 'pair' }, schedule);
    values['strategy'] = schedule ? 'schedule' : 'exponential';
  }
  if (values['jitter'] === 'decorrelated' && values['strategy'] !== 'exponential') {
    fault(
      faults,
      joinPath(path, 'jitter'),
      'INVALID_VALUE',
      { kind: 'decorrelated' },
      values['strategy'],
    );
    values['jitter'] = 'full';
  }
  return values;
}

/**
 * The values of a policy with those of an override, or of a nearer policy. One that changes the strategy leaves the
 * schedule behind, and the other way round. One that writes longer delays but no cap is not cut by the policy's.
 */
export function laidOver(policy: Values, override: Values): Values {
  const values: Values = { ...policy, ...override };
  if (override['schedule']) values['strategy'] = override['strategy'];
  else if (override['strategy'] && override['strategy'] !== 'schedule') delete values['schedule'];
  if (override['cap'] === undefined) {
    values['cap'] = Math.max(policy['cap'] as number, longest(override));
  }
  return values;
}

/** The longest delay that was written. */
function longest({ schedule, base }: Values): number {
  return schedule ? Math.max(...(schedule as number[])) : ((base as number | undefined) ?? 0);
}

function changesFrom(values: Values, policy: DefinedPolicy): PolicyOverride {
  const changes: Values = {};
  for (const name of overrideFields) {
    if (policy[name] !== undefined && policy[name] !== values[name]) changes[name] = policy[name];
  }
  // Left out, a cap that cuts longer delays would no longer be one that was written.
  if (longest(changes) > policy.cap) changes['cap'] = policy.cap;
  return Object.freeze(changes);
}

function leaveOutDefaults(this: unknown, name: string, value: unknown): unknown {
  if (!(this instanceof DefinedPolicy)) return value;
  const list = Array.isArray(value) && typeof value[0] === 'string';
  const canonical = list ? [...(value as string[])].sort() : value;
  const usual = policyDefaults[name as keyof Policy];
  return JSON.stringify(canonical) === JSON.stringify(usual) ? undefined : canonical;
}

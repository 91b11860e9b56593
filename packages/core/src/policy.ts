import { ConfigError, type Fault } from './errors.ts';
import {
  defaultOf,
  fault,
  type Field,
  isName,
  joinPath,
  readFields,
  type Values,
} from './fields.ts';
import { overrideFields, type Policy, type PolicyOverride, policyFields } from './policy-fields.ts';
import { hash64 } from './random.ts';

/**
 * A policy that was checked: defaults filled in, durations in ms, frozen. It is still plain data:
 * as JSON it is a policy again, with the same fingerprint.
 */
export class DefinedPolicy {
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
  readonly #overridden: ReadonlyMap<string, DefinedPolicy> | undefined;
  #fingerprint: string | undefined;

  /** @internal Use `definePolicy`. */
  constructor(values: Values, overridden?: ReadonlyMap<string, DefinedPolicy>) {
    // Always every field, in one order: one hidden class, and one order of JSON, for all policies.
    for (const name in policyFields) {
      (this as unknown as Values)[name] = Object.freeze(values[name]);
    }
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
  const written = readFields(data, policyFields, Object.keys(policyFields), '', faults);
  const values = complete(written, '', faults);
  const overrides = (written['overrides'] ?? {}) as Values;
  const names = Object.keys(overrides).sort();
  if (names.length === 0) return new DefinedPolicy(values);

  const { known } = policyFields.retryOn;
  const overridden = new Map<string, DefinedPolicy>();
  const changes: [string, PolicyOverride][] = [];
  for (const name of names) {
    const path = `overrides.${name}`;
    if (!isName(name, known)) fault(faults, path, 'INVALID_VALUE', { kind: 'name', known }, name);
    const override = readFields(overrides[name], policyFields, overrideFields, path, faults);
    const policy = new DefinedPolicy(complete(overlay(values, override), path, faults));
    overridden.set(name, policy);
    changes.push([name, changesFrom(values, policy)]);
  }
  // From entries, since an assignment to `__proto__` would get lost.
  return new DefinedPolicy({ ...values, overrides: Object.fromEntries(changes) }, overridden);
}

/** Fills in the defaults, and looks at the fields that must fit each other. */
function complete(written: Values, path: string, faults: Fault[]): Values {
  const values: Values = { overrides: undefined };
  for (const name in policyFields) {
    const field: Field = policyFields[name as keyof Policy];
    if (name !== 'overrides') values[name] = written[name] ?? defaultOf(field);
  }
  const schedule = values['schedule'] as readonly number[] | undefined;
  if (written['strategy'] === undefined && schedule) values['strategy'] = 'schedule';
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
  // A cap that was not written must not cut a longer base or schedule that was.
  if (written['cap'] === undefined) {
    values['cap'] = Math.max(values['cap'] as number, longest(values));
  }
  return values;
}

/**
 * An override that changes the strategy leaves the schedule behind, and the other way round. One that writes longer
 * delays but no cap is not cut by the policy's.
 */
function overlay(policy: Values, override: Values): Values {
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
  const usual = defaultOf(policyFields[name as keyof Policy]);
  return JSON.stringify(canonical) === JSON.stringify(usual) ? undefined : canonical;
}

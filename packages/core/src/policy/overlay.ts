import { ConfigError, type Fault } from '../errors.ts';
import { readFields, type Values } from '../options/fields.ts';
import { policyDefaults } from './policy-defaults.ts';
import { type Policy, policyFields } from './policy-fields.ts';
import { complete, definedBy, DefinedPolicy, laidOver, parsePolicy } from './policy.ts';

/** A policy that may leave fields out, and where it was written, for the sentence about a fault. */
export interface PolicyLayer {
  policy: Policy;
  /** As in `the policy of the engine`. */
  origin: string;
}

/**
 * One policy of several, from the widest to the nearest: each changes the fields that it writes. A policy that says
 * everything is taken as it is, and those before it do not matter.
 */
export function overlay(layers: readonly PolicyLayer[]): DefinedPolicy {
  const last = layers.length - 1;
  const first = Math.max(
    0,
    layers.findLastIndex(({ policy }) => isWhole(policy)),
  );
  if (first >= last) return parsePolicy(layers[last]?.policy ?? {});

  const faults: Fault[] = [];
  const origins = new Map<string, string>();
  let values: Values = {};
  for (const [i, { policy, origin }] of layers.slice(first).entries()) {
    const written = valuesOf(policy, faults);
    for (const name of Object.keys(written)) origins.set(name, origin);
    // A schedule says the strategy too.
    if (written['schedule'] && !written['strategy']) origins.set('strategy', origin);
    values = i === 0 ? complete(written) : laidOver(values, written);
  }
  if (faults.length > 0) throw faulty(faults);
  const policy = definedBy(values, faults);
  if (faults.length === 0) return policy;
  // Each was checked by itself: these are of fields that do not fit each other.
  throw faulty(
    faults.map((fault) => {
      return { ...fault, message: `${fault.message} ${originsOf(fault.path, origins)}` };
    }),
  );
}

const names = Object.keys(policyFields);
const needed = Object.entries(policyDefaults).flatMap(([name, usual]) =>
  usual === undefined ? [] : [name as keyof Policy],
);

/** Whether it says everything: a defined policy, also one that was JSON in between, which has no `undefined`. */
function isWhole(policy: Policy): boolean {
  const fields = Object(policy) as Policy;
  return needed.every((name) => fields[name] !== undefined);
}

function valuesOf(policy: Policy, faults: Fault[]): Values {
  if (!(policy instanceof DefinedPolicy))
    return readFields(policy, policyFields, names, '', faults);
  const values: Values = {};
  for (const name of names) {
    const value = policy[name as keyof Policy];
    if (value !== undefined) values[name] = value;
  }
  return values;
}

function faulty(faults: readonly Fault[]): ConfigError {
  return new ConfigError('INVALID_POLICY', 'The policy has faults:', faults);
}

/** `The strategy is from the policy of this submit, the jitter from the policy of the engine.` */
function originsOf(path: string, origins: ReadonlyMap<string, string>): string {
  const isOverride = path.startsWith('overrides.');
  const name = path.slice(path.lastIndexOf('.') + 1);
  const concerned = new Set([...(isOverride ? ['overrides'] : []), 'strategy', name]);
  const said = [...concerned].flatMap((each) => {
    const origin = origins.get(each);
    return origin === undefined ? [] : [`${each} from ${origin}`];
  });
  return `Here: ${said.join(', ')}.`;
}

/** The same policy in the same world, once with each jitter. */
import {
  type DefinedPolicy,
  isConfigError,
  parsePolicy,
  type Policy,
  simulate,
  type Simulation,
  type World,
} from 'redrive';

export type Jitter = DefinedPolicy['jitter'];

/** All that there are, from the one that spreads nothing to the one that spreads most. */
export const jitters = [
  'none',
  'up',
  'around',
  'add',
  'full',
  'equal',
  'decorrelated',
] as const satisfies readonly Jitter[];

export interface Comparison {
  policy: DefinedPolicy;
  /** By jitter, in the order asked for; always with the policy's own. */
  simulations: ReadonlyMap<Jitter, Simulation>;
  /** That of the policy as it is. */
  own: Simulation;
}

export function compare(
  policy: DefinedPolicy,
  world: World,
  asked: readonly Jitter[] = jitters,
): Comparison {
  const simulations = new Map<Jitter, Simulation>();
  for (const jitter of asked.includes(policy.jitter) ? asked : [policy.jitter, ...asked]) {
    const changed = jitter === policy.jitter ? policy : withJitter(policy, jitter);
    if (changed) simulations.set(jitter, simulate(changed, world));
  }
  return { policy, simulations, own: simulations.get(policy.jitter)! };
}

/** Nothing where this jitter does not go with the policy: decorrelated needs the exponential strategy. */
function withJitter(policy: DefinedPolicy, jitter: Jitter): DefinedPolicy | undefined {
  const changed = JSON.parse(JSON.stringify(policy)) as {
    -readonly [K in keyof Policy]: Policy[K];
  };
  changed.jitter = jitter;
  const overrides = Object.entries(changed.overrides ?? {});
  if (overrides.length > 0) {
    changed.overrides = Object.fromEntries(
      overrides.map(([name, override]) => [name, { ...override, jitter }]),
    );
  }
  try {
    return parsePolicy(changed);
  } catch (error) {
    if (isConfigError(error)) return undefined;
    throw error;
  }
}

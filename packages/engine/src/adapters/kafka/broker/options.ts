/** What the broker Kafka can be told, checked once, every fault at once. */
import { ConfigError, type DefinedPolicy, type Fault, parsePolicy, type Policy } from 'redrive';
import type { BrokerState } from '../../../broker/state-board.ts';
import {
  type ConnectionSettings,
  type KafkaConnection,
  readConnection,
} from '../client/settings.ts';

export interface KafkaOptions extends KafkaConnection {
  /** Consumers of a topic are the group `<group>-<topic>` (`redrive`). */
  group?: string;
  /** How long to wait before the next try to reach the cluster; tries never end (100 ms to 10 s, full jitter). */
  policy?: Policy;
  /** Told of every change. */
  onState?: (state: BrokerState) => void;
}

export interface KafkaSettings extends ConnectionSettings {
  group: string;
  policy: DefinedPolicy;
  onState: (state: BrokerState) => void;
}

const defaultPolicy: Policy = { base: '100ms', cap: '10s', jitter: 'full' };

export function readOptions(given: KafkaOptions): KafkaSettings {
  const faults: Fault[] = [];
  const connection = readConnection(given, ['group', 'policy', 'onState'], faults);
  const { group, policy, onState } = Object(given) as KafkaOptions;
  if (group !== undefined && !isGroup(group)) {
    fault('group', 'is not a name of 1 to 200 letters, digits, dots, dashes and underscores.');
  }
  if (onState !== undefined && typeof onState !== 'function') fault('onState', 'is no function.');
  const definedPolicy = policyOf(policy ?? defaultPolicy, faults);
  if (faults.length > 0 || !definedPolicy) {
    throw new ConfigError('INVALID_CONFIG', 'The connection to Kafka has faults:', faults);
  }
  return {
    ...connection,
    group: group ?? 'redrive',
    policy: definedPolicy,
    onState: onState ?? (() => undefined),
  };

  function fault(path: string, message: string): void {
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

export function isGroup(name: unknown): name is string {
  return typeof name === 'string' && /^[\w.-]{1,200}$/.test(name);
}

function policyOf(policy: Policy, faults: Fault[]): DefinedPolicy | undefined {
  try {
    return parsePolicy(policy);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    faults.push(...error.faults.map((one) => ({ ...one, path: `policy.${one.path}` })));
    return undefined;
  }
}

/** What the delay queue on Kafka can be told, checked once, every fault at once. */
import { ConfigError, type Duration, type Fault } from 'redrive';
import { defaultOf, type Fields, readFields } from 'redrive/internal';
import { isGroup } from '../broker/options.ts';
import {
  type ConnectionSettings,
  type KafkaConnection,
  readConnection,
} from '../client/settings.ts';

export interface KafkaDelayQueueOptions extends KafkaConnection {
  /** How the names of its topics begin (`redrive.delay`). */
  prefix?: string;
  /** Of each topic, when it is made: as many consumers can share the work (6). */
  partitions?: number;
  /** Copies of each topic, when it is made (3, or as many as there are brokers). */
  replicas?: number;
  /** The consumer group (the prefix). */
  group?: string;
  /** Entries that a consumer keeps in memory until they are due (100 000). Full means late, never lost. */
  maxHeld?: number;
  /** The same in bytes (64 MiB). */
  maxHeldBytes?: number;
  /** How often what is done is deleted from the logs (1 min). */
  trimEvery?: Duration;
  /** The shortest delay that has a topic, in ms (60 000). Others are twice as long each. For tests. */
  tierMs?: number;
  /** How many topics of delays there are (15). For tests. */
  tiers?: number;
}

export interface KafkaDelayQueueSettings extends ConnectionSettings {
  prefix: string;
  partitions: number;
  replicas: number | undefined;
  group: string;
  maxHeld: number;
  maxHeldBytes: number;
  trimEveryMs: number;
  tierMs: number;
  tiers: number;
}

const fields = {
  partitions: { kind: 'integer', min: 1, max: 1000, default: 6 },
  replicas: { kind: 'integer', min: 1, max: 100 },
  maxHeld: { kind: 'integer', min: 1, max: 10_000_000, default: 100_000 },
  maxHeldBytes: { kind: 'integer', min: 65_536, max: 2 ** 40, default: 64 * 1024 * 1024 },
  trimEvery: { kind: 'duration', min: 100, default: 60_000 },
  tierMs: { kind: 'integer', min: 100, max: 3_600_000, default: 60_000 },
  tiers: { kind: 'integer', min: 1, max: 20, default: 15 },
} as const satisfies Fields;

/** Room for the name of a topic behind it. */
const PREFIX = /^[\w.-]{1,200}$/;

export function readDelayOptions(given: KafkaDelayQueueOptions): KafkaDelayQueueSettings {
  const faults: Fault[] = [];
  const own = ['prefix', 'group', ...Object.keys(fields)];
  const connection = readConnection(given, own, faults);
  const options = Object(given) as KafkaDelayQueueOptions & Record<string, unknown>;
  const numbers = Object.fromEntries(
    Object.keys(fields).flatMap((name) =>
      options[name] === undefined ? [] : [[name, options[name]]],
    ),
  );
  const values = readFields(numbers, fields, Object.keys(fields), '', faults);
  for (const [key, field] of Object.entries(fields)) values[key] ??= defaultOf(field);
  const { prefix = 'redrive.delay' } = options;
  const { group = prefix } = options;
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) fault('prefix', NO_NAME);
  if (!isGroup(group)) fault('group', NO_NAME);
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The delay queue on Kafka has faults:', faults);
  }
  const { trimEvery, ...rest } = values as Record<string, number>;
  return {
    ...connection,
    ...(rest as unknown as Omit<KafkaDelayQueueSettings, keyof ConnectionSettings>),
    replicas: rest['replicas'],
    prefix,
    group,
    trimEveryMs: trimEvery!,
  };

  function fault(path: string, message: string): void {
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

const NO_NAME = 'is not a name of 1 to 200 letters, digits, dots, dashes and underscores.';

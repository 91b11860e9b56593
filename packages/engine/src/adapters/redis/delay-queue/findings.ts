/** What the settings of a Redis server mean for entries that wait there. */
import type { createClient } from '@redis/client';

export interface RedisFinding {
  /** A word for programs. */
  what: 'evicts' | 'not-persistent' | 'snapshots-only' | 'synced-each-second';
  /** `warn`: entries can be lost in ordinary operation. */
  level: 'warn' | 'info';
  /** The node: its address, or `the server`. */
  node: string;
  /** What it means, as a sentence. */
  why: string;
  /** What the operator can do about it, as a sentence. */
  todo: string;
}

/** Absent: the server does not say. */
interface RedisConfiguration {
  policy?: string;
  maxMemory?: number;
  appendOnly?: boolean;
  sync?: string;
  snapshots?: boolean;
}

type Client = Pick<ReturnType<typeof createClient>, 'configGet' | 'info'>;

/** By CONFIG GET, or by INFO where that is denied. */
export async function readConfiguration(client: Client): Promise<RedisConfiguration> {
  try {
    const names = ['maxmemory', 'maxmemory-policy', 'appendonly', 'appendfsync', 'save'];
    const values = await client.configGet(names);
    const { save, appendonly, appendfsync, maxmemory } = values;
    return {
      ...(values['maxmemory-policy'] === undefined ? {} : { policy: values['maxmemory-policy'] }),
      ...(maxmemory === undefined ? {} : { maxMemory: Number(maxmemory) }),
      ...(appendonly === undefined ? {} : { appendOnly: appendonly === 'yes' }),
      ...(appendfsync === undefined ? {} : { sync: appendfsync }),
      ...(save === undefined ? {} : { snapshots: save !== '' }),
    };
  } catch {
    // Managed services and careful operators deny CONFIG. INFO says most of it.
    return fromInfo(`${await client.info('memory')}\n${await client.info('persistence')}`);
  }
}

function fromInfo(text: string): RedisConfiguration {
  const values = new Map(
    text.split(/\r?\n/).flatMap((line): [string, string][] => {
      const at = line.indexOf(':');
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1)]] : [];
    }),
  );
  const policy = values.get('maxmemory_policy');
  const maxMemory = values.get('maxmemory');
  const appendOnly = values.get('aof_enabled');
  return {
    ...(policy === undefined ? {} : { policy }),
    ...(maxMemory === undefined ? {} : { maxMemory: Number(maxMemory) }),
    ...(appendOnly === undefined ? {} : { appendOnly: appendOnly === '1' }),
  };
}

export function findingsOf(node: string, configuration: RedisConfiguration): RedisFinding[] {
  const { policy = 'noeviction', maxMemory, appendOnly, sync, snapshots } = configuration;
  const findings: RedisFinding[] = [];
  // `volatile-*` evicts only keys that expire, and ours do not. Without a limit nothing is evicted.
  if (policy.startsWith('allkeys') && maxMemory !== 0) {
    findings.push({
      what: 'evicts',
      level: 'warn',
      node,
      why: `Its maxmemory-policy is ${policy}: when memory is full it deletes entries that it has acknowledged.`,
      todo: 'Set maxmemory-policy to noeviction.',
    });
  }
  if (appendOnly === false) {
    const isSnapshot = snapshots !== false;
    findings.push({
      what: isSnapshot ? 'snapshots-only' : 'not-persistent',
      level: 'warn',
      node,
      why: isSnapshot
        ? 'It writes no append-only file: a crash loses the entries that came since its last snapshot.'
        : 'It writes neither an append-only file nor snapshots: a restart loses all entries.',
      todo: 'Set appendonly to yes.',
    });
  } else if (appendOnly && sync !== undefined && sync !== 'always') {
    findings.push({
      what: 'synced-each-second',
      level: 'info',
      node,
      why: `Its appendfsync is ${sync}: a crash of the machine loses up to the last second of entries.`,
      todo: 'Set appendfsync to always, or let replicas confirm entries with minReplicas.',
    });
  }
  return findings;
}

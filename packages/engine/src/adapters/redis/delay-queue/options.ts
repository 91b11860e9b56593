/** What a delay queue in Redis can be told, checked once, every fault at once. */
import type { RedisClientOptions } from '@redis/client';
import { type Clock, ConfigError, type Fault, type Random } from 'redrive';
import { type Host, hostOf, type Log } from '../../../host.ts';
import { didYouMean, nearest } from 'redrive/internal';
import { urlFault } from '../link.ts';

export interface RedisDelayQueueOptions {
  /** One server, or a primary: `redis://user:password@host:6379/0`, or `rediss://` with TLS. */
  url?: string;
  /** Some nodes of a cluster, as URLs. User, password and TLS are those of the first one, for all nodes. */
  cluster?: readonly string[];
  /** Further options of `@redis/client`, such as those of TLS. */
  client?: Pick<RedisClientOptions, 'username' | 'password' | 'socket' | 'name' | 'pingInterval'>;
  /** What the names of the keys begin with (`redrive:delay:`). Queues of other prefixes have other entries. */
  prefix?: string;
  /**
   * Parts of the queue, each of them in one hash slot of a cluster. All instances must agree. Unless given: what the queue was made
   * with, and for a new one 1 on a single server and 16 on a cluster.
   */
  slots?: number;
  /** How long an entry stays with a consumer that gives no sign of life, in ms (30 000). */
  leaseMs?: number;
  /** `schedule` resolves only when so many replicas have its entries (0). */
  minReplicas?: number;
  /** How long it waits for them, in ms (1000). */
  replicaTimeoutMs?: number;
  log?: Log;
  /** For waits in this process. Due times are by the server's clock. */
  clock?: Clock;
  random?: Random;
}

export interface RedisDelaySettings {
  /** One URL is a single server. */
  urls: readonly string[];
  isCluster: boolean;
  client: NonNullable<RedisDelayQueueOptions['client']>;
  prefix: string;
  slots: number | undefined;
  leaseMs: number;
  minReplicas: number;
  replicaTimeoutMs: number;
  host: Host;
}

const MAX_SLOTS = 1024;
const wholes = {
  slots: [1, MAX_SLOTS],
  leaseMs: [100, 86_400_000],
  minReplicas: [0, 100],
  replicaTimeoutMs: [1, 5000],
} as const;
const others = 'url cluster client prefix log clock random'.split(' ');

export function readOptions(given: RedisDelayQueueOptions): RedisDelaySettings {
  const options = Object(given) as RedisDelayQueueOptions;
  const faults: Fault[] = [];
  const fault = (path: string, message: string) => {
    faults.push({ path, code: 'INVALID_VALUE', message: `${path} ${message}` });
  };
  const names = [...Object.keys(wholes), ...others];
  for (const name of Object.keys(options)) {
    if (!names.includes(name))
      fault(name, `is no option of redisDelayQueue.${didYouMean(nearest(name, names))}`);
  }
  for (const [name, [min, max]] of Object.entries(wholes)) {
    const value = options[name as keyof typeof wholes];
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || value < min || value > max) {
      fault(name, `is ${String(value)}. Allowed: ${min} to ${max}, whole.`);
    }
  }
  const { url, cluster, client = {}, prefix = 'redrive:delay:' } = options;
  if ((url === undefined) === (cluster === undefined)) {
    fault('url', 'or cluster must be given, and not both.');
  }
  const urls = cluster ?? (url === undefined ? [] : [url]);
  if (cluster !== undefined && (!Array.isArray(cluster) || cluster.length === 0)) {
    fault('cluster', 'is no list of URLs of nodes.');
  } else {
    // Not the URL itself: a password may stand in it.
    const bad = urls.map(urlFault).find((one) => one !== undefined);
    if (bad !== undefined) fault(cluster ? 'cluster' : 'url', bad);
  }
  // Braces would change which part of a key decides about its slot.
  if (typeof prefix !== 'string' || prefix.length > 200 || /[{}]/.test(prefix)) {
    fault('prefix', 'must be a text of at most 200 characters, without braces.');
  }
  if (faults.length > 0) {
    throw new ConfigError(
      'INVALID_CONFIG',
      'The options of the Redis delay queue have faults:',
      faults,
    );
  }
  return {
    urls,
    isCluster: cluster !== undefined,
    client,
    prefix,
    slots: options.slots,
    leaseMs: options.leaseMs ?? 30_000,
    minReplicas: options.minReplicas ?? 0,
    replicaTimeoutMs: options.replicaTimeoutMs ?? 1000,
    host: hostOf(options),
  };
}

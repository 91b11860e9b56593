/** A Redis cluster of three primaries with a replica each: with three nodes alone, the end of one would end the cluster. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Home } from './home.ts';
import { startOnFreePort } from './port.ts';
import { configuration, redis, type RedisOptions, say } from './redis.ts';
import { need, type Service } from './service.ts';

export interface RedisNode {
  readonly url: string;
  /** Ends the node at once. */
  kill(): Promise<void>;
  /** Starts it again, on the same port. */
  start(): Promise<void>;
  /** Whether it takes writes now. */
  isPrimary(): Promise<boolean>;
  /** What it answers to one command, as it comes over the wire. */
  say(command: string): Promise<string>;
}

export interface RedisCluster extends AsyncDisposable {
  /** Of all nodes, for one client. */
  readonly urls: readonly string[];
  readonly nodes: readonly RedisNode[];
  stop(): Promise<void>;
}

interface Started extends RedisNode {
  readonly port: number;
  stop(): Promise<void>;
}

const PRIMARIES = 3;
const SLOTS = 16_384;
/** After so long without a sign of life a node is taken for dead. */
const NODE_TIMEOUT_MS = 1000;
const PATIENCE_MS = 60_000;
const LOOK_EVERY_MS = 50;

/** Nobody shares one: whoever needs a cluster kills its nodes. */
export const redisCluster: Service<'Redis cluster'> = {
  name: 'Redis cluster',
  neededBy: 'tests of delay queues',
  find: () => redis.find(),
  get: (kit) => redis.get(kit),
};

export async function startRedisCluster({ settings }: RedisOptions = {}): Promise<RedisCluster> {
  const { path } = need(redis);
  const password = randomBytes(16).toString('hex');
  const nodes: Started[] = [];
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    for (let i = 0; i < 2 * PRIMARIES; i++) {
      nodes.push(
        await startNode(path, password, {
          'cluster-enabled': 'yes',
          'cluster-node-timeout': String(NODE_TIMEOUT_MS),
          masterauth: password,
          ...settings,
        }),
      );
    }
    await joinAll(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  return { urls: nodes.map(({ url }) => url), nodes, stop, [Symbol.asyncDispose]: stop };
}

/** The first three get the slots, each of the others replicates one of them. */
async function joinAll(nodes: readonly Started[]): Promise<void> {
  const [first, ...others] = nodes;
  for (const { port } of others) await first!.say(`CLUSTER MEET 127.0.0.1 ${port}`);
  const primaries = nodes.slice(0, PRIMARIES);
  for (const [i, node] of primaries.entries()) {
    const from = Math.floor((i * SLOTS) / PRIMARIES);
    const to = Math.floor(((i + 1) * SLOTS) / PRIMARIES);
    const slots = Array.from({ length: to - from }, (_, n) => from + n);
    await node.say(`CLUSTER ADDSLOTS ${slots.join(' ')}`);
  }
  await until('all nodes know each other', async () => {
    const known = await Promise.all(nodes.map((node) => node.say('CLUSTER INFO')));
    return known.every((text) => text.includes(`cluster_known_nodes:${nodes.length}`));
  });
  for (const [i, node] of nodes.slice(PRIMARIES).entries()) {
    const id = /[0-9a-f]{40}/.exec(await primaries[i]!.say('CLUSTER MYID'))?.[0];
    await until('a node replicates', async () =>
      (await node.say(`CLUSTER REPLICATE ${id}`)).startsWith('+OK'),
    );
  }
  await until('the cluster is complete', async () => {
    const states = await Promise.all(nodes.map((node) => node.say('CLUSTER INFO')));
    const links = await Promise.all(nodes.map((node) => node.say('INFO replication')));
    return (
      states.every((text) => text.includes('cluster_state:ok')) &&
      links.every((text) => /connected_slaves:1|master_link_status:up/.test(text))
    );
  });
}

async function startNode(
  path: string,
  password: string,
  settings: Readonly<Record<string, string>>,
): Promise<Started> {
  const home = new Home('redis-node', 'SIGKILL');
  try {
    const config = join(home.folder, 'redis.conf');
    const launch = (port: number) =>
      home.run(path, [config], async () => (await say(port, password, 'PING')).includes('+PONG'));
    const port = await startOnFreePort(home, async (candidate) => {
      writeFileSync(config, configuration(home, candidate, password, settings));
      await launch(candidate);
    });
    const ask = (command: string) => say(port, password, command);
    return {
      port,
      url: `redis://:${password}@127.0.0.1:${port}`,
      kill: () => home.end('SIGKILL'),
      start: () => launch(port),
      isPrimary: async () => (await ask('INFO replication')).includes('role:master'),
      say: ask,
      stop: () => home.remove(),
    };
  } catch (error) {
    await home.remove();
    throw error;
  }
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAtMs) throw new Error(`It did not come about that ${what}.`);
    await sleep(LOOK_EVERY_MS);
  }
}

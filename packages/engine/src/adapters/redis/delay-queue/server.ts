import type * as Redis from '@redis/client';
import { EngineError } from '../../../errors.ts';
import {
  CONNECT_TIMEOUT_MS,
  faultOf,
  isUnknownScript,
  type Script,
  type Link,
  linkOf,
  loadRedis,
  MAX_WAITING,
  reconnectPauseMs,
} from '../link.ts';
import type { RedisDelaySettings } from './options.ts';

const COMMANDS =
  'EVALSHA, EVAL, TIME, PUBLISH, SUBSCRIBE, GET, SET, INCR, TYPE, WAIT and the commands of sorted sets and hashes';
/** After a node of a cluster went away, so long until the client asks the others who has its slots now. */
const REFRESH_MS = 300;
const MAX_REDIRECTIONS = 3;
/** Payloads are bytes: `RESP_TYPES.BLOB_STRING` is the `$` of the protocol. */
const bytes = { 36: Buffer } satisfies Record<(typeof Redis.RESP_TYPES)['BLOB_STRING'], unknown>;

type Library = Pick<typeof Redis, 'createClient' | 'createCluster'>;

type Client = ReturnType<typeof createSingle>;
type Cluster = ReturnType<typeof createNodes>;

/** A single server or a cluster, as far as scripts on one key are concerned. */
export class RedisServer {
  readonly #link: Link<Client | Cluster>;
  readonly #settings: RedisDelaySettings;

  constructor(settings: RedisDelaySettings) {
    this.#settings = settings;
    this.#link = linkOf<Client | Cluster>((library) =>
      settings.isCluster ? createNodes(library, settings) : createSingle(library, settings),
    );
  }

  /**
   * Runs a script by its hash. With `isReplicated` it answers only when as many replicas as are wanted have all that this script
   * and earlier ones wrote. WAIT counts what its own connection wrote before, so that both go over the same one, one after the other.
   */
  async run(
    script: Script,
    keys: string[],
    args: (string | Buffer)[],
    isReplicated = false,
  ): Promise<unknown> {
    const { minReplicas, replicaTimeoutMs } = this.#settings;
    const isWaiting = isReplicated && minReplicas > 0;
    const options = { keys, arguments: args };
    const once = async (client: Client, isKnown: boolean) => {
      const typed = client.withTypeMapping(bytes);
      const done = isKnown ? typed.evalSha(script.hash, options) : typed.eval(script.text, options);
      if (!isWaiting) return done;
      const [answer, replicas] = await Promise.all([
        done,
        client.wait(minReplicas, replicaTimeoutMs),
      ]);
      if (Number(replicas) >= minReplicas) return answer;
      const message = `Only ${Number(replicas)} of ${minReplicas} replicas confirmed the entries within ${replicaTimeoutMs} ms. They may be lost if the primary fails now. Trying again is safe.`;
      throw new EngineError('STORE_UNAVAILABLE', message);
    };
    try {
      return await this.onNode(keys[0]!, async (client) => {
        try {
          return await once(client, true);
        } catch (error) {
          if (!isUnknownScript(error)) throw error;
          return once(client, false);
        }
      });
    } catch (error) {
      if (isWrongType(error)) await this.checkTypes(keys);
      throw error;
    }
  }

  /** Throws `KEY_NOT_OURS` where a key is there and something else than ours. */
  async checkTypes(keys: readonly string[]): Promise<void> {
    await Promise.all(
      keys.map(async (key) => {
        const type = await this.onNode(key, (client) => client.type(key));
        const ours = typeOf(key);
        if (type === 'none' || type === ours) return;
        const message = `The key ${key} in Redis is a ${type}, and the delay queue keeps a ${ours} there. Somebody else uses that name. Rename or delete that key, or give the queue another prefix.`;
        throw new EngineError('KEY_NOT_OURS', message);
      }),
    );
  }

  /** Calls with the client of the node that has the key. */
  async onNode<T>(key: string, command: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await this.#link.run((client) =>
        isCluster(client) ? inCluster(client, key, command) : command(client),
      );
    } catch (error) {
      if (error instanceof EngineError || isWrongType(error)) throw error;
      throw faultOf(error, COMMANDS);
    }
  }

  /** One after the other with every node that takes writes. */
  async onPrimaries(command: (client: Client, address: string) => Promise<void>): Promise<void> {
    try {
      await this.#link.run(async (client) => {
        if (!isCluster(client)) return command(client, 'the server');
        for (const node of client.masters) {
          await command(await client.nodeClient(node), node.address);
        }
        return undefined;
      });
    } catch (error) {
      throw faultOf(error, COMMANDS);
    }
  }

  /** Listens on a connection of its own for as long as the answer's promise is not called. */
  async subscribe(channel: string, listener: (message: string) => void): Promise<() => void> {
    // One node of a cluster is enough: they pass messages on to each other.
    const library = await loadRedis();
    const client = this.#settings.isCluster
      ? createNodes(library, this.#settings, true)
      : createSingle(library, this.#settings, true);
    try {
      await client.connect();
      await client.subscribe(channel, listener);
    } catch (error) {
      client.destroy();
      throw faultOf(error, COMMANDS);
    }
    return () => client.destroy();
  }

  close(): Promise<void> {
    return this.#link.close();
  }
}

/** By the end of its name, as `layout.ts` makes it. */
function typeOf(key: string): string {
  if (key.endsWith(':q')) return 'zset';
  return key.endsWith(':e') || key.endsWith(':h') ? 'hash' : 'string';
}

function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.message.includes('WRONGTYPE');
}

function isCluster(client: Client | Cluster): client is Cluster {
  return 'nodeClient' in client;
}

async function inCluster<T>(
  cluster: Cluster,
  key: string,
  command: (client: Client) => Promise<T>,
): Promise<T> {
  for (let redirections = 0; ; redirections++) {
    try {
      return await command(await cluster.getNodeClientForKey(key));
    } catch (error) {
      const isMoved = error instanceof Error && error.message.startsWith('MOVED');
      if (!isMoved || redirections >= MAX_REDIRECTIONS) throw error;
      // The cluster's own commands follow the redirection, and learn who has which slot now.
      await cluster.exists(key);
    }
  }
}

function clientOptions({ client }: RedisDelaySettings, isListener: boolean) {
  const { socket, ...rest } = client;
  return (reconnectStrategy: (retries: number) => number | false) => ({
    ...rest,
    // A command that waits for a connection would take effect long after its caller has given up. A listener subscribes again.
    disableOfflineQueue: !isListener,
    commandsQueueMaxLength: MAX_WAITING,
    socket: { connectTimeout: CONNECT_TIMEOUT_MS, ...socket, reconnectStrategy },
  });
}

function createSingle({ createClient }: Library, settings: RedisDelaySettings, isListener = false) {
  let wasReady = false;
  // The first connection is tried again by the next call, later ones by the client.
  const pauses = (retries: number) => wasReady && reconnectPauseMs(retries);
  return createClient({ url: settings.urls[0]!, ...clientOptions(settings, isListener)(pauses) })
    .on('ready', () => (wasReady = true))
    .on('error', () => undefined);
}

function createNodes({ createCluster }: Library, settings: RedisDelaySettings, isListener = false) {
  const first = new URL(settings.urls[0]!);
  const username = decodeURIComponent(first.username);
  const password = decodeURIComponent(first.password);
  const { socket, ...defaults } = clientOptions(settings, isListener)(reconnectPauseMs);
  const tls = first.protocol === 'rediss:' ? { tls: true as const } : {};
  return createCluster({
    rootNodes: settings.urls.map((url) => ({ url })),
    defaults: {
      ...(username ? { username } : {}),
      ...(password ? { password } : {}),
      ...defaults,
      socket: { ...socket, ...tls },
    },
    minimizeConnections: isListener,
    topologyRefreshOnReconnectionAttemptStrategy: REFRESH_MS,
  }).on('error', () => undefined);
}

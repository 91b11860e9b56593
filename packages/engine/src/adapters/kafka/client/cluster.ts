import type { API, Connection as KafkaConnection } from '@platformatic/kafka';
import { textOf } from '../../../broker/answers.ts';
import { whyDenied } from './denied.ts';
import { Code, DeniedError, NotSentError } from './errors.ts';
import type { ConnectionSettings } from './settings.ts';
import { Connection, metadataV11 } from './library.ts';

/**
 * Each has connections of its own: a broker answers the requests of one connection in turn, and a fetch or a join may wait
 * there for long. So every reader and every member of a group has its own too.
 */
export type Purpose = 'produce' | 'control' | `fetch ${number}` | `join ${number}`;

interface PartitionInfo {
  /** Undefined: none for now. */
  readonly leader: number | undefined;
  readonly replicas: readonly number[];
}

type TopicInfo =
  | { readonly state: 'found'; readonly partitions: readonly PartitionInfo[] }
  | { readonly state: 'missing' }
  /** What is known is that it cannot be said now, and by which error. */
  | { readonly state: 'unclear'; readonly errorCode: number };

interface Address {
  readonly host: string;
  readonly port: number;
}

const METADATA_MAX_AGE_MS = 60_000;

/** The connections to the brokers of one cluster, and what they say of its topics. */
export class Cluster {
  readonly settings: ConnectionSettings;
  /** Called when a broker could not be reached. */
  onUnreachable: () => void = () => {};
  readonly #connections = new Map<string, Promise<KafkaConnection>>();
  readonly #topics = new Map<string, { info: TopicInfo; atMs: number }>();
  readonly #asked = new Map<string, Promise<void>>();
  #nodes = new Map<number, Address>();
  /** Where the next question to any broker goes: on to another one after a failure. */
  #turn = 0;
  #lastPurpose = 0;
  #isClosed = false;

  constructor(settings: ConnectionSettings) {
    this.settings = settings;
  }

  /** The brokers that the cluster has told of. */
  get nodeIds(): number[] {
    return [...this.#nodes.keys()];
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** What the cluster says of topics. Never makes one. Rejects when no broker answers. */
  async topics(names: readonly string[], isFresh = false): Promise<Map<string, TopicInfo>> {
    const { clock } = this.settings.host;
    const oldestMs = clock.monotonic() - METADATA_MAX_AGE_MS;
    const stale = names.filter((name) => {
      const known = this.#topics.get(name);
      return isFresh || known?.info.state !== 'found' || known.atMs < oldestMs;
    });
    if (stale.length > 0) await this.#ask(stale);
    const infos = names.map((name): [string, TopicInfo] => [
      name,
      this.#topics.get(name)?.info ?? { state: 'unclear', errorCode: Code.leaderNotAvailable },
    ]);
    return new Map(infos);
  }

  /** Whether any broker answers: rejects when none does. */
  async ping(): Promise<void> {
    try {
      await this.#refresh([]);
    } catch (error) {
      const isFirst = this.#nodes.size === 0 && !(error instanceof NotSentError);
      const denied = isFirst ? whyDenied(error, this.settings.connection) : undefined;
      throw denied === undefined ? error : new DeniedError(denied, { cause: error });
    }
  }

  /** What was told last, without asking. */
  known(topic: string): TopicInfo | undefined {
    return this.#topics.get(topic)?.info;
  }

  leaderOf(topic: string, partition: number): number | undefined {
    const info = this.known(topic);
    return info?.state === 'found' ? info.partitions[partition]?.leader : undefined;
  }

  /** Questions asked at the same time are one. */
  #ask(names: readonly string[]): Promise<void> {
    const key = names.toSorted().join(',');
    let asked = this.#asked.get(key);
    if (!asked) {
      asked = this.#refresh(names).finally(() => this.#asked.delete(key));
      this.#asked.set(key, asked);
    }
    return asked;
  }

  async #refresh(names: readonly string[]): Promise<void> {
    const response = await this.callAny(metadataV11.api, [...names], false, false);
    const atMs = this.settings.host.clock.monotonic();
    this.#nodes = new Map(
      response.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]),
    );
    for (const { name, errorCode, partitions } of response.topics) {
      if (typeof name !== 'string') continue;
      this.#topics.set(name, { info: infoOf(errorCode, partitions), atMs });
    }
  }

  /** Asks any broker, one after the other until one answers. */
  async callAny<Args extends unknown[], R>(api: API<Args, R>, ...args: Args): Promise<R> {
    const addresses = [...this.#nodes.values(), ...this.settings.brokers];
    let last: unknown;
    for (let i = 0; i < addresses.length; i++) {
      const address = addresses[(this.#turn + i) % addresses.length]!;
      try {
        const answer = await this.#send('control', address, api, args);
        this.#turn += i;
        return answer;
      } catch (error) {
        last = error;
      }
      if (this.#isClosed) break;
    }
    throw last;
  }

  /**
   * Asks one broker. An answer that says no is an answer too: look at its error codes. Rejects with a NotSentError when the
   * request was not sent, and with anything else when nobody knows what became of it.
   */
  async call<Args extends unknown[], R>(
    purpose: Purpose,
    nodeId: number,
    api: API<Args, R>,
    ...args: Args
  ): Promise<R> {
    const address = this.#nodes.get(nodeId);
    if (!address) throw new NotSentError(`The cluster has no broker ${nodeId} now.`);
    return this.#send(purpose, address, api, args);
  }

  /** Another one each time. */
  purpose<Kind extends 'fetch' | 'join'>(kind: Kind): `${Kind} ${number}` {
    this.#lastPurpose += 1;
    return `${kind} ${this.#lastPurpose}`;
  }

  /** Nobody needs the connections of a purpose any more. */
  async release(purpose: Purpose): Promise<void> {
    for (const [key, connecting] of this.#connections) {
      if (!key.startsWith(`${purpose} `)) continue;
      this.#connections.delete(key);
      // One that could not be made is closed.
      await connecting.then((connection) => connection.close()).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const all = await Promise.allSettled(this.#connections.values());
    this.#connections.clear();
    const open = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    await Promise.allSettled(open.map((connection) => connection.close()));
  }

  async #send<Args extends unknown[], R>(
    purpose: Purpose,
    address: Address,
    api: API<Args, R>,
    args: Args,
  ): Promise<R> {
    const connection = await this.#connected(purpose, address);
    try {
      return await api.async(connection, ...args);
    } catch (error) {
      const response = responseIn(error);
      if (response === undefined) throw error;
      return response as R;
    }
  }

  async #connected(purpose: Purpose, address: Address): Promise<KafkaConnection> {
    if (this.#isClosed) throw new NotSentError('The connection to Kafka was closed.');
    const key = `${purpose} ${address.host}:${address.port}`;
    let connecting = this.#connections.get(key);
    if (!connecting) {
      connecting = this.#connect(purpose, address, () => this.#connections.delete(key));
      this.#connections.set(key, connecting);
    }
    return connecting;
  }

  async #connect(purpose: Purpose, address: Address, ended: () => void): Promise<KafkaConnection> {
    const { clientId, connection: options } = this.settings;
    const { host, port } = address;
    // A join is answered when all members have joined.
    const requestTimeout = purpose.startsWith('join') ? { requestTimeout: JOIN_TIMEOUT_MS } : {};
    const connection = new Connection(clientId, { ...options, ...requestTimeout });
    connection.on('error', ended);
    connection.on('close', ended);
    try {
      await connection.connect(host, port);
    } catch (error) {
      ended();
      this.onUnreachable();
      const denied = whyDenied(error, this.settings.connection);
      if (denied !== undefined)
        throw new DeniedError(`${host}:${port} refused the connection. ${denied}`, {
          cause: error,
        });
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
      throw new NotSentError(`No connection to ${host}:${port}: ${textOf(cause)}`, {
        cause: error,
      });
    }
    return connection;
  }
}

/** How long others may take to join a group again. */
export const REBALANCE_TIMEOUT_MS = 60_000;
const JOIN_TIMEOUT_MS = REBALANCE_TIMEOUT_MS + 15_000;

function infoOf(
  errorCode: number,
  partitions: readonly { partitionIndex: number; leaderId: number; replicaNodes: number[] }[],
): TopicInfo {
  if (errorCode === Code.unknownTopic) return { state: 'missing' };
  if (errorCode !== Code.none && partitions.length === 0) return { state: 'unclear', errorCode };
  const infos: PartitionInfo[] = [];
  for (const { partitionIndex, leaderId, replicaNodes } of partitions) {
    infos[partitionIndex] = { leader: leaderId < 0 ? undefined : leaderId, replicas: replicaNodes };
  }
  return { state: 'found', partitions: infos };
}

/** The library throws what a broker refused, with the whole answer beside it. */
function responseIn(error: unknown): unknown {
  return error instanceof Error && 'response' in error ? error.response : undefined;
}

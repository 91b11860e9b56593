/** What a connection to RabbitMQ can be told, checked once, every fault at once. */
import type { ConnectionOptions } from 'node:tls';
import type { Options } from 'amqplib';
import {
  type Clock,
  ConfigError,
  type DefinedPolicy,
  type Duration,
  type Fault,
  parsePolicy,
  type Policy,
  type Random,
} from 'redrive';
import { defaultOf, type Fields, readFields } from 'redrive/internal';
import { type Host, hostOf, type Log } from '../../host.ts';
import { isLong } from './tagged.ts';
import type { BrokerState } from '../../broker/state-board.ts';
import type { Topology } from './topology.ts';

export interface RabbitOptions {
  /** `amqp://user:password@host:5672/vhost`, or `amqps:`. */
  url: string;
  /** What must be there: it is declared where it is missing. */
  topology?: Topology;
  /** How often the two sides show that they are there; one that was silent for two of them is gone (10 s). */
  heartbeat?: Duration;
  /** How long a connection may take to come about (10 s). */
  connectTimeout?: Duration;
  /** How long to wait before the next try at a connection or a consumer; tries never end (100 ms to 10 s, full jitter). */
  policy?: Policy;
  /** What the broker calls the connections (`redrive`). */
  name?: string;
  /** For `amqps:`: an authority of your own, a certificate to show, as of Node's `tls.connect`. */
  tls?: ConnectionOptions;
  /** Told of every change. */
  onState?: (state: BrokerState) => void;
  log?: Log;
  clock?: Clock;
  random?: Random;
}

export interface RabbitSettings {
  connect: Options.Connect;
  socket: ConnectionOptions;
  connectTimeoutMs: number;
  policy: DefinedPolicy;
  name: string;
  topology: Topology;
  onState: (state: BrokerState) => void;
  host: Host;
}

const defaultPolicy: Policy = { base: '100ms', cap: '10s', jitter: 'full' };

const fields = {
  heartbeat: { kind: 'duration', min: 1000, default: 10_000 },
  connectTimeout: { kind: 'duration', min: 1, default: 10_000 },
} as const satisfies Fields;

const others = 'url topology policy name tls onState log clock random'.split(' ');

export function readOptions(given: RabbitOptions): RabbitSettings {
  const faults: Fault[] = [];
  const { url, topology, policy, name, tls, onState, log, clock, random, ...rest } = Object(
    given,
  ) as RabbitOptions;
  const values = readFields(rest, fields, [...Object.keys(fields), ...others], '', faults);
  for (const [key, field] of Object.entries(fields)) values[key] ??= defaultOf(field);
  const { heartbeat, connectTimeout } = values as Record<string, number>;
  const connect = connectOf(url);
  // Not the URL itself: a password may stand in it.
  if (!connect) fault('url', 'is not amqp://user:password@host:port/vhost, or amqps:.');
  if (tls !== undefined && Object(tls) !== tls) fault('tls', 'is not an object of TLS options.');
  if (onState !== undefined && typeof onState !== 'function') fault('onState', 'is no function.');
  if (name !== undefined && (typeof name !== 'string' || name === '' || isLong(name))) {
    fault('name', 'is not a text of 1 to 255 bytes.');
  }
  checkTopology(topology ?? {}, fault);
  const definedPolicy = policyOf(policy ?? defaultPolicy, faults);
  if (faults.length > 0 || !connect || !definedPolicy) {
    throw new ConfigError('INVALID_CONFIG', 'The connection to RabbitMQ has faults:', faults);
  }
  return {
    connect: { ...connect, heartbeat: Math.ceil(heartbeat! / 1000) },
    socket: { ...tls },
    connectTimeoutMs: connectTimeout!,
    policy: definedPolicy,
    name: name ?? 'redrive',
    topology: topology ?? {},
    onState: onState ?? (() => undefined),
    host: hostOf({
      ...(log ? { log } : {}),
      ...(clock ? { clock } : {}),
      ...(random ? { random } : {}),
    }),
  };

  function fault(path: string, message: string): void {
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

/** In parts: amqplib would take a password from the URL as Latin-1. */
function connectOf(text: unknown): Options.Connect | undefined {
  if (typeof text !== 'string' || !URL.canParse(text)) return undefined;
  const { protocol, hostname, port, username, password, pathname } = new URL(text);
  if ((protocol !== 'amqp:' && protocol !== 'amqps:') || hostname === '') return undefined;
  try {
    return {
      protocol: protocol.slice(0, -1),
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? (protocol === 'amqp:' ? 5672 : 5671) : Number(port),
      ...(username || password
        ? { username: decodeURIComponent(username), password: decodeURIComponent(password) }
        : {}),
      // Still with its escapes, which amqplib takes out.
      ...(pathname.length > 1 ? { vhost: pathname.slice(1) } : {}),
    };
  } catch {
    // An escape that is none.
    return undefined;
  }
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

const exchangeTypes = ['direct', 'topic', 'fanout', 'headers'];

function checkTopology(topology: Topology, fault: (path: string, message: string) => void): void {
  const { queues = [], exchanges = [], bindings = [] } = Object(topology) as Topology;
  const name = (path: string, text: unknown) => {
    const isOne = typeof text === 'string' && text !== '' && !isLong(text);
    if (!isOne) fault(path, 'is not a name of 1 to 255 bytes.');
  };
  queues.forEach((queue, i) => {
    name(`topology.queues.${i}.name`, queue.name);
    if (!['classic', 'quorum', undefined].includes(queue.type)) {
      fault(`topology.queues.${i}.type`, "is neither 'classic' nor 'quorum'.");
    }
  });
  exchanges.forEach((exchange, i) => {
    name(`topology.exchanges.${i}.name`, exchange.name);
    if (!exchangeTypes.includes(exchange.type)) {
      fault(`topology.exchanges.${i}.type`, `is none of ${exchangeTypes.join(', ')}.`);
    }
  });
  bindings.forEach((binding, i) => {
    name(`topology.bindings.${i}.exchange`, binding.exchange);
    name(`topology.bindings.${i}.queue`, binding.queue);
    const { pattern } = binding;
    if (typeof pattern !== 'string' || isLong(pattern)) {
      fault(`topology.bindings.${i}.pattern`, 'is not a text of up to 255 bytes.');
    }
  });
}

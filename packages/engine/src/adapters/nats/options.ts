/** What a connection to NATS can be told, checked once, every fault at once. */
import type { TlsOptions } from '@nats-io/transport-node';
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
import type { BrokerState } from '../../broker/state-board.ts';
import { type Host, hostOf, type Log } from '../../host.ts';

/** A stream that must be there: it is created where it is missing, and used as it is where it exists. */
export interface StreamSpec {
  name: string;
  subjects: readonly string[];
  /** `workqueue`: a message is removed when its consumer has acknowledged it (`limits`). */
  retention?: 'limits' | 'workqueue';
  /** Servers of a cluster that hold a copy (1). */
  replicas?: number;
  /** True: it is created when a message for it finds no stream, and not before. */
  onDemand?: boolean;
}

export interface NatsOptions {
  /** `nats://user:password@host:4222`, `nats://token@host`, or `tls:`; several where there is a cluster. */
  url: string | readonly string[];
  token?: string;
  /** The path of a file of credentials (a JWT and its seed). It is read for each connection. */
  credsFile?: string;
  /** As of the client: `caFile`, `certFile`, `keyFile`. With it, or with `tls:`, no connection is made without TLS. */
  tls?: TlsOptions;
  /** False publishes without JetStream: nobody confirms, and what nobody listens to is gone (true). */
  confirms?: boolean;
  streams?: readonly StreamSpec[];
  /** The name of the durable consumers that are made (`redrive`). */
  durable?: string;
  /** How often the server is asked whether it is there; after two without an answer it is gone (10 s). */
  heartbeat?: Duration;
  /** How long a connection, or an answer of JetStream, may take (10 s). */
  connectTimeout?: Duration;
  /** How long a message may stay unacknowledged without a sign of life before the server hands it out again (30 s). */
  ackWait?: Duration;
  /** How long to wait before the next try at a connection or a consumer; tries never end (100 ms to 10 s, full jitter). */
  policy?: Policy;
  /** What the server calls the connection (`redrive`). */
  name?: string;
  /** Told of every change. */
  onState?: (state: BrokerState) => void;
  log?: Log;
  clock?: Clock;
  random?: Random;
}

export interface NatsSettings {
  /** Without credentials. */
  servers: readonly string[];
  user: string | undefined;
  password: string | undefined;
  token: string | undefined;
  credsFile: string | undefined;
  tls: TlsOptions | undefined;
  confirms: boolean;
  streams: readonly StreamSpec[];
  durable: string;
  heartbeatMs: number;
  connectTimeoutMs: number;
  ackWaitMs: number;
  policy: DefinedPolicy;
  name: string;
  onState: (state: BrokerState) => void;
  host: Host;
}

const defaultPolicy: Policy = { base: '100ms', cap: '10s', jitter: 'full' };
const MAX_SERVERS = 100;

const fields = {
  heartbeat: { kind: 'duration', min: 1000, default: 10_000 },
  connectTimeout: { kind: 'duration', min: 1, default: 10_000 },
  ackWait: { kind: 'duration', min: 1000, default: 30_000 },
} as const satisfies Fields;

const others =
  'url token credsFile tls confirms streams durable policy name onState log clock random'.split(
    ' ',
  );

export function readOptions(given: NatsOptions): NatsSettings {
  const faults: Fault[] = [];
  const { url, token, credsFile, tls, confirms, streams, durable, ...more } = Object(
    given,
  ) as NatsOptions;
  const { policy, name, onState, log, clock, random, ...rest } = more;
  const values = readFields(rest, fields, [...Object.keys(fields), ...others], '', faults);
  for (const [key, field] of Object.entries(fields)) values[key] ??= defaultOf(field);
  const { heartbeat, connectTimeout, ackWait } = values as Record<string, number>;
  const servers = serversOf(url);
  // Not the URL itself: a password may stand in it.
  if (!servers) fault('url', 'is not nats://user:password@host:port, or tls:, or a list of them.');
  for (const [path, text] of Object.entries({ token, credsFile, name })) {
    if (text !== undefined && (typeof text !== 'string' || text === '')) {
      fault(path, 'is not a text.');
    }
  }
  if (tls !== undefined && Object(tls) !== tls) fault('tls', 'is not an object of TLS options.');
  if (confirms !== undefined && typeof confirms !== 'boolean') fault('confirms', 'is no boolean.');
  if (onState !== undefined && typeof onState !== 'function') fault('onState', 'is no function.');
  if (durable !== undefined && !isName(durable)) fault('durable', NO_NAME);
  checkStreams(streams ?? [], fault);
  const definedPolicy = policyOf(policy ?? defaultPolicy, faults);
  if (faults.length > 0 || !servers || !definedPolicy) {
    throw new ConfigError('INVALID_CONFIG', 'The connection to NATS has faults:', faults);
  }
  return {
    ...servers,
    token: token ?? servers.token,
    credsFile,
    tls: tls ?? (servers.isTls ? {} : undefined),
    confirms: confirms ?? true,
    streams: streams ?? [],
    durable: durable ?? 'redrive',
    heartbeatMs: heartbeat!,
    connectTimeoutMs: connectTimeout!,
    ackWaitMs: ackWait!,
    policy: definedPolicy,
    name: name ?? 'redrive',
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

/** Addresses and credentials apart: those of the first URL that has some count for all. */
function serversOf(given: unknown) {
  const list: unknown[] = [given].flat();
  const urls = list.map((one) => (typeof one === 'string' ? URL.parse(one) : null));
  if (urls.length === 0 || urls.length > MAX_SERVERS) return undefined;
  const servers: string[] = [];
  let isTls = false;
  for (const url of urls) {
    if (!url || !/^(nats|tls):$/.test(url.protocol) || url.hostname === '') return undefined;
    if (!/^\/?$/.test(url.pathname)) return undefined;
    isTls ||= url.protocol === 'tls:';
    servers.push(`${url.hostname}:${url.port === '' ? 4222 : url.port}`);
  }
  const { username = '', password = '' } = urls.find((url) => url?.username) ?? {};
  try {
    const [name, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
    // A user without a password is a token.
    const isToken = name !== '' && secret === '';
    return {
      servers,
      isTls,
      token: isToken ? name : undefined,
      user: isToken || name === '' ? undefined : name,
      password: isToken || name === '' ? undefined : secret,
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

const NO_NAME = 'is not a name of 1 to 32 letters, digits, dashes and underscores.';

function isName(text: unknown): boolean {
  return typeof text === 'string' && /^[\w-]{1,32}$/.test(text);
}

function checkStreams(
  streams: readonly StreamSpec[],
  fault: (path: string, message: string) => void,
): void {
  streams.forEach(({ name, subjects, replicas = 1 }, i) => {
    if (!isName(name)) fault(`streams.${i}.name`, NO_NAME);
    const isList = Array.isArray(subjects) && subjects.length > 0;
    if (!isList) fault(`streams.${i}.subjects`, 'is not a list of subjects.');
    const isCount = Number.isInteger(replicas) && replicas >= 1 && replicas <= 5;
    if (!isCount) fault(`streams.${i}.replicas`, 'is not a whole number from 1 to 5.');
  });
}

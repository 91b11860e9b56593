/** What a connection to Kafka can be told. The broker and the delay queue share it. */
import type { ConnectionOptions, SASLOptions } from '@platformatic/kafka';
import { type Clock, type Duration, type Fault, type Random } from 'redrive';
import { defaultOf, type Fields, readFields } from 'redrive/internal';
import { type Host, hostOf, type Log } from '../../../host.ts';

export interface KafkaConnection {
  /** `host:9092`, one or several, or one text with commas between. Any of them leads to the whole cluster. */
  brokers: string | readonly string[];
  /** What the brokers call this client (`redrive`). */
  clientId?: string;
  /** True, or the options of `node:tls`. */
  tls?: boolean | ConnectionOptions['tls'];
  /** As of the client library: `mechanism`, `username`, `password`, `token`. */
  sasl?: SASLOptions;
  /** How long a connection may take (10 s). */
  connectTimeout?: Duration;
  /** How long an answer of a broker may take (30 s). */
  requestTimeout?: Duration;
  /** How long a group waits for a sign of life of a consumer before others get its partitions (10 s). */
  sessionTimeout?: Duration;
  log?: Log;
  clock?: Clock;
  random?: Random;
}

export interface ConnectionSettings {
  brokers: readonly { host: string; port: number }[];
  clientId: string;
  connection: ConnectionOptions;
  sessionTimeoutMs: number;
  host: Host;
}

const fields = {
  connectTimeout: { kind: 'duration', min: 1, default: 10_000 },
  requestTimeout: { kind: 'duration', min: 1000, default: 30_000 },
  sessionTimeout: { kind: 'duration', min: 1000, default: 10_000 },
} as const satisfies Fields;

const others = ['brokers', 'clientId', 'tls', 'sasl', 'log', 'clock', 'random'];
const MAX_BROKERS = 100;
const DEFAULT_PORT = 9092;

/** Reads what both have; `known` are the other options of the caller. */
export function readConnection(
  given: KafkaConnection,
  known: readonly string[],
  faults: Fault[],
): ConnectionSettings {
  const { brokers, clientId, tls, sasl, log, clock, random, ...rest } = Object(
    given,
  ) as KafkaConnection;
  const own = Object.entries(rest).filter(([name]) => !known.includes(name));
  const names = [...Object.keys(fields), ...others, ...known];
  const values = readFields(Object.fromEntries(own), fields, names, '', faults);
  for (const [key, field] of Object.entries(fields)) values[key] ??= defaultOf(field);
  const { connectTimeout, requestTimeout, sessionTimeout } = values as Record<string, number>;
  const addresses = addressesOf(brokers);
  if (!addresses) fault('brokers', 'is not host:port, or a list of them.');
  if (clientId !== undefined && (typeof clientId !== 'string' || clientId === '')) {
    fault('clientId', 'is not a text.');
  }
  if (tls !== undefined && typeof tls !== 'boolean' && Object(tls) !== tls) {
    fault('tls', 'is neither true nor an object of TLS options.');
  }
  if (
    sasl !== undefined &&
    typeof (Object(sasl) as { mechanism?: unknown }).mechanism !== 'string'
  ) {
    fault('sasl', 'is not an object with a mechanism.');
  }
  const tlsOptions = tls === true ? {} : tls || undefined;
  return {
    brokers: addresses ?? [],
    clientId: clientId ?? 'redrive',
    connection: {
      connectTimeout: connectTimeout!,
      requestTimeout: requestTimeout!,
      ...(tlsOptions ? { tls: tlsOptions, tlsServerName: true } : {}),
      ...(sasl ? { sasl } : {}),
    },
    sessionTimeoutMs: sessionTimeout!,
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

function addressesOf(given: unknown): { host: string; port: number }[] | undefined {
  const texts = [given].flat().flatMap((one) => (typeof one === 'string' ? one.split(',') : ['']));
  if (texts.length === 0 || texts.length > MAX_BROKERS) return undefined;
  const addresses = texts.map((text) => {
    const url = /^[^\s/]+$/.test(text.trim()) ? URL.parse(`kafka://${text.trim()}`) : null;
    if (!url?.hostname || url.username !== '') return undefined;
    // An address of IPv6 stands in brackets.
    const host = url.hostname.replace(/^\[|\]$/g, '');
    return { host, port: url.port === '' ? DEFAULT_PORT : Number(url.port) };
  });
  return addresses.every((one) => one !== undefined) ? addresses : undefined;
}

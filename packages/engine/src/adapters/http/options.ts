/** What an HTTP delivery can be told, checked once, every fault at once. */
import { ConfigError, type Duration, type Fault } from 'redrive';
import { checkObject, defaultOf, type Fields, readFields } from 'redrive/internal';
import { type Allowed, readAllow } from './allow.ts';
import type { Tls } from './connections.ts';
import type { Resolve } from './lookup.ts';
import { secretFault, type Secrets } from './secrets.ts';

export interface HttpOptions {
  /**
   * What may be connected to besides public addresses: `'loopback'`, `'private'`, ranges (`'10.1.0.0/16'`), hosts
   * (`'billing.internal'`, `'*.internal'`). Link-local addresses are never allowed.
   */
  allow?: readonly string[];
  /** False: public addresses too only where `allow` names the host, a range, or `'public'`. True unless given. */
  public?: boolean;
  /** Credentials by the names that tasks give. */
  secrets?: Secrets;
  /** Deliveries on the wire at once, to one origin (128) and in all (1024). */
  maxConnectionsPerOrigin?: number;
  maxConnections?: number;
  /** How long an unused connection is kept (4 s: shorter than most servers do). */
  idle?: Duration;
  /** An authority of your own, a certificate to show. */
  tls?: Tls;
  /** Finds the addresses of a host, instead of the system. What it finds is checked all the same. */
  resolve?: Resolve;
}

export interface HttpSettings {
  allowed: Allowed;
  secrets: Secrets | undefined;
  maxConnectionsPerOrigin: number;
  maxConnections: number;
  idleMs: number;
  tls: Tls;
  resolve: Resolve | undefined;
}

/** Read by hand, and known here so that a misspelt one is told of. */
const others = ['allow', 'secrets', 'tls', 'resolve'];

export function readOptions(options: HttpOptions = {}): HttpSettings {
  checkObject('The HTTP delivery', options);
  const faults: Fault[] = [];
  const { allow, secrets, tls = {}, resolve, ...rest } = options;
  const values = readFields(rest, fields, [...Object.keys(fields), ...others], '', faults);
  for (const [name, field] of Object.entries(fields)) values[name] ??= defaultOf(field);
  const isPublic = values['public'] !== false;
  const allowed = readAllow(allow, isPublic, faults);
  checkSecrets(secrets, faults);
  if (Object(tls) !== tls) addFault('tls', 'is not an object of ca, cert, key and passphrase.');
  if (resolve !== undefined && typeof resolve !== 'function') {
    addFault('resolve', 'is not a function from a host to a promise of its addresses.');
  }
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The HTTP delivery has faults:', faults);
  }
  const { maxConnectionsPerOrigin, maxConnections, idle } = values as Record<string, number>;
  return {
    allowed,
    secrets,
    maxConnectionsPerOrigin: maxConnectionsPerOrigin!,
    maxConnections: maxConnections!,
    idleMs: idle!,
    tls: { ...tls },
    resolve,
  };

  function addFault(path: string, message: string): void {
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

const fields = {
  public: { kind: 'boolean', default: true },
  maxConnectionsPerOrigin: { kind: 'integer', min: 1, max: 65_536, default: 128 },
  maxConnections: { kind: 'integer', min: 1, max: 65_536, default: 1024 },
  idle: { kind: 'duration', min: 1, default: 4000 },
} as const satisfies Fields;

/** A function's secrets are checked as they come. */
function checkSecrets(secrets: unknown, faults: Fault[]): void {
  if (secrets === undefined || typeof secrets === 'function') return;
  if (Object(secrets) !== secrets) {
    const message = 'is not an object of secrets by name, nor a function that finds them.';
    faults.push({ path: 'secrets', code: 'INVALID_VALUE', message });
    return;
  }
  for (const [name, secret] of Object.entries(secrets as object)) {
    const message = secretFault(secret);
    if (message) faults.push({ path: `secrets.${name}`, code: 'INVALID_VALUE', message });
  }
}

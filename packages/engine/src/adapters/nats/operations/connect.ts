import type { NatsConnection } from '@nats-io/transport-node';
import { EngineError } from '../../../errors.ts';
import { connectOnce } from '../connect.ts';
import { type NatsOptions, readOptions } from '../options.ts';
import { whyNoConnection } from '../session.ts';
import { type OperationOptions, underCategory } from './operation.ts';
import { AuthorizationError } from '../library.ts';

export interface ConnectOptions
  extends
    OperationOptions,
    Pick<NatsOptions, 'token' | 'credsFile' | 'tls' | 'heartbeat' | 'name'> {
  /** Whether the client connects again by itself when the connection is lost (true). */
  reconnect?: boolean;
}

const TIMEOUT_MS = 10_000;

/**
 * A connection under `NATS_CONNECT`. It is yours to close.
 *
 * @example const connection = await connectWithRetry('nats://localhost:4222');
 */
export async function connectWithRetry(
  url: string | readonly string[],
  options: ConnectOptions = {},
): Promise<NatsConnection> {
  const { token, credsFile, tls, heartbeat, name, reconnect = true, ...rest } = options;
  const { timeoutMs = TIMEOUT_MS } = rest;
  const given = { url, token, credsFile, tls, heartbeat, name, connectTimeout: timeoutMs };
  // What was left out takes its default, and is not a fault.
  const written = Object.entries(given).filter(([, value]) => value !== undefined);
  const settings = readOptions(Object.fromEntries(written) as unknown as NatsOptions);
  return underCategory('NATS_CONNECT', 'connect', { ...rest, timeoutMs }, async () => {
    try {
      return await connectOnce(settings, [], reconnect);
    } catch (error) {
      const why = whyNoConnection(error, settings);
      const isPermanent = error instanceof AuthorizationError || isUnreadable(error);
      throw new EngineError(isPermanent ? 'NATS_REFUSED' : 'NATS_UNAVAILABLE', why, {
        cause: error,
      });
    }
  });
}

/** The file of credentials. */
function isUnreadable(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown };
  return code === 'ENOENT' || code === 'EACCES';
}

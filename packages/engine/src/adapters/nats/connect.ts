import { readFile } from 'node:fs/promises';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import type { NatsSettings } from './options.ts';

/**
 * A connection that ends when it is lost. The client's own reconnecting would keep messages in memory, and send them when
 * their time is over. `discovered`: other servers of the cluster.
 */
export async function connectOnce(
  settings: NatsSettings,
  discovered: readonly string[] = [],
): Promise<NatsConnection> {
  const { servers, user, password, token, credsFile, tls, name } = settings;
  return connect({
    servers: [...new Set([...servers, ...discovered])],
    ...(user === undefined ? {} : { user, pass: password ?? '' }),
    ...(token === undefined ? {} : { token }),
    ...(credsFile === undefined
      ? {}
      : { authenticator: credsAuthenticator(await readFile(credsFile)) }),
    ...(tls ? { tls } : {}),
    name,
    reconnect: false,
    timeout: settings.connectTimeoutMs,
    pingInterval: settings.heartbeatMs,
    maxPingOut: 2,
    noAsyncTraces: true,
  });
}

const MAX_DISCOVERED = 100;

/** The other servers of the cluster, as this one tells. */
export function discoveredBy(connection: NatsConnection): readonly string[] {
  return connection.info?.connect_urls?.slice(0, MAX_DISCOVERED) ?? [];
}

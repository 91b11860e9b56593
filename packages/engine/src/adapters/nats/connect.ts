import { readFile } from 'node:fs/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import type { NatsSettings } from './options.ts';
import { connect, credsAuthenticator } from './library.ts';

/**
 * A connection that ends when it is lost, unless `reconnect` is set: the client's own reconnecting would keep messages in
 * memory, and send them when their time is over. `discovered`: other servers of the cluster.
 */
export async function connectOnce(
  settings: NatsSettings,
  discovered: readonly string[] = [],
  reconnect = false,
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
    ...(reconnect ? keepsTrying : { reconnect }),
    timeout: settings.connectTimeoutMs,
    pingInterval: settings.heartbeatMs,
    maxPingOut: 2,
    noAsyncTraces: true,
  });
}

/** The client would give a server up after twenty seconds, and for good. */
const keepsTrying = { reconnect: true, maxReconnectAttempts: -1, reconnectTimeWait: 500 };

const MAX_DISCOVERED = 100;

/** The other servers of the cluster, as this one tells. */
export function discoveredBy(connection: NatsConnection): readonly string[] {
  return connection.info?.connect_urls?.slice(0, MAX_DISCOVERED) ?? [];
}

import type { PostgresOptions, PostgresPool } from '@redrive/engine/postgres';
import { connectionsOf, Database, readOptions } from '@redrive/engine/internal/postgres';
import type { NotificationRepository } from '../../ports/repository.ts';
import { Reader, type UnreadableOptions } from '../../repository/unreadable.ts';
import { PostgresNotifications } from './repository.ts';
import { namesIn, prepare } from './schema.ts';

export type PostgresNotificationsOptions = Pick<
  PostgresOptions,
  | 'url'
  | 'pool'
  | 'schema'
  | 'migrate'
  | 'maxConnections'
  | 'statementTimeoutMs'
  | 'connectTimeoutMs'
  | 'lockTimeoutMs'
  | 'random'
> &
  UnreadableOptions;

/**
 * Records in PostgreSQL 13 or later, which any number of processes may share. A URL, a pool of `pg`, or options. The
 * tables `notifications`, `notification_attempts` and `notification_devices` are created by `open`.
 */
export function postgresNotifications(
  given: string | PostgresPool | PostgresNotificationsOptions,
): NotificationRepository {
  const { onUnreadable, ...options } = optionsOf(given);
  const { source, maxConnections, limits, schema, migrate, random } = readOptions(options);
  const connections = connectionsOf(source, limits, maxConnections);
  const database = new Database(connections, limits, random);
  const names = namesIn(schema);
  return new PostgresNotifications({
    database,
    names,
    reader: new Reader(onUnreadable ? { onUnreadable } : {}),
    async open() {
      connections.begin();
      await prepare(database, names, migrate === 'auto');
    },
    close: () => connections.end(),
  });
}

function optionsOf(
  given: string | PostgresPool | PostgresNotificationsOptions,
): PostgresNotificationsOptions {
  if (typeof given === 'string') return { url: given };
  return 'connect' in given ? { pool: given } : given;
}

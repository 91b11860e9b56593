import { randomUUID } from 'node:crypto';
import type { TransactionalStore } from '../../ports/store.ts';
import { connectionsOf } from './connection/connections.ts';
import { Database } from './connection/database.ts';
import { Listener } from './connection/listen.ts';
import { isCurrent, migrate, missing, type MigrationParts } from './schema/migrate.ts';
import { namesIn } from './names.ts';
import { Notifier } from './connection/notify.ts';
import { type PostgresOptions, type PostgresSettings, readOptions } from './connection/options.ts';
import { keyNamesIn, prepareKeys } from './idempotency/schema.ts';
import { keysOn } from './idempotency/store.ts';
import { makeStickyTable } from './sticky.ts';
import { PostgresStore } from './store.ts';

export { type Advice, adviceOn } from './schema/advice.ts';
export type { PostgresClient, PostgresPool } from './connection/database.ts';
export { examine } from './schema/examine.ts';
export {
  type PostgresIdempotency,
  postgresIdempotency,
  type PostgresIdempotencyOptions,
} from './idempotency/store.ts';
export type { Findings, Holder, IndexFinding, TableFinding } from './schema/findings.ts';
export type { PostgresOptions } from './connection/options.ts';
export { postgresSticky, type PostgresStickyOptions } from './sticky.ts';

/**
 * A store in PostgreSQL 13 or later, which any number of processes may share. A URL, or options.
 *
 * It keeps nothing in a session, so that PgBouncer may stand between, in any mode; for notifications give it then a
 * `listenUrl` that leads around it.
 */
export function postgres(options: string | PostgresOptions): TransactionalStore {
  const parts = assemble(options);
  const { database, connections, names, settings, random } = parts;
  const instance = randomUUID();
  const notifier = new Notifier(database, names.channel, instance);
  const listener = settings.listen
    ? new Listener({
        connections,
        channel: names.channel,
        instance,
        timeoutMs: settings.limits.statementTimeoutMs,
        checkEveryMs: settings.listenCheckMs,
        random,
        send: (channel) => notifier.send(channel, ''),
        hear: (hint) => notifier.tellHere(hint),
        report: settings.onFault,
      })
    : undefined;
  const prepare = async () => {
    if (settings.migrate === 'auto') await migrate(parts);
    else if (!(await isCurrent(parts))) throw missing(names);
  };
  const keys = keysOn(database, settings, {
    begin: () => connections.begin(),
    end: async () => {},
  });
  return new PostgresStore({ database, connections, names, notifier, listener, prepare, keys });
}

/** Creates or updates the tables and ends: for a role that may, so that the programs themselves need not. */
export async function migratePostgres(options: string | PostgresOptions): Promise<void> {
  const parts = assemble(options);
  parts.connections.begin();
  try {
    await migrate(parts);
    await makeStickyTable(parts.database, parts.names.schema);
    await prepareKeys(parts.database, keyNamesIn(parts.names.schema), true);
  } finally {
    await parts.connections.end();
  }
}

interface Parts extends MigrationParts {
  settings: PostgresSettings;
}

function assemble(options: string | PostgresOptions): Parts {
  const settings = readOptions(options);
  const { source, listenUrl, maxConnections, limits, schema, migrationTimeoutMs, random } =
    settings;
  const connections = connectionsOf(source, limits, maxConnections, listenUrl);
  return {
    settings,
    connections,
    database: new Database(connections, limits, random),
    names: namesIn(schema),
    patienceMs: migrationTimeoutMs,
    random,
  };
}

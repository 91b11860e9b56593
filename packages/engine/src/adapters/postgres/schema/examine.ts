import { connectionsOf } from '../connection/connections.ts';
import { type Session, within } from '../connection/database.ts';
import { faultOf } from '../connection/faults.ts';
import { type Findings, type Holder, settingNames } from './findings.ts';
import { type Names, namesIn } from '../names.ts';
import { type PostgresOptions, type PostgresSettings, readOptions } from '../connection/options.ts';
import { isTrue, numberOf, type Row } from '../rows.ts';
import { schemaVersion } from './schema.ts';
import { msOf } from '../times.ts';

/** Questions about the clock: the fastest answer says most. */
const CLOCK_TRIES = 5;
const MAX_HOLDERS = 5;
const LARGE_INDEX_BYTES = 1024 * 1024;

/**
 * Looks at the server and at the tables of Redrive, and changes nothing. `adviceOn` says what to do about it. It takes the
 * options of the store, and the way that its work goes: through the pooler, if `url` leads to one.
 */
export async function examine(options: string | PostgresOptions): Promise<Findings> {
  const settings = readOptions(options);
  const connection = await connectionsOf(settings.source, settings.limits, 1).dedicated();
  const { client } = connection;
  const ask = async (text: string, values?: unknown[]): Promise<Row[]> => {
    const query = { text, ...(values ? { values } : {}), rowMode: 'array' };
    const asked = client.query(query) as unknown as Promise<{ rows?: Row[] }>;
    return (await within(settings.limits.statementTimeoutMs, asked)).rows ?? [];
  };
  try {
    // Before anything is set for the rest of the work.
    const found = await readSettings({ query: ask });
    const clock = await readClock({ query: ask });
    await ask(beginText(settings));
    const pooler = await readPooler({ query: ask }, client, settings);
    const rest = await readDatabase({ query: ask }, namesIn(settings.schema));
    await ask('ROLLBACK');
    return { ...rest, clock, pooler, settings: found };
  } catch (error) {
    throw faultOf(error);
  } finally {
    await connection.end();
  }
}

function beginText({ limits }: PostgresSettings): string {
  return `BEGIN READ ONLY; SET LOCAL statement_timeout = ${limits.statementTimeoutMs};
    SET LOCAL lock_timeout = ${limits.lockTimeoutMs}`;
}

async function readSettings(session: Session): Promise<Findings['settings']> {
  const columns = settingNames.map((name) => `current_setting('${name}')`);
  const [row] = await session.query(`SELECT ${columns.join(', ')}`);
  const values = settingNames.map((name, i) => [name, row![i] as string]);
  return Object.fromEntries(values) as Findings['settings'];
}

async function readClock(session: Session): Promise<Findings['clock']> {
  let best = { aheadMs: 0, uncertaintyMs: Infinity };
  for (let i = 0; i < CLOCK_TRIES; i++) {
    const startMs = Date.now();
    const startedAt = performance.now();
    const [row] = await session.query(`SELECT ${msOf('clock_timestamp()')}`);
    const halfwayMs = (performance.now() - startedAt) / 2;
    // It looked at its clock somewhere between, and ours knows whole ms only.
    const uncertaintyMs = halfwayMs + 1;
    if (uncertaintyMs >= best.uncertaintyMs) continue;
    best = { aheadMs: numberOf(row![0]) - (startMs + halfwayMs), uncertaintyMs };
  }
  return best;
}

/** A server tells whoever connects the number of its process. A pooler has told another. */
async function readPooler(
  session: Session,
  client: object,
  { listenUrl }: PostgresSettings,
): Promise<Findings['pooler']> {
  const hasWayAround = listenUrl !== undefined;
  const told = 'processID' in client ? client.processID : undefined;
  if (typeof told !== 'number') return { hasWayAround };
  const [row] = await session.query('SELECT pg_backend_pid()');
  return { hasWayAround, isBetween: numberOf(row![0]) !== told };
}

async function readDatabase(
  session: Session,
  names: Names,
): Promise<Omit<Findings, 'clock' | 'pooler' | 'settings'>> {
  return {
    ...(await readServer(session)),
    schema: await readSchema(session, names),
    tables: await readTables(session, names),
    indexes: await readIndexes(session, names),
    holders: await readHolders(session),
  };
}

async function readServer(session: Session) {
  const [row] = await session.query(
    `SELECT current_setting('server_version'), current_setting('server_version_num'),
       current_setting('server_encoding'), pg_is_in_recovery(), pg_has_role('pg_read_all_stats', 'MEMBER'),
       (SELECT sum(numbackends) FROM pg_stat_database), current_setting('max_connections'),
       current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true), '0')::int`,
  );
  const [version, number, encoding, isStandby, seesSessions, used, max, reserved] = row!;
  return {
    server: {
      version: version as string,
      number: numberOf(number),
      encoding: encoding as string,
      isStandby: isTrue(isStandby),
    },
    seesSessions: isTrue(seesSessions),
    connections: { used: numberOf(used), max: numberOf(max), reserved: numberOf(reserved) },
  };
}

async function readSchema(session: Session, names: Names): Promise<Findings['schema']> {
  const schema = { name: names.schema, known: schemaVersion };
  const [row] = await session.query('SELECT to_regclass($1) IS NOT NULL', [names.version]);
  if (!isTrue(row![0])) return schema;
  const [found] = await session.query(`SELECT version, oldest FROM ${names.version}`);
  return { ...schema, version: numberOf(found?.[0] ?? 0), oldest: numberOf(found?.[1] ?? 0) };
}

async function readTables(session: Session, names: Names): Promise<Findings['tables']> {
  const ago = (time: string) => msOf(`statement_timestamp() - ${time}`);
  const rows = await session.query(
    `SELECT table_.relname::text, stats.n_live_tup, stats.n_dead_tup, pg_table_size(table_.oid), pg_indexes_size(table_.oid),
       ${ago('stats.last_autovacuum')}, ${ago('greatest(stats.last_vacuum, stats.last_autovacuum)')}
     FROM ${ourTables} LEFT JOIN pg_stat_all_tables AS stats ON stats.relid = table_.oid ORDER BY table_.relname`,
    [names.schema],
  );
  return rows.map(([name, live, dead, tableBytes, indexBytes, autovacuumed, vacuumed]) => ({
    name: name as string,
    rows: numberOf(live),
    deadRows: numberOf(dead),
    tableBytes: numberOf(tableBytes),
    indexBytes: numberOf(indexBytes),
    ...(autovacuumed === null ? {} : { autovacuumedAgoMs: Math.round(numberOf(autovacuumed)) }),
    ...(vacuumed === null ? {} : { vacuumedAgoMs: Math.round(numberOf(vacuumed)) }),
  }));
}

/**
 * An entry needs its columns in steps of 8 bytes, 12 bytes for itself, and a tenth of every page is left free. Where many
 * entries are equal it needs less, so that this finds too little bloat rather than too much.
 */
async function readIndexes(session: Session, names: Names): Promise<Findings['indexes']> {
  const rows = await session.query(
    `SELECT index.relname::text, table_.relname::text, pg_relation_size(index.oid),
       CASE WHEN index.reltuples >= 0 THEN index.reltuples * (12 + 8 * ceil(sum(coalesce(width.avg_width, 8)) / 8.0)) / 0.9 END
     FROM ${ourTables}
     JOIN pg_index AS keys ON keys.indrelid = table_.oid
     JOIN pg_class AS index ON index.oid = keys.indexrelid
     JOIN pg_am AS method ON method.oid = index.relam AND method.amname = 'btree'
     CROSS JOIN LATERAL unnest(keys.indkey::int2[]) AS key(number)
     LEFT JOIN pg_attribute AS attribute ON attribute.attrelid = table_.oid AND attribute.attnum = key.number
     LEFT JOIN pg_stats AS width ON width.schemaname = place.nspname AND width.tablename = table_.relname
       AND width.attname = attribute.attname
     GROUP BY index.oid, index.relname, index.reltuples, table_.relname
     HAVING pg_relation_size(index.oid) > ${LARGE_INDEX_BYTES} ORDER BY 3 DESC`,
    [names.schema],
  );
  return rows.map(([name, table, bytes, needed]) => ({
    name: name as string,
    table: table as string,
    bytes: numberOf(bytes),
    ...(needed === null ? {} : { neededBytes: Math.round(numberOf(needed)) }),
  }));
}

const ourTables = `pg_class AS table_ JOIN pg_namespace AS place ON place.oid = table_.relnamespace AND place.nspname = $1
  AND table_.relkind = 'r' AND (table_.relname = 'retry_queue' OR table_.relname LIKE 'redrive\\_%')
  AND table_.relname <> 'redrive_schema'`;

/** Vacuum's own workers do not hold it up, and sessions in other databases only that of what all of them share. */
async function readHolders(session: Session): Promise<Holder[]> {
  const rows = await session.query(
    `SELECT * FROM (
       SELECT 'session', application_name::text, pid, state, ${msOf('statement_timestamp() - xact_start')},
         greatest(age(backend_xmin), age(backend_xid)) AS transactions
       FROM pg_stat_activity
       WHERE pid <> pg_backend_pid() AND (datname = current_database() OR datname IS NULL)
         AND backend_type <> 'autovacuum worker'
       UNION ALL SELECT 'prepared transaction', gid, NULL, NULL, ${msOf('statement_timestamp() - prepared')}, age(transaction)
       FROM pg_prepared_xacts WHERE database = current_database()
       UNION ALL SELECT 'replication slot', slot_name::text, active_pid, NULL, NULL, age(xmin) FROM pg_replication_slots
     ) AS holder WHERE transactions IS NOT NULL ORDER BY transactions DESC LIMIT ${MAX_HOLDERS}`,
  );
  return rows.map(([kind, name, pid, state, ageMs, transactions]) => ({
    kind: kind as Holder['kind'],
    name: name as string,
    ...(pid === null ? {} : { pid: numberOf(pid) }),
    ...(state === null ? {} : { state: state as string }),
    ...(ageMs === null ? {} : { ageMs: Math.round(numberOf(ageMs)) }),
    transactions: numberOf(transactions),
  }));
}

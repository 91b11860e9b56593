import { EngineError, isEngineError } from '@redrive/engine';
import { type Database, numberOf, quoteName } from '@redrive/engine/internal/postgres';

/** The tables have a version of their own: they are used without an engine too. */
const VERSION = 1;

/** The tables in the schema of one's choice, quoted. */
export interface Names {
  schema: string;
  notifications: string;
  attempts: string;
  devices: string;
  version: string;
}

export function namesIn(schema: string): Names {
  const table = (name: string) => `${quoteName(schema)}.${name}`;
  return {
    schema,
    notifications: table('notifications'),
    attempts: table('notification_attempts'),
    devices: table('notification_devices'),
    version: table('redrive_notifications_schema'),
  };
}

/** Creates the tables where they are missing and that is allowed, and makes sure that this program may use them. */
export async function prepare(database: Database, names: Names, mayCreate: boolean): Promise<void> {
  if (await isThere(database, names)) return;
  if (!mayCreate) throw missing(names);
  await database.transaction(async (session) => {
    // One process creates them, the others find them.
    await session.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, [names.version]);
    const [found] = await session.query(
      `SELECT to_regclass($1)::text, to_regnamespace($2)::text,
         coalesce(to_regclass($3), to_regclass($4), to_regclass($5))::text`,
      [names.version, quoteName(names.schema), names.notifications, names.attempts, names.devices],
    );
    const [version, schema, foreign] = found ?? [];
    if (version != null) return;
    if (foreign != null) throw notOurs(foreign as string);
    // Even IF NOT EXISTS needs the right to create one.
    if (schema == null) await session.query(`CREATE SCHEMA ${quoteName(names.schema)}`);
    await session.query(create(names));
  });
  await isThere(database, names);
}

async function isThere(database: Database, { version }: Names): Promise<boolean> {
  try {
    const [row] = await database.queryAgain(`SELECT version, oldest FROM ${version}`);
    if (row && numberOf(row[1]) > VERSION) {
      throw new EngineError(
        'SCHEMA_TOO_NEW',
        `The tables of notifications have schema ${numberOf(row[0])}, which this Redrive does not know: it knows ${VERSION}. Update this program.`,
      );
    }
    return row !== undefined;
  } catch (error) {
    if (isEngineError(error) && error.code === 'SCHEMA_MISSING') return false;
    throw error;
  }
}

/**
 * The record is the document, as `json`: `jsonb` refuses the escape of NUL. The columns beside it are what it is found
 * by. Identifiers are compared by their bytes. Every write moves a row, so pages keep room for that.
 */
function create({ notifications, attempts, devices, version }: Names): string {
  return `
    CREATE TABLE ${notifications} (
      id text COLLATE "C" PRIMARY KEY,
      version bigint NOT NULL,
      idempotency_key text COLLATE "C" NOT NULL,
      status text NOT NULL,
      priority text NOT NULL,
      user_id text COLLATE "C" NOT NULL,
      wake_at timestamptz,
      created_at timestamptz NOT NULL,
      updated_at timestamptz NOT NULL,
      document json NOT NULL
    ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
    CREATE UNIQUE INDEX notifications_key ON ${notifications} (idempotency_key);
    CREATE INDEX notifications_wake ON ${notifications} (wake_at) WHERE wake_at IS NOT NULL;
    CREATE INDEX notifications_over ON ${notifications} (updated_at) WHERE wake_at IS NULL;
    CREATE INDEX notifications_created ON ${notifications} (created_at, id);
    CREATE INDEX notifications_status ON ${notifications} (status, created_at, id);
    CREATE INDEX notifications_user ON ${notifications} (user_id, created_at, id);
    CREATE TABLE ${attempts} (
      notification_id text COLLATE "C",
      device_id text COLLATE "C",
      attempt_number integer,
      document json NOT NULL,
      PRIMARY KEY (notification_id, device_id, attempt_number)
    );
    CREATE TABLE ${devices} (
      device_id text COLLATE "C" PRIMARY KEY,
      since timestamptz NOT NULL,
      reason text NOT NULL
    );
    CREATE TABLE ${version} (version integer NOT NULL, oldest integer NOT NULL);
    INSERT INTO ${version} VALUES (${VERSION}, ${VERSION});`;
}

function missing({ schema }: Names): EngineError {
  return new EngineError(
    'SCHEMA_MISSING',
    `The schema ${quoteName(schema)} has no tables of notifications. Open the repository once with a role that may create tables and with migrate: 'auto'.`,
  );
}

function notOurs(table: string): EngineError {
  return new EngineError(
    'TABLE_NOT_OURS',
    `There is a table ${table} that Redrive did not make. Give notifications another schema, or rename that table.`,
  );
}

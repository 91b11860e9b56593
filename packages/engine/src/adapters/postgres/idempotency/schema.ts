import { EngineError, isEngineError } from '../../../errors.ts';
import type { Database, Session } from '../connection/database.ts';
import { quoteName, quoteText } from '../names.ts';
import { numberOf, type Row } from '../rows.ts';

/** The table of keys has a version of its own: it is used without an engine too. */
const VERSION = 1;

export interface KeyNames {
  schema: string;
  keys: string;
  version: string;
}

export function keyNamesIn(schema: string): KeyNames {
  const table = (name: string) => `${quoteName(schema)}.${name}`;
  return {
    schema,
    keys: table('redrive_idempotency'),
    version: table('redrive_idempotency_schema'),
  };
}

/** Creates the table where it is missing and that is allowed, and makes sure that this program may use it. */
export async function prepareKeys(
  database: Database,
  names: KeyNames,
  mayCreate: boolean,
): Promise<void> {
  if (await isThere(database, names)) return;
  if (!mayCreate) throw missing(names);
  await database.transaction(async (session) => {
    // One process creates it, the others find it.
    await session.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, [names.version]);
    const [found] = await session.query(`SELECT to_regclass($1)::text, to_regnamespace($2)::text`, [
      names.version,
      quoteName(names.schema),
    ]);
    if (found?.[0] != null) return;
    // Even IF NOT EXISTS needs the right to create one.
    if (found?.[1] == null) {
      await session.query(`CREATE SCHEMA IF NOT EXISTS ${quoteName(names.schema)}`);
    }
    await session.query(create(names));
  });
  await isThere(database, names);
}

/** The same within a transaction, which a missing table must not break. */
export async function isInPlace(session: Session, { version }: KeyNames): Promise<boolean> {
  const [found] = await session.query(`SELECT to_regclass($1)::text`, [version]);
  if (found?.[0] == null) return false;
  const [row] = await session.query(`SELECT version::text, oldest::text FROM ${version}`);
  return isKnown(row);
}

async function isThere(database: Database, { version }: KeyNames): Promise<boolean> {
  try {
    const [row] = await database.queryAgain(`SELECT version, oldest FROM ${version}`);
    return isKnown(row);
  } catch (error) {
    if (isEngineError(error) && error.code === 'SCHEMA_MISSING') return false;
    throw error;
  }
}

function isKnown(row: Row | undefined): boolean {
  if (row && numberOf(row[1]) > VERSION) {
    throw new EngineError(
      'SCHEMA_TOO_NEW',
      `The table of idempotency keys has schema ${numberOf(row[0])}, which this Redrive does not know: it knows ${VERSION}. Update this program.`,
    );
  }
  return row !== undefined;
}

/** Leases are renewed in place, so pages keep room for that. Keys are compared by their bytes. */
function create({ keys, version }: KeyNames): string {
  return `
    CREATE TABLE ${keys} (
      key text COLLATE "C" NOT NULL PRIMARY KEY,
      owner text NOT NULL,
      fingerprint text NOT NULL,
      fencing_token bigint NOT NULL,
      claims int NOT NULL,
      lease_end timestamptz NOT NULL,
      outcome text,
      result text,
      metadata text,
      recorded_at timestamptz,
      expires_at timestamptz
    ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
    CREATE INDEX redrive_idempotency_expiry ON ${keys} (expires_at) WHERE expires_at IS NOT NULL;
    COMMENT ON TABLE ${keys} IS ${quoteText('Idempotency keys of Redrive')};
    CREATE TABLE ${version} (version int NOT NULL, oldest int NOT NULL);
    INSERT INTO ${version} VALUES (${VERSION}, ${VERSION});`;
}

function missing({ schema }: KeyNames): EngineError {
  return new EngineError(
    'SCHEMA_MISSING',
    `The schema ${quoteName(schema)} has no table of idempotency keys, and migrate is 'check'. Use the store once with migrate 'auto' and a role that may create tables.`,
  );
}

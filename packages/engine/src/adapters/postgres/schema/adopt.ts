import { EngineError } from '../../../errors.ts';
import { itemOf } from '../../../model/item.ts';
import { few, Params, rowsOf } from '../batch.ts';
import type { Session } from '../connection/database.ts';
import { openItems } from '../inbox/inbox-text.ts';
import { failureJson } from '../inbox/item-rows.ts';
import { type Names, quoteName } from '../names.ts';
import { numberOf } from '../rows.ts';
import { filledColumns, ownColumns, queueSettings } from './schema.ts';

/** The document's columns, and the types that are taken for each. */
const documented: Readonly<Record<string, readonly string[]>> = {
  id: ['bigint'],
  message_id: ['uuid'],
  original_payload: ['bytea'],
  original_queue: ['character varying(255)'],
  error_reason: ['text'],
  retry_count: ['integer'],
  max_retries: ['integer'],
  next_retry_at: ['timestamp without time zone', 'timestamp with time zone'],
  created_at: ['timestamp without time zone', 'timestamp with time zone'],
  status: ['character varying(50)'],
};
const documentedStatuses = ['pending', 'retried', 'failed'];

/** `begun`: the document's table, of which an earlier run has not finished the adoption. */
type FoundTable = 'none' | 'document' | 'begun';

/** Looks at what is there under the name. Anything but the document's own table is left alone. */
export async function recognise(session: Session, names: Names): Promise<FoundTable> {
  const [table] = await session.query(
    `SELECT c.oid::text, c.relkind::text, to_regclass($2) IS NOT NULL
     FROM pg_class AS c WHERE c.oid = to_regclass($1)`,
    [names.queue, names.version],
  );
  if (!table) return 'none';
  const [oid, kind, isBegun] = table;
  if (isBegun === true) return 'begun';
  if (kind !== 'r') throw notOurs(names, 'it is not a plain table');
  const columns = await session.query(
    `SELECT attname::text, format_type(atttypid, atttypmod), atthasdef OR attidentity <> ''
     FROM pg_attribute WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped`,
    [oid],
  );
  const types = new Map(columns.map(([name, type]) => [name as string, type as string]));
  for (const [name, wanted] of Object.entries(documented)) {
    const type = types.get(name);
    if (type === undefined) throw notOurs(names, `it has no column ${name}`);
    if (!wanted.includes(type)) throw notOurs(names, `its column ${name} is ${type}`);
  }
  const stranger = [...types.keys()].find((name) => !(name in documented));
  if (stranger !== undefined) throw notOurs(names, `it has a column ${stranger}`);
  if (columns.find(([name]) => name === 'id')?.[2] !== true) {
    throw notOurs(names, 'its id has no default');
  }
  const [key] = await session.query(
    `SELECT FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
     WHERE i.indrelid = $1::oid AND i.indisunique AND i.indnkeyatts = 1 AND i.indpred IS NULL AND a.attname = 'id'`,
    [oid],
  );
  if (!key) throw notOurs(names, 'its id is not a key');
  const [other] = await session.query(
    `SELECT status FROM ${names.queue} WHERE NOT (status = ANY ($1)) LIMIT 1`,
    [documentedStatuses],
  );
  if (other) throw notOurs(names, `it has a status ${JSON.stringify(other[0])}`);
  return 'document';
}

/**
 * In a session whose zone is UTC: then times without a zone become times with one in place, without writing the table
 * anew. The document's index gives way to better ones.
 */
export function adopt(names: Names): string {
  const columns = ownColumns
    .trim()
    .split(',\n')
    .map((column) => `ADD COLUMN ${column.trim()}`);
  return `
    DROP INDEX IF EXISTS ${quoteName(names.schema)}.idx_retry_next_retry;
    ALTER TABLE ${names.queue} ALTER next_retry_at TYPE timestamptz, ALTER created_at TYPE timestamptz,
      ${columns.join(', ')};
    ALTER TABLE ${names.queue} SET (${queueSettings});`;
}

/** Rows at a time: short transactions, so that a table in use stays in use. */
const FILL_ROWS = 5000;

/** Gives the document's rows what the trigger gives new ones, and every failed one its item in the inbox. */
export async function fillAll(session: Session, names: Names): Promise<void> {
  for (let after = 0; ;) {
    await session.query('BEGIN');
    try {
      const last = await fillSome(session, names, after);
      await session.query('COMMIT');
      if (last === undefined) break;
      after = last;
    } catch (error) {
      await session.query('ROLLBACK');
      throw error;
    }
  }
}

/** The last id that was looked at; undefined: there are no more. */
async function fillSome(
  session: Session,
  names: Names,
  after: number,
): Promise<number | undefined> {
  const rows = await session.query(
    `WITH part AS MATERIALIZED (
       SELECT id FROM ${names.queue} WHERE id > $1::bigint ORDER BY id LIMIT ${FILL_ROWS}
     ),
     filled AS (
       UPDATE ${names.queue} AS q SET lane = kind || ':' || original_queue, attempt = retry_count + 1,
         visible_at = next_retry_at, status = coalesce(status, 'pending'),
         finished_at = CASE WHEN status <> 'pending' THEN now() END
       FROM (${few('part', 'id')}) AS t WHERE q.id = ANY (ARRAY[t.id]) AND q.lane IS NULL
       RETURNING q.id, q.message_id, q.original_queue, q.lane, q.status, q.error_reason, q.attempt, q.max_retries
     )
     SELECT (SELECT max(id) FROM part), filled.* FROM (SELECT) AS once LEFT JOIN filled ON status = 'failed'`,
    [after],
  );
  const failed = rows.filter((row) => row[1] !== null);
  if (failed.length > 0) {
    const params = new Params();
    const items = failed.map(([, , , , lane, , reason]) =>
      itemOf(
        'EXHAUSTED',
        { class: 'transient', ...(reason === null ? {} : { message: reason as string }) },
        lane as string,
      ),
    );
    const source = rowsOf(
      [
        { name: 'id', type: 'int8', values: failed.map((row) => numberOf(row[1])) },
        { name: 'message_id', type: 'uuid', values: failed.map((row) => row[2] as string) },
        { name: 'kind', type: 'text', values: failed.map(() => 'queue') },
        { name: 'address', type: 'text', values: failed.map((row) => row[3] as string) },
        { name: 'lane', type: 'text', values: failed.map((row) => row[4] as string) },
        { name: 'attempt', type: 'int4', values: failed.map((row) => numberOf(row[7])) },
        { name: 'max_retries', type: 'int4', values: failed.map((row) => numberOf(row[8])) },
        { name: 'generation', type: 'int4', values: failed.map(() => 0) },
        { name: 'job', type: 'int8', values: failed.map(() => null) },
        { name: 'ordering_key', type: 'text', values: failed.map(() => null) },
        { name: 'reason', type: 'text', values: items.map(({ reason }) => reason) },
        { name: 'fingerprint', type: 'text', values: items.map(({ fingerprint }) => fingerprint) },
        {
          name: 'item_failure',
          type: 'json',
          values: items.map(({ failure }) => failureJson(failure)),
        },
      ],
      params,
    );
    await session.query(
      `WITH u AS (${source}), ${openItems(names, 'u', 'n')} SELECT`,
      params.values,
    );
  }
  const last = rows[0]?.[0];
  return last === null ? undefined : numberOf(last);
}

/** NOT NULL in three steps: asked of new rows, checked of old ones without keeping writers out, and then known. */
export function demandFilled(names: Names): string {
  return ofFilled(
    (column, check) =>
      `ALTER TABLE ${names.queue} DROP CONSTRAINT IF EXISTS ${check};
     ALTER TABLE ${names.queue} ADD CONSTRAINT ${check} CHECK (${column} IS NOT NULL) NOT VALID;`,
  );
}

export function checkFilled(names: Names): string {
  return ofFilled((_, check) => `ALTER TABLE ${names.queue} VALIDATE CONSTRAINT ${check};`);
}

export function keepFilled(names: Names): string {
  return ofFilled(
    (column, check) =>
      `ALTER TABLE ${names.queue} ALTER ${column} SET NOT NULL;
     ALTER TABLE ${names.queue} DROP CONSTRAINT ${check};`,
  );
}

function ofFilled(text: (column: string, check: string) => string): string {
  return filledColumns.map((column) => text(column, `redrive_has_${column}`)).join(' ');
}

/** A message that failed in two queues is two tasks: the document's constraint would refuse the second. */
export async function dropOldIdentity(session: Session, names: Names): Promise<string> {
  const rows = await session.query(
    `SELECT quote_ident(conname) FROM pg_constraint AS c
     WHERE c.conrelid = to_regclass($1) AND c.contype = 'u' AND c.conkey = ARRAY[
       (SELECT attnum FROM pg_attribute WHERE attrelid = c.conrelid AND attname = 'message_id')
     ]`,
    [names.queue],
  );
  return rows
    .map(([name]) => `ALTER TABLE ${names.queue} DROP CONSTRAINT ${String(name)};`)
    .join(' ');
}

function notOurs(names: Names, why: string): EngineError {
  return new EngineError(
    'TABLE_NOT_OURS',
    `There is a table ${names.queue} that neither Redrive nor the document made: ${why}. Rename it, or give another schema.`,
  );
}

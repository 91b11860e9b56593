/** The tables of a file and of PostgreSQL, column by column: what a move copies, and what it must not. */

/** How a value of the file becomes one of PostgreSQL. */
export type ColumnType =
  | 'int4'
  | 'int8'
  | 'float8'
  | 'text'
  | 'json'
  | 'bool'
  | 'bytea'
  | 'uuid'
  | 'time';

export interface MovedColumn {
  name: string;
  type: ColumnType;
  /** Its name in PostgreSQL, where that is another one. */
  to?: string;
}

function columns(text: string): MovedColumn[] {
  return text
    .trim()
    .split(/\s*,\s*/)
    .map((part) => {
      const [name = '', type = '', to] = part.split(/\s+/);
      return { name, type: type as ColumnType, ...(to === undefined ? {} : { to }) };
    });
}

export const taskColumns = columns(`
  id int8, message_id uuid, original_queue text, kind text, address text, lane text, status text, retry_count int4,
  max_retries int4, next_retry_at time, created_at time, visible_at time, first_at time, lease int8, arrival int8,
  claims int4, attempt int4, uncounted int4, delay_ms float8, generation int4, arrived bool, cancelling bool,
  blocked bool, expires_at time, finished_at time, verdict text, policy text, ordering_key text, error_reason text,
  failure json, context json, original_payload bytea, on_dead text, trial bool, edited int4`);

/** Their own ids are nobody's business. */
export const attemptColumns = columns(`
  task_id int8, generation int4, attempt int4, at time, duration_ms float8, failure json, answer text`);

/** What there is of an item in its row, in PostgreSQL while it is open, and once it is closed. */
export const itemColumns = columns(`
  id int8, task_id int8, message_id uuid, kind text, address text, lane text, reason text, fingerprint text,
  attempt int4, max_attempts int4, generation int4, occurrences int4, first_seen time, last_seen time, failure json,
  context json, payload bytea, ordering_key text, edit json, edit_payload bytea, task_edited int4, task_on_dead text`);
export const openColumns = columns(`
  id int8, task_id int8, raw_id uuid, generation int4, edited bool, reason text, lane text, fingerprint text,
  ordering_key text`);
export const closedColumns = columns('id int8, state text, closed_at time, closed_by text');

export const outboxColumns = columns(`
  kind text, address text, payload bytea, headers json, visible_at time, message_id uuid`);

export const auditColumns = columns(`
  instance text, sequence int8, event_type text, timestamp text at, event json`);

export const documentColumns = columns('key text, value json');

export const noteColumns = columns(`
  fingerprint text, lane text, reason text, failure json, first_seen time, last_seen time, note text, owner text`);

/**
 * What stays behind: numbers that mean nothing elsewhere, counts that are made anew, and bulk jobs, whose members are
 * back in the inbox or on their way as tasks.
 */
const left: Readonly<Record<string, readonly string[]>> = {
  retry_queue: ['job', 'line'],
  redrive_attempts: ['id'],
  redrive_inbox: ['job'],
  redrive_open: ['id', 'task_id', 'raw_id', 'edited', 'reason', 'lane', 'fingerprint'],
  redrive_outbox: ['id'],
  redrive_audit: ['id'],
  redrive_state: ['version'],
  redrive_groups: ['open', 'is_open'],
  redrive_members: ['job', 'item_id', 'result'],
  redrive_lines: ['id', 'lane', 'ordering_key'],
  // Nobody holds back an event: the service is stopped.
  redrive_erased: ['message_id', 'erased_at'],
  redrive_schema: ['version', 'oldest'],
  // Responses to requests with an Idempotency-Key: they are kept for a day at most.
  redrive_idempotency: [
    'key',
    'owner',
    'fingerprint',
    'fencing_token',
    'claims',
    'lease_end_ms',
    'outcome',
    'text',
    'metadata',
    'recorded_at_ms',
    'expires_at_ms',
  ],
  redrive_idempotency_schema: ['version', 'oldest'],
  redrive_idempotency_token: ['last'],
};

const moved: Readonly<Record<string, readonly MovedColumn[]>> = {
  retry_queue: taskColumns,
  redrive_attempts: attemptColumns,
  redrive_inbox: itemColumns,
  redrive_closed: closedColumns,
  redrive_outbox: outboxColumns,
  redrive_audit: auditColumns,
  redrive_state: documentColumns,
  redrive_groups: noteColumns,
};

/** Columns of the file that nobody has thought of: a schema that is newer than the move. */
export function unknownColumns(found: readonly { table: string; column: string }[]): string[] {
  return found
    .filter(({ table, column }) => {
      const isMoved = moved[table]?.some(({ name }) => name === column) ?? false;
      return !isMoved && !(left[table]?.includes(column) ?? false);
    })
    .map(({ table, column }) => `${table}.${column}`);
}

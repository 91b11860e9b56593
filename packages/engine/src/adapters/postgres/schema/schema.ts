import { type Names, quoteName, quoteText } from '../names.ts';
import { arrived, claimed, due } from '../schedule/sets.ts';

/** The schema that this program knows. A later one gets a step in `migrate.ts`; what is released never changes. */
export const schemaVersion = 7;

/** The oldest schema that a program may know to use the tables as this one leaves them. */
export const oldestVersion = 4;

export interface Index {
  name: string;
  unique?: boolean;
  on: string;
}

/** What `retry_queue` has beyond the document. Each has a default, so that the document's own INSERT works. */
export const ownColumns = `
  kind text COLLATE "C" NOT NULL DEFAULT 'queue',
  address text,
  lane text COLLATE "C",
  attempt integer NOT NULL DEFAULT 0,
  visible_at timestamptz,
  lease bigint,
  claims integer NOT NULL DEFAULT 0,
  arrived boolean NOT NULL DEFAULT false,
  cancelling boolean NOT NULL DEFAULT false,
  blocked boolean NOT NULL DEFAULT false,
  uncounted integer NOT NULL DEFAULT 0,
  generation integer NOT NULL DEFAULT 0,
  delay_ms double precision NOT NULL DEFAULT 0,
  arrival bigint,
  first_at timestamptz,
  expires_at timestamptz,
  finished_at timestamptz,
  verdict text,
  policy text,
  ordering_key text,
  context json,
  failure json`;

/** What the trigger fills in where an INSERT does not. */
export const filledColumns = ['lane', 'visible_at', 'status'] as const;

/**
 * A queue's rows live short and are all written again twice: waiting for a fifth of them to be dead, as a common table
 * does, would let the indexes swell.
 */
export const queueSettings = `
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 2000,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_vacuum_cost_delay = 1, autovacuum_vacuum_cost_limit = 2000`;

/** `json`, not `jsonb`: it keeps every text as it came, and is cheaper to write. */
export function createTables(names: Names): string {
  return `
    CREATE TABLE ${names.attempts} (
      id bigserial NOT NULL,
      task_id bigint NOT NULL,
      generation integer NOT NULL,
      attempt integer NOT NULL,
      at timestamptz NOT NULL,
      duration_ms double precision NOT NULL,
      failure json NOT NULL,
      answer text
    );
    CREATE INDEX redrive_attempts_task ON ${names.attempts} (task_id, id);

    CREATE TABLE ${names.inbox} (
      id bigserial PRIMARY KEY,
      task_id bigint,
      message_id uuid NOT NULL,
      kind text NOT NULL,
      address text NOT NULL,
      lane text COLLATE "C" NOT NULL,
      state text NOT NULL DEFAULT 'open',
      reason text NOT NULL,
      fingerprint text NOT NULL,
      attempt integer NOT NULL,
      max_attempts integer NOT NULL,
      generation integer NOT NULL,
      occurrences integer NOT NULL DEFAULT 1,
      first_seen timestamptz NOT NULL,
      last_seen timestamptz NOT NULL,
      failure json NOT NULL,
      context json,
      payload bytea
    );
    CREATE UNIQUE INDEX redrive_inbox_task ON ${names.inbox} (task_id) WHERE state = 'open' AND task_id IS NOT NULL;
    CREATE UNIQUE INDEX redrive_inbox_raw ON ${names.inbox} (message_id) WHERE state = 'open' AND task_id IS NULL;
    CREATE INDEX redrive_inbox_of_task ON ${names.inbox} (task_id) WHERE task_id IS NOT NULL;
    CREATE INDEX redrive_inbox_message ON ${names.inbox} (message_id);
    CREATE INDEX redrive_inbox_fingerprint ON ${names.inbox} (fingerprint, id);
    CREATE INDEX redrive_inbox_lane ON ${names.inbox} (lane, id);

    CREATE TABLE ${names.outbox} (
      id bigserial PRIMARY KEY,
      kind text NOT NULL,
      address text NOT NULL,
      payload bytea NOT NULL,
      headers json NOT NULL,
      visible_at timestamptz NOT NULL
    );

    CREATE TABLE ${names.state} (
      key text COLLATE "C" PRIMARY KEY,
      version bigint NOT NULL,
      value json NOT NULL
    );

    CREATE TABLE ${names.audit} (
      id bigserial PRIMARY KEY,
      instance text NOT NULL,
      sequence bigint NOT NULL,
      event_type text NOT NULL,
      at timestamptz NOT NULL,
      event json NOT NULL
    );
    CREATE INDEX redrive_audit_at ON ${names.audit} USING brin (at);`;
}

/** A table as the document has it, with times that know their zone. */
export function createQueue(names: Names): string {
  return `
    CREATE TABLE ${names.queue} (
      id bigserial PRIMARY KEY,
      message_id uuid NOT NULL,
      original_payload bytea NOT NULL,
      original_queue varchar(255) NOT NULL,
      error_reason text,
      retry_count integer NOT NULL DEFAULT 0,
      max_retries integer NOT NULL DEFAULT 3,
      next_retry_at timestamptz NOT NULL,
      created_at timestamptz DEFAULT now(),
      status varchar(50) DEFAULT 'pending',
      ${ownColumns}
    ) WITH (${queueSettings});
    ${filledColumns.map((name) => `ALTER TABLE ${names.queue} ALTER ${name} SET NOT NULL;`).join(' ')}`;
}

/**
 * What the document's own INSERT leaves out is filled in, and the instances are told: such a row is a message that
 * failed once in its queue. Rows of Redrive name their lane, and pass by.
 */
export function createTrigger(names: Names): string {
  const fill = `${quoteName(names.schema)}.redrive_fill`;
  return `
    CREATE OR REPLACE FUNCTION ${fill}() RETURNS trigger LANGUAGE plpgsql AS $fill$
    BEGIN
      NEW.lane := NEW.kind || ':' || NEW.original_queue;
      NEW.attempt := NEW.retry_count + 1;
      NEW.visible_at := date_trunc('milliseconds', NEW.next_retry_at + INTERVAL '999 microseconds');
      IF NEW.status = 'pending' THEN
        PERFORM pg_notify(${quoteText(names.channel)}, json_build_object('lanes', json_build_array(NEW.lane))::text);
      ELSE
        NEW.finished_at := now();
      END IF;
      RETURN NEW;
    END
    $fill$;
    DROP TRIGGER IF EXISTS redrive_fill ON ${names.queue};
    CREATE TRIGGER redrive_fill BEFORE INSERT ON ${names.queue}
      FOR EACH ROW WHEN (NEW.lane IS NULL) EXECUTE FUNCTION ${fill}();`;
}

/** Each holds only what its statement looks for: millions of others do not slow it. */
export const queueIndexes: readonly Index[] = [
  {
    name: 'retry_queue_identity',
    unique: true,
    on: '(message_id, original_queue, kind)',
  },
  { name: 'retry_queue_due', on: `(lane, visible_at, id) WHERE ${due}` },
  { name: 'retry_queue_claimed', on: `(lane, visible_at, id) WHERE ${claimed}` },
  { name: 'retry_queue_arrived', on: `(lease) WHERE ${arrived}` },
  {
    name: 'retry_queue_finished',
    on: '(status, finished_at) WHERE finished_at IS NOT NULL',
  },
  {
    name: 'retry_queue_expiry',
    on: `(expires_at, id) WHERE status = 'pending' AND expires_at IS NOT NULL`,
  },
];

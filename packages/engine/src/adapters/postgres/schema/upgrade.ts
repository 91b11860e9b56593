import { type Names, quoteName } from '../names.ts';
import type { Index } from './schema.ts';
import { active, ended, holding, underway } from '../schedule/sets.ts';
import { groupTables } from '../inbox/groups-schema.ts';

/** From schema 1 to schema 2: order per key, and all that is done about items. Never committed without `splitState`. */
export function upgrade(names: Names): string {
  return `
    ALTER TABLE ${names.queue} ADD COLUMN on_dead text, ADD COLUMN job bigint,
      ADD COLUMN trial boolean NOT NULL DEFAULT false, ADD COLUMN edited integer;
    ALTER TABLE ${names.inbox} ADD COLUMN closed_at timestamptz, ADD COLUMN closed_by text, ADD COLUMN job bigint,
      ADD COLUMN ordering_key text, ADD COLUMN edit json, ADD COLUMN edit_payload bytea;
    ALTER TABLE ${names.outbox} ADD COLUMN message_id uuid;
    CREATE INDEX redrive_outbox_message ON ${names.outbox} (message_id) WHERE message_id IS NOT NULL;
    CREATE TABLE ${names.lines} (
      lane text COLLATE "C" NOT NULL,
      ordering_key text NOT NULL,
      version bigint NOT NULL,
      touched_at timestamptz NOT NULL,
      PRIMARY KEY (lane, ordering_key)
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);
    CREATE TABLE ${names.members} (
      job bigint NOT NULL,
      item_id bigint NOT NULL,
      result text,
      PRIMARY KEY (job, item_id)
    );
    ${groupTables(names)} ${putInLine(names)}`;
}

/** Until now nobody kept the order: all but the first that waits in each line are held back. */
function putInLine(names: Names): string {
  return `
    INSERT INTO ${names.lines} (lane, ordering_key, version, touched_at)
      SELECT lane, ordering_key, 1, now() FROM ${names.queue} WHERE ${holding} GROUP BY lane, ordering_key;
    UPDATE ${names.queue} AS q SET blocked = true WHERE ${active} AND lease IS NULL AND EXISTS (
      SELECT FROM ${names.queue} AS before WHERE before.lane = q.lane AND before.ordering_key = q.ordering_key
      AND before.status = 'pending' AND before.id < q.id
    );
    UPDATE ${names.inbox} AS item SET ordering_key = q.ordering_key FROM ${names.queue} AS q
      WHERE q.id = item.task_id AND q.ordering_key IS NOT NULL;`;
}

/** What the queue has beyond the indexes of schema 1. */
export const upgradedQueueIndexes: readonly Index[] = [
  // One for both questions, who is first and who has the turn: each more is written three times for every task.
  { name: 'retry_queue_place', on: `(lane, ordering_key, blocked, id) WHERE ${holding}` },
  // Short, and nothing in it is compared as text: it is written twice for every task that is replayed.
  { name: 'retry_queue_underway', on: `(job, blocked) WHERE ${underway}` },
  { name: 'retry_queue_ended', on: `(job, status, finished_at) WHERE ${ended}` },
];

/** Every list is sorted by the id. Schema 1 has the first two already; schemas 2 and 3 had them with the state in between. */
export const inboxIndexes: readonly Index[] = [
  { name: 'redrive_inbox_fingerprint', on: '(fingerprint, id)' },
  { name: 'redrive_inbox_lane', on: '(lane, id)' },
  { name: 'redrive_inbox_job', on: '(job, id) WHERE job IS NOT NULL' },
];

/** By state, each with ids alone: one with the state in it would be compared by it, ten times for each that is closed. */
export const closedIndexes: readonly Index[] = ['replayed', 'resolved', 'discarded', 'erased'].map(
  (state) => ({ name: `redrive_closed_${state}`, on: `(id) WHERE state = '${state}'` }),
);

/** Of schemas 2 to 5, which others make superfluous. Those with the state of items went with its column. */
const oldIndexes = [
  'retry_queue_line',
  'retry_queue_turn',
  'retry_queue_job',
  'redrive_closed_state',
];

export function dropOldIndexes(names: Names): string {
  return `DROP INDEX IF EXISTS ${oldIndexes.map((name) => `${quoteName(names.schema)}.${name}`).join(', ')};`;
}

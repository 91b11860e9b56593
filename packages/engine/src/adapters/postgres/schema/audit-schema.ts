import { KEY_LENGTH, MESSAGE_MARK } from '../../../erase/audit-key.ts';
import type { Names } from '../names.ts';
import type { Index } from './schema.ts';

/** Whether an event names a message, and the key of that message. Queries repeat both, so that the index is used. */
export const namesMessage = `strpos(event::text, '${MESSAGE_MARK}') > 0`;
// As text: an operator for JSON fails by an event in which some text is half a character.
const fromId = `substr(event::text, strpos(event::text, '${MESSAGE_MARK}') + ${MESSAGE_MARK.length}, ${KEY_LENGTH})`;
export const messageKey = `split_part(${fromId}, '"', 1)`;

/** From schema 6 to schema 7: events are found by their message. */
export const auditIndexes: readonly Index[] = [
  { name: 'redrive_audit_message', on: `((${messageKey}) COLLATE "C", id) WHERE ${namesMessage}` },
];

/** From schema 6 to schema 7: which messages were erased lately. Instances may hold back events of theirs. */
export function addErased({ erased }: Names): string {
  return `CREATE TABLE IF NOT EXISTS ${erased} (
    message_id text COLLATE "C" PRIMARY KEY,
    erased_at timestamptz NOT NULL
  );`;
}

import { KEY_LENGTH, MESSAGE_MARK } from '../../../erase/audit-key.ts';

/** Whether an event names a message, and the key of that message. Queries repeat both, so that the index is used. */
export const namesMessage = `instr(event, '${MESSAGE_MARK}') > 0`;
const fromId = `substr(event, instr(event, '${MESSAGE_MARK}') + ${MESSAGE_MARK.length}, ${KEY_LENGTH})`;
export const messageKey = `substr(${fromId}, 1, instr(${fromId} || '"', '"') - 1)`;

/** A failed task in the inbox that keeps its place in a line. Queries repeat this text, so that SQLite uses its index. */
export const isDead = `status = 'failed' AND line IS NOT NULL AND on_dead IS NULL`;

/**
 * Events are found by their message, and the audit trail knows which messages were erased lately. The items that others
 * wait behind are found however many items and lines there are.
 */
export const version6 = `
  CREATE INDEX redrive_audit_message ON redrive_audit (${messageKey}) WHERE ${namesMessage};
  CREATE TABLE redrive_erased (
    message_id TEXT PRIMARY KEY,
    erased_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX retry_queue_dead ON retry_queue (line) WHERE ${isDead};
`;

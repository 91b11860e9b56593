import type { Fault } from 'redrive';

/** Every code a user of the engine can meet. `docs/reference/errors.md` has a line for each; `tidy` checks that. */
export const errorCodes = {
  INVALID_TASK: 'A task has faults; `faults` lists all of them.',
  INVALID_ENGINE: 'The options of an engine, a handler or a lane have faults.',
  NO_DESTINATION: 'A task without a destination, or one that does not parse.',
  ADDRESS_REFUSED:
    'The host of a destination is not in the list of what may be connected to (`allow`, `REDRIVE_HTTP_ALLOW`).',
  UNKNOWN_POLICY: 'No policy of that name in this engine.',
  INVALID_POLICY: 'The policy of a task has faults; `faults` lists all of them.',
  INVALID_PAYLOAD:
    'The payload is not what the schema of its handler wants, or cannot be written as JSON.',
  PAYLOAD_TOO_LARGE: 'The payload is over the limit (1 MiB unless told otherwise).',
  INVALID_ID: 'A message id that is not a UUID.',
  NO_TRANSACTIONS: 'This store cannot join a transaction of the caller.',
  NO_IDEMPOTENCY:
    'A handler is idempotent, and neither the store nor the option `idempotency` keeps keys for it.',
  TRANSACTION_OVER: 'The `tx` of a handler was used after its transaction had ended.',
  TRANSACTION_CONTROL:
    'A handler tried to begin, commit or roll back the transaction of its `tx`, which the engine does.',
  NOT_IN_TRANSACTION:
    'The `tx` of a submit is not in a transaction: a pool, a client without BEGIN, or one whose transaction has failed.',
  IDEMPOTENCY_MISMATCH:
    'The same `dedupeKey` was used for another payload before, and `onConflict` is `reject`.',
  INTAKE_FULL: 'Too much waits to be stored; the store is away or too slow.',
  ENGINE_STOPPED: 'The engine was stopped.',
  STORE_UNAVAILABLE:
    'The store cannot be reached, or did not answer in time. Trying again with the same id is safe.',
  STORE_READ_ONLY: 'The store can be read but not written.',
  STORE_DENIED:
    'The server refused the connection because of the user, the password, the database or a certificate. The message names the setting to correct.',
  STORE_FULL: 'The disk of the store is full.',
  STORE_CORRUPT: 'The file is damaged, or is not a database.',
  STORE_FILE_LOST:
    'The file of the store was deleted, moved or replaced while it was open, and the message names the copy of its content. Or its log is there without it.',
  STORE_NOT_LOCAL: 'The file is on a network file system, whose locks cannot be trusted.',
  SCHEMA_MISSING: 'The tables are missing and this program may not make them.',
  SCHEMA_TOO_NEW: 'The tables belong to a newer Redrive that this one cannot work with.',
  TABLE_NOT_OURS:
    'There is a table of a name that Redrive needs (`retry_queue`, `notifications`), and neither Redrive nor the document made it.',
  ITEM_UNKNOWN: 'There is no such item, or no such group, in the inbox.',
  ITEM_CLOSED: 'The item is not open any more: somebody was faster.',
  ITEM_BUSY: 'The message is on its way again, and cannot be erased now.',
  ITEM_CONFLICT: 'The same message is already known at that destination.',
  EMPTY_FILTER:
    'A filter that says nothing would mean everything: say `all: true` if that is meant.',
  TOO_MANY_JOBS: 'So many bulk jobs are not over that another one is refused.',
  NOTHING_MATCHES: 'No open item matches the filter.',
  INVALID_FILTER: 'A filter, an edit or the options of a bulk job have faults.',
  JOB_UNKNOWN: 'There is no such bulk job.',
  JOB_OVER: 'The bulk job is over, and cannot be changed any more.',
  AUDIT_UNREADABLE: 'The audit trail is off, or its sink can only be written.',
  AUDIT_SINK_FAILED:
    'A sink of the audit trail did not take a batch of events. The work goes on; the trail tries again, and counts what is lost.',
  AUDIT_NOT_ERASED:
    'A message was erased in the store, but the sink of the audit trail failed to erase its events.',
  INVALID_ENTRY:
    'Entries, ids or limits that were given to a delay queue have faults; `faults` lists all of them.',
  QUEUE_CLOSED: 'The delay queue is not open: it was not opened yet, or it was closed.',
  TOPIC_UNFIT:
    'A topic of a delay queue on Kafka is missing and cannot be made, or has settings with which entries could be lost or come early. The message has the command that mends it.',
  NOT_CAPABLE: 'A delay queue was asked for something that its `capabilities` do not have.',
  KEY_NOT_OURS:
    'A key in Redis has the name of one of ours and something else in it. Nothing was changed.',
  QUEUE_MISMATCH: 'The delay queue on the server was made with other settings.',
  NATS_UNAVAILABLE:
    'NATS did not answer in time, or a cluster chooses a leader. The operation was retried as its category says.',
  NATS_REFUSED:
    'NATS will never do what was asked for: an invalid subject, a missing permission, other settings than those asked for.',
  NATS_NO_STREAM: 'No stream has the subject, or the bucket does not exist.',
  NATS_CLOSED: 'The connection to NATS is closed, and does not come back by itself.',
  NATS_WRONG_REVISION: 'The key of the bucket is not at the revision that the write names.',
  NATS_OUTCOME_UNKNOWN:
    'The answer to a write was lost, and the key has changed since: whether the write happened is not known.',
  PEER_MISSING:
    'The client library of a database or a broker is not installed. The message has the `npm install` command.',
  NODE_TOO_OLD: 'The Node that runs this is older than what is needed; the message names both.',
  MIGRATION_LOCKED: 'Another process migrates, or a lock on the table could not be had in time.',
} as const;

export type EngineErrorCode = keyof typeof errorCodes;

/** One thing that is wrong with a task or with options. */
export interface TaskFault {
  /** Where: `headers.x-a`, `3.payload`. */
  path: string;
  code: EngineErrorCode;
  message: string;
}

/** Thrown for what cannot work, with a code and a way out. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly code: EngineErrorCode;
  /** Everything that is wrong. Of a policy, as core says it: `{ path: 'policy.base', code: 'INVALID_DURATION' }`. */
  readonly faults: readonly (TaskFault | Fault)[];

  constructor(
    code: EngineErrorCode,
    message: string,
    details: { cause?: unknown; faults?: readonly (TaskFault | Fault)[] } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.code = code;
    this.faults = details.faults ?? [];
  }
}

/** The store itself is in trouble, which passes; anything else is wrong with what it was asked for. */
export function isStoreError(error: unknown): boolean {
  return isEngineError(error) && error.code.startsWith('STORE_');
}

/** It cannot be reached now: it may be there again soon. */
export function isUnavailable(error: unknown): boolean {
  return isEngineError(error) && error.code === 'STORE_UNAVAILABLE';
}

/** By name, not by class: true also for an error of another copy of this library. */
export function isEngineError(error: unknown): error is EngineError {
  return (
    typeof error === 'object' &&
    error !== null &&
    (error as Error).name === 'EngineError' &&
    'faults' in error
  );
}

export function stoppedError(): EngineError {
  return new EngineError('ENGINE_STOPPED', 'The engine was stopped. Make a new one to go on.');
}

export function noTransactions(): EngineError {
  const message = 'This store cannot join a transaction. Leave tx out, or use PostgreSQL.';
  return new EngineError('NO_TRANSACTIONS', message);
}

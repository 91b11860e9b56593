import { hash64 } from 'redrive/internal';

/** The tables in the schema of one's choice, quoted. */
export interface Names {
  schema: string;
  /** Where instances tell each other what is new. */
  channel: string;
  queue: string;
  inbox: string;
  /** Which items are open, with what they are found by; and how the others were closed. */
  open: string;
  closed: string;
  attempts: string;
  outbox: string;
  state: string;
  /** The lock of each line of tasks that share an ordering key. */
  lines: string;
  groups: string;
  /** What groups have to be counted up or down by. */
  deltas: string;
  /** The items of each bulk job. */
  members: string;
  audit: string;
  /** The messages that were erased lately. */
  erased: string;
  version: string;
}

/** PostgreSQL cuts longer names off, silently. */
export const MAX_NAME_BYTES = 63;

export function namesIn(schema: string): Names {
  const channel = `redrive:${schema}`;
  const fits = Buffer.byteLength(channel) <= MAX_NAME_BYTES;
  const table = (name: string) => `${quoteName(schema)}.${name}`;
  return {
    schema,
    channel: fits ? channel : `redrive:${hash64(schema)}`,
    queue: table('retry_queue'),
    inbox: table('redrive_inbox'),
    open: table('redrive_open'),
    closed: table('redrive_closed'),
    attempts: table('redrive_attempts'),
    outbox: table('redrive_outbox'),
    state: table('redrive_state'),
    lines: table('redrive_lines'),
    groups: table('redrive_groups'),
    deltas: table('redrive_group_deltas'),
    members: table('redrive_members'),
    audit: table('redrive_audit'),
    erased: table('redrive_erased'),
    version: table('redrive_schema'),
  };
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteText(text: string): string {
  // The E form reads backslashes the same way whatever `standard_conforming_strings` says.
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** What the engine's events say of tasks and of operators' actions. Payloads and credentials never get here. */
import type { AuditEntry, AuditSubject } from 'redrive';
import { hash64 } from 'redrive/internal';
import type { ItemFilter } from '../ports/inbox.ts';
import type { Task, TaskContext } from '../model/task.ts';

type Audited = Pick<Task, 'messageId' | 'lane' | 'generation' | 'context'>;

export function subjectOf(task: Audited, category: string): AuditSubject {
  return {
    category,
    operation: task.lane,
    tenantId: headerOf(task.context, 'x-tenant-id'),
    correlationId: headerOf(task.context, 'x-correlation-id'),
    traceId: traceIdOf(task.context?.traceparent ?? headerOf(task.context, 'traceparent')),
  };
}

/** Which task it is, for the object `redrive`. */
export function aboutTask({ messageId, lane, generation }: Audited): Record<string, unknown> {
  return { message_id: messageId, lane, generation };
}

/** What somebody did by hand: who, to what, and how. */
export interface OperatorFacts {
  by?: string | undefined;
  item?: number | undefined;
  job?: number | undefined;
  lane?: string | undefined;
  /** The fingerprint of a group of the inbox. */
  group?: string | undefined;
  messageId?: string | undefined;
  /** Filters, options, counts, results: plain data, without payloads. */
  details?: Readonly<Record<string, unknown>> | undefined;
}

export function operatorEntry(action: string, facts: OperatorFacts): AuditEntry {
  const { by, item, job, lane, group, messageId, details } = facts;
  return {
    event_type: 'operator_action',
    action,
    by: by ?? null,
    item: item ?? null,
    job: job ?? null,
    lane: lane ?? null,
    group: group ?? null,
    message_id: messageId ?? null,
    details: details === undefined ? null : plain(details),
  };
}

/**
 * What the event of a bulk job says of its filter. An ordering key may name a person, and erase finds events by their
 * message only: of the key a hash is written, which still tells whether two jobs had the same.
 */
export function filterFacts(filter: ItemFilter): Record<string, unknown> {
  const { orderingKey, ...rest } = filter;
  if (orderingKey === undefined) return rest;
  return { ...rest, orderingKeyHash: hash64(orderingKey) };
}

function headerOf(context: TaskContext | undefined, name: string): string | null {
  const headers = context?.headers;
  if (!headers) return null;
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return value;
  }
  return null;
}

/** The trace's id in a W3C `traceparent`. */
function traceIdOf(traceparent: string | null): string | null {
  const id = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent ?? '')?.[1];
  return id === undefined || /^0+$/.test(id) ? null : id;
}

const MAX_DETAILS = 8 * 1024;

/** As data that any sink takes and that is not endless: one odd value must not lose a batch. */
function plain(details: object): unknown {
  let text: string;
  try {
    text = JSON.stringify(details, writable);
  } catch (error) {
    return { unreadable: String(error) };
  }
  return text.length > MAX_DETAILS ? { cut: text.slice(0, MAX_DETAILS) } : JSON.parse(text);
}

/** Of bytes only how many: they are a payload, or part of one. */
function writable(this: unknown, name: string, value: unknown): unknown {
  // Before a Buffer's own toJSON had its way.
  const given = (this as Record<string, unknown>)[name];
  if (given instanceof Uint8Array) return `${given.length} bytes`;
  return typeof value === 'bigint' ? String(value) : value;
}

import type { AuditEvent } from './audit-events.ts';

/**
 * Fields with texts and ids of a message, or of what an operator wrote about it. None of them is a fact of a decision, so
 * a decision can be made again without them.
 */
const personalFields = [
  'exception_message',
  'final_exception_message',
  'tenant_id',
  'correlation_id',
  'trace_id',
  'details',
] as const;

/**
 * The event without its personal fields: they become null, and `erased_at` says when. An event that has none of them is
 * returned as it is.
 */
export function eraseEvent(event: AuditEvent, atMs: number): AuditEvent {
  const found = personalIn(event);
  if (found.length === 0) return event;
  const erased: AuditEvent = { ...event, erased_at: new Date(atMs).toISOString() };
  for (const name of found) erased[name] = null;
  return erased;
}

/** The names of the personal fields that have a value. */
export function personalIn(event: AuditEvent): string[] {
  return personalFields.filter((name) => event[name] !== undefined && event[name] !== null);
}

export function isErased(event: AuditEvent): boolean {
  return event['erased_at'] !== undefined;
}

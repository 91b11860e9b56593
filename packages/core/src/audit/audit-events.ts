import { decisionToWire, factsToWire, type Wire } from './audit-wire.ts';
import type { Decision, Facts } from '../decide.ts';
import type { Failure } from '../failure/failure.ts';
import type { DefinedPolicy } from '../policy/policy.ts';

/** One event of an audit trail, as it is written: `snake_case`, what is not known null. */
export interface AuditEvent {
  event_type: string;
  /** ISO-8601 UTC. */
  timestamp: string;
  /** What Redrive adds to the fields of the contract. Absent in a strict trail. */
  redrive?: AuditDetails;
  [field: string]: unknown;
}

export interface AuditDetails {
  /** Which instance wrote it, since when it runs (ms since the epoch), and its how manieth event: a gap shows. */
  instance: string;
  run: number;
  sequence: number;
  /** The fingerprint of the policy that decided. */
  policy?: string;
  seed?: number;
  key?: string;
  facts?: Readonly<Record<string, unknown>>;
  decision?: Readonly<Record<string, unknown>>;
  [detail: string]: unknown;
}

/** An event before it has its time and its place in a trail. */
export interface AuditEntry {
  event_type: string;
  redrive?: Readonly<Record<string, unknown>>;
  [field: string]: unknown;
}

/** Whose work an event is about. */
export interface AuditSubject {
  category: string;
  operation: string;
  tenantId?: string | null;
  correlationId?: string | null;
  traceId?: string | null;
}

/** A decision, with all that it was made of. */
export interface Decided {
  policy: DefinedPolicy;
  facts: Facts;
  decision: Decision;
}

/** What became of an execution. `attempt` is its number, which for one that failed is the number of the failure. */
export type Happening =
  | {
      type: 'retry_attempt' | 'retry_postponed';
      attempt: number;
      maxAttempts: number;
      delayMs: number;
      failure?: Failure | undefined;
    }
  | { type: 'retry_exhausted'; attempt: number; failure?: Failure | undefined }
  | {
      type: 'retry_abandoned';
      attempt: number;
      maxAttempts: number;
      /** A code, as of a decision or of the inbox. */
      reason: string;
      failure?: Failure | undefined;
    }
  | { type: 'retry_succeeded' | 'retry_rearmed'; attempt: number; maxAttempts: number };

/** The fields of an event, in the order of the contract. */
export function auditEntry(
  subject: AuditSubject,
  happening: Happening,
  redrive: Readonly<Record<string, unknown>> = {},
): AuditEntry {
  return { ...contractFields(happening.type, subject, fieldsOf(happening)), redrive };
}

/** The fields that all events of the contract have, in its order, around those of one kind. */
export function contractFields(
  type: string,
  { category, operation, tenantId, correlationId, traceId }: AuditSubject,
  fields: Wire,
): AuditEntry {
  return {
    event_type: type,
    retry_category: category,
    operation,
    ...fields,
    tenant_id: textOf(tenantId),
    correlation_id: textOf(correlationId),
    trace_id: textOf(traceId),
  };
}

/**
 * The event of a decision, with the facts that `replayAudit` makes it again from. `waitMs`: the wait that follows, where
 * somebody else set it.
 */
export function decisionEntry(
  subject: AuditSubject,
  { policy, facts, decision }: Decided,
  redrive: Readonly<Record<string, unknown>> = {},
  waitMs?: number,
): AuditEntry {
  const happening = happeningOf(decision);
  const waits = waitMs !== undefined && 'delayMs' in happening && happening.delayMs !== waitMs;
  return auditEntry(subject, waits ? { ...happening, delayMs: waitMs } : happening, {
    ...redrive,
    policy: policy.fingerprint,
    seed: facts.seed,
    key: facts.key,
    facts: factsToWire(facts),
    decision: decisionToWire(decision),
    ...(waits ? { wait_ms: waitMs } : {}),
  });
}

/** A policy at its first use, so that a trail can be replayed alone. */
export function policyEntry(policy: DefinedPolicy): AuditEntry {
  return { event_type: 'policy_registered', policy: policy.fingerprint, definition: policy };
}

/** What a decision is called. */
export function happeningOf(decision: Decision): Happening {
  const { attempt, maxAttempts, failure } = decision;
  if (decision.action === 'retry') {
    const { delayMs } = decision;
    return { type: 'retry_attempt', attempt, maxAttempts, delayMs, failure };
  }
  if (decision.reason === 'EXHAUSTED') return { type: 'retry_exhausted', attempt, failure };
  const { reason } = decision;
  return { type: 'retry_abandoned', attempt, maxAttempts, reason, failure };
}

/** The fields that depend on what happened. */
export function fieldsOf(happening: Happening): Wire {
  const { type, attempt } = happening;
  switch (type) {
    case 'retry_attempt':
    case 'retry_postponed':
      return {
        attempt_number: attempt,
        max_attempts: happening.maxAttempts,
        delay_seconds: happening.delayMs / 1000,
        exception_type: typeOf(happening.failure),
        exception_message: messageOf(happening.failure),
      };
    case 'retry_exhausted':
      return {
        total_attempts: attempt,
        final_exception_type: typeOf(happening.failure),
        final_exception_message: messageOf(happening.failure),
      };
    case 'retry_abandoned':
      return {
        reason: wordFor(happening.reason),
        attempt_number: attempt,
        max_attempts: happening.maxAttempts,
        exception_type: typeOf(happening.failure),
        exception_message: messageOf(happening.failure),
      };
    case 'retry_succeeded':
    case 'retry_rearmed':
      return { attempt_number: attempt, max_attempts: happening.maxAttempts };
  }
}

/** A reason as the events have it. */
function wordFor(reason: string): string {
  return reason === 'PERMANENT' ? 'non_retryable' : reason.toLowerCase();
}

function typeOf(failure: Failure | undefined): string | null {
  const name: unknown = Array.isArray(failure?.names) ? failure.names[0] : undefined;
  return textOf(name ?? failure?.code);
}

function messageOf(failure: Failure | undefined): string | null {
  return textOf(failure?.message);
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? cut(value) : null;
}

const MAX_TEXT_BYTES = 1024;

/** At most a KiB of UTF-8, and no half character. */
function cut(text: string): string {
  // No unit of UTF-16 takes more than three bytes.
  if (text.length * 3 <= MAX_TEXT_BYTES) return text;
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (bytes > MAX_TEXT_BYTES) return text.slice(0, end);
    end += character.length;
  }
  return text;
}

import type { AuditEntry, AuditSubject } from '../audit/audit-events.ts';
import { contractFields } from '../audit/audit-events.ts';
import { notify } from '../run/notify.ts';

/** What else may happen to a key besides a hit and a record. */
export type IdempotencyDetail =
  /** A caller waits for the one that runs the work. */
  | 'wait'
  /** A caller was refused: somebody else runs the work, or did not end it. */
  | 'conflict'
  /** The same key came with another payload. */
  | 'mismatch'
  /** The lease of an owner was over, and another caller took over. */
  | 'expired'
  | 'clear'
  /** An owner came too late: somebody took over. */
  | 'lost'
  /** The work was done, and the store took no record of it. */
  | 'unrecorded'
  /** The work was done, and its result could not be stored. */
  | 'unstored'
  /** The work ran without a claim, because the store could not be asked. */
  | 'unprotected'
  /** The store could not be asked, so the work did not run. */
  | 'refused';

type Audit = ((entry: AuditEntry) => unknown) | undefined;

/** The contract's event, field for field. */
export function idempotencyEntry(
  subject: AuditSubject,
  key: string,
  action: 'hit' | 'record',
  redrive: Readonly<Record<string, unknown>> = {},
): AuditEntry {
  return { ...contractFields('idempotency', subject, fieldsOf(key, action)), redrive };
}

/** Redrive's own event beside it. */
export function idempotencyDetailEntry(
  subject: AuditSubject,
  key: string,
  action: IdempotencyDetail,
  redrive: Readonly<Record<string, unknown>> = {},
): AuditEntry {
  return { ...contractFields('idempotency_detail', subject, fieldsOf(key, action)), redrive };
}

const SHOWN = 16;

function fieldsOf(key: string, action: string) {
  return { idempotency_key: `${key.slice(0, SHOWN)}...`, action };
}

/** Tells the audit of one key. It never breaks the work. */
export class KeyAudit {
  readonly #audit: Audit;
  readonly #subject: AuditSubject;
  readonly #key: string;

  constructor(audit: Audit, subject: AuditSubject, key: string) {
    this.#audit = audit;
    this.#subject = subject;
    this.#key = key;
  }

  tell(action: 'hit' | 'record' | IdempotencyDetail, redrive?: Readonly<Record<string, unknown>>) {
    if (!this.#audit) return;
    const audit = this.#audit;
    // Also a subject that cannot be read must not break the work.
    notify('the audit of an idempotency key', () =>
      audit(
        action === 'hit' || action === 'record'
          ? idempotencyEntry(this.#subject, this.#key, action, redrive)
          : idempotencyDetailEntry(this.#subject, this.#key, action, redrive),
      ),
    );
  }
}

const silent = new KeyAudit(undefined, { category: '', operation: '' }, '');

/** Where nobody listens, one for all. */
export function keyAudit(
  { audit, subject }: { audit: Audit; subject: AuditSubject },
  key: string,
): KeyAudit {
  return audit ? new KeyAudit(audit, subject, key) : silent;
}

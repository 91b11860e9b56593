import type { AuditSink } from './audit.ts';
import type { Inbox } from './inbox.ts';
import type { Schedule } from './schedule.ts';

/** One technology that keeps schedule and inbox together, so that a failed task and its item are one commit. */
export interface Store extends Schedule, Inbox {
  /** Connects and checks the schema. Safe to call again. */
  open(): Promise<void>;
  close(): Promise<void>;
  /** Where the trail goes when audit is on and no other sink is given. */
  readonly audit?: AuditSink;
}

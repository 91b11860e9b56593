import type { IdempotencyStore } from 'redrive';
import type { Reason } from '../model/task.ts';
import type { AuditSink } from './audit.ts';
import type { TransactionalIdempotency } from './idempotency.ts';
import type { Inbox } from './inbox.ts';
import type { Schedule } from './schedule.ts';

/** One technology that keeps schedule and inbox together, so that a failed task and its item are one commit. */
export interface Store extends Schedule, Inbox {
  /** Connects and checks the schema. Safe to call again. */
  open(): Promise<void>;
  close(): Promise<void>;
  /** Counts what waits and what is open, of one moment and exactly. It looks at all of it: ask seldom. */
  census(): Promise<Census>;
  /**
   * Called after `erase`: removes what the erased rows left behind on disk, as far as it can be done at once. Answers the
   * copies that it cannot reach, for the operator. Absent: no copies.
   */
  scrub?(): Promise<NotReached[]>;
  /** Where the trail goes when audit is on and no other sink is given. */
  readonly audit?: AuditSink;
  /** Where the keys of idempotent handlers are kept when no other store of keys is given. Closed with the store. */
  readonly idempotency?: IdempotencyStore;
}

/** A store whose keys share transactions with the writes of handlers. */
export interface TransactionalStore extends Store {
  readonly idempotency: TransactionalIdempotency;
}

/** A place where something of an erased message may still be. */
export interface NotReached {
  /** A word for programs. */
  what: string;
  /** Why erase does not reach it, as a sentence. */
  why: string;
  /** What the operator can do about it, as a sentence. */
  todo: string;
}

/** How much there is to do. */
export interface Census {
  /** Tasks that are pending: waiting, blocked and in delivery. */
  pending: number;
  /**
   * Ms until the first task is due that waits for its time only, negative where it is overdue: neither blocked nor in
   * delivery. One whose lease is over is due since then. Absent: there is none.
   */
  oldestDueInMs?: number;
  /** Open items of the inbox. A reason that nothing is open for is absent. */
  open: Partial<Record<Reason, number>>;
}

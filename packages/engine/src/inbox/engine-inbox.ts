import type { Erased } from '../erase/erasure.ts';
import type { Job } from '../model/jobs.ts';
import type {
  ActResult,
  Group,
  GroupQuery,
  Inbox,
  InboxItem,
  ItemPage,
  ItemQuery,
  Member,
} from '../ports/inbox.ts';
import type { Changes, ReplayOptions, Selection } from './selection.ts';

/** Who does it: kept with the items and in the audit trail. */
export interface By {
  by?: string;
}

/** What never worked, and what one does about it. */
export interface EngineInbox {
  item(id: number): Promise<InboxItem | undefined>;
  /** Newest first. `next` says where to go on, also where a page that had to look far has few items or none. */
  items(query?: Omit<ItemQuery, 'limit'> & { limit?: number }): Promise<ItemPage>;
  /** Every failed execution of a task, oldest first. */
  attempts(taskId: number): ReturnType<Inbox['attempts']>;
  /** Items of one cause together, the last seen first. */
  groups(query?: Partial<GroupQuery>): Promise<Group[]>;
  annotate(fingerprint: string, notes: { note?: string; owner?: string } & By): Promise<void>;

  /** Sends one again, with changes if there are any. */
  replay(id: number, options?: Changes & By): Promise<void>;
  /** Writes changes on an open item, for its next replay; undefined takes them away. The original is kept. */
  edit(id: number, changes: (Changes & By) | undefined, options?: By): Promise<InboxItem>;
  /** It was dealt with elsewhere. */
  resolve(id: number, options?: By): Promise<void>;
  /** It is not wanted. It can be restored until it is deleted. */
  discard(id: number, options?: By): Promise<void>;
  /** Opens again what was resolved or discarded. */
  restore(id: number, options?: By): Promise<void>;
  /**
   * Takes everything personal out of a message for good, in whatever it left behind here: store, buffers and audit trail.
   * Answers where something of it may still be.
   */
  erase(id: number, options?: By): Promise<Erased>;

  /** What a bulk job would take: the exact count, and the newest ten. */
  preview(selection: Selection): Promise<{ count: number; sample: InboxItem[] }>;
  /** Sends all of them again, as a job that any instance carries on. */
  replayAll(selection: Selection, options?: ReplayOptions): Promise<JobReport>;
  resolveAll(selection: Selection, options?: By): Promise<JobReport>;
  discardAll(selection: Selection, options?: By): Promise<JobReport>;
  job(id: number): Promise<JobReport>;
  /** The newest first. */
  jobs(page?: { before?: number; limit?: number }): Promise<JobReport[]>;
  /** Who belongs to a job, oldest item first, and what became of each: `result: 'conflict'` for those that it could not send. */
  members(
    job: number,
    query?: { result?: ActResult; after?: number; limit?: number },
  ): Promise<Member[]>;
  pauseJob(id: number, options?: By): Promise<JobReport>;
  /** Also one that stopped by itself: what came back until now is forgiven. */
  resumeJob(id: number, options?: By): Promise<JobReport>;
  /** What was sent stays sent; the rest stays in the inbox. */
  cancelJob(id: number, options?: By): Promise<JobReport>;
}

/** How far a bulk job is. */
export interface JobReport {
  id: number;
  action: Job['action'];
  /** `freezing`: it is found out who belongs to it; nothing has been sent. */
  state: Job['state'] | 'freezing';
  /** Why it stopped by itself. */
  why?: string;
  by?: string;
  /** Items that were asked for by their ids and were not open. */
  ignored?: number;
  /** Members in all, as far as they are known. */
  total: number;
  /** Sent, or closed. */
  done: number;
  /** Somebody else was faster. */
  skipped: number;
  /** Not possible: see `members`. */
  failed: number;
  left: number;
  /** Of those that were sent: not settled yet, taken over by a broker, back in the inbox. */
  underway: number;
  taken: number;
  back: number;
  canary: readonly number[];
  /** The present step of the canary, from 1 on; absent: it is past it, or has none. */
  step?: number;
  perSecond?: number;
  createdAtMs: number;
  finishedAtMs?: number;
}

import type { Failure } from 'redrive';
import type { AttemptRecord, Destination, Reason, TaskContext } from '../model/task.ts';

import type { NewOutboxMessage } from './schedule.ts';

/** What never worked, and what is done about it. Where an answer was lost, asking again does nothing a second time. */
export interface Inbox {
  /** Adds items that have no task (unreadable messages), each with its outbox message in one commit. One of a known id counts one more occurrence. */
  append(items: readonly (RawItem & { outbox?: NewOutboxMessage })[]): Promise<void>;

  item(id: number): Promise<InboxItem | undefined>;
  /** Newest first by id, keyset paging. It may look at a bounded number of items only, and then says where to go on. */
  items(query: ItemQuery): Promise<ItemPage>;
  count(filter: ItemFilter): Promise<number>;
  /** Every failed execution of a task, oldest first. */
  attempts(taskId: number): Promise<(AttemptRecord & { generation: number; atMs: number })[]>;

  /** Groups with open items, or all that are remembered; the last seen first, keyset paging. */
  groups(query: GroupQuery): Promise<Group[]>;
  /** Writes note and owner; undefined leaves one as it is, '' takes it away. False: there is no such group. */
  annotate(fingerprint: string, by: { note?: string; owner?: string }): Promise<boolean>;

  /**
   * Does to each item what `actOn` says, all in one commit. An item that cannot be acted on says so and spoils no other.
   * `under`: only if the document still has that version, with its next value in the same commit, and every result but
   * `done` written beside its member of that job; undefined: it has another version, and nothing was done.
   */
  act(ids: readonly number[], action: ItemAction): Promise<ActResult[]>;
  act(
    ids: readonly number[],
    action: ItemAction,
    under: JobHold<ActResult[]>,
  ): Promise<ActResult[] | undefined>;

  /**
   * Takes everything personal out of a message, wherever it is: payload, context, ordering key, texts of failures, and the
   * query string of a URL; in its tasks, their executions, its items, the samples of their groups and what waits in the
   * outbox. Open items are closed and their tasks cancelled. A task whose URL had a query string gives up its identity: the
   * same message to the same URL is a new task afterwards. `busy`: one of its tasks is pending.
   */
  erase(messageId: string, by?: string): Promise<'erased' | 'busy' | 'unknown'>;

  /** Adds the open items of one page that match to the members of a job; undefined as in `act`. */
  freeze(
    filter: ItemFilter,
    page: { before: number; limit: number },
    under: JobHold<Frozen>,
  ): Promise<Frozen | undefined>;
  /** The members of a job, oldest item first. */
  members(query: MemberQuery): Promise<Member[]>;
  /** What became of what a job has sent. `underway`, `blocked` and `taken` are counted up to `most`. */
  tally(job: number, most: number): Promise<JobTally>;
  /** Forgets a job, its document and its members, at most `limit` of them. True: all is gone. */
  forgetJob(job: number, limit: number): Promise<boolean>;

  /** Deletes items that were closed so long ago, and groups without items or notes, at most `limit`. The oldest first. */
  pruneItems(request: { closedForMs: number; limit: number }): Promise<number>;
}

/** What a task takes into the inbox; the rest is read from its row. */
export interface NewItem {
  reason: Reason;
  failure: Failure;
  /** Items of the same fingerprint are one group. */
  fingerprint: string;
}

/** A message without a task, with its bytes as they came. */
export interface RawItem extends NewItem {
  /** A UUIDv5 of the bytes: the same bytes again are the same item. */
  messageId: string;
  source: string;
  payload: Uint8Array;
  context?: TaskContext;
}

/**
 * `open`: somebody has to look at it. `replayed`: it is a task again. `resolved`: dealt with elsewhere. `discarded`: not
 * wanted. Both can be opened again until they are deleted. `erased`: only its traces are left.
 */
export type ItemState = 'open' | 'replayed' | 'resolved' | 'discarded' | 'erased';

export interface InboxItem extends NewItem {
  id: number;
  /** Absent for a message that could not be read. */
  taskId?: number;
  messageId: string;
  destination: Destination;
  lane: string;
  /** As it failed. What an operator changed stands in `edit`. */
  payload: Uint8Array;
  context?: TaskContext;
  attempt: number;
  maxAttempts: number;
  generation: number;
  orderingKey?: string;
  state: ItemState;
  occurrences: number;
  firstSeenMs: number;
  lastSeenMs: number;
  closedAtMs?: number;
  closedBy?: string;
  /** The bulk job whose replay came back as this item. */
  job?: number;
  /** What the next replay changes, or what the last one has changed. */
  edit?: Edit;
  /** `edited` and `onDead` of its task, kept with payload and context once that is gone or has others. */
  taskEdited?: number;
  taskOnDead?: 'release';
}

/** A change of a message by an operator. What is absent stays as it was. */
export interface Edit {
  payload?: Uint8Array;
  /** All headers, in place of the old ones. */
  headers?: Readonly<Record<string, string>>;
  destination?: Destination;
  by?: string;
}

export interface ItemFilter {
  ids?: readonly number[];
  state?: ItemState;
  reason?: Reason;
  lane?: string;
  fingerprint?: string;
  messageId?: string;
  orderingKey?: string;
  /** The class of the failure. */
  class?: Failure['class'];
  /** In the message or the code of the failure, in capitals or not. */
  text?: string;
  /** Last seen from then on, and before then. */
  fromMs?: number;
  toMs?: number;
}

export interface ItemQuery extends ItemFilter {
  /** Only ids below this one. */
  before?: number;
  limit: number;
}

export interface ItemPage {
  items: InboxItem[];
  /** Where to go on; absent: there are no more. */
  next?: number;
}

/** Items of one cause. */
export interface Group {
  fingerprint: string;
  lane: string;
  /** Of the newest item. */
  reason: Reason;
  failure: Failure;
  open: number;
  firstSeenMs: number;
  lastSeenMs: number;
  note?: string;
  owner?: string;
}

export interface GroupQuery {
  fingerprint?: string;
  lane?: string;
  /** Also those without open items. */
  all?: boolean;
  before?: { lastSeenMs: number; fingerprint: string };
  limit: number;
}

/** So many executions of a task are shown at most, the oldest. */
export const MAX_ATTEMPTS = 10_000;

/** What is done to items, as data. */
export type ItemAction =
  | { type: 'replay'; by?: string; job?: number; trial?: true; edit?: Edit }
  | { type: 'edit'; by?: string; edit: Edit | undefined }
  | { type: 'resolve' | 'discard' | 'restore'; by?: string }
  /** Does nothing: for a member of a job that cannot be acted on. */
  | { type: 'pass' };

/**
 * `closed`: somebody was faster. `open`: there is nothing to restore. `gone`: its task came back and has another item.
 * `unaddressed`: it has no destination. `conflict`: the same message is already known at that destination. `fault`: the
 * store cannot write it.
 */
export const actResults = [
  'done',
  'unknown',
  'closed',
  'open',
  'gone',
  'unaddressed',
  'conflict',
  'fault',
] as const;
export type ActResult = (typeof actResults)[number];

/** The document of a job as its runner knows it, and what it becomes. */
export interface JobHold<T> {
  job: number;
  version: number;
  /** May be called again, with another result: the last one counts, once it is committed. */
  next(result: T): unknown;
}

export interface Frozen {
  added: number;
  /** Where to go on; absent: all are there. */
  next?: number;
}

export interface MemberQuery {
  job: number;
  /** Only those with this result; undefined: whatever it is. No store can tell `done` from not yet: it gives both. */
  result?: ActResult;
  /** Only items above this id. */
  after: number;
  /** Only items up to this id; absent: all. */
  upTo?: number;
  limit: number;
}

export interface Member {
  itemId: number;
  /** Absent: done, or its turn has not come yet; the document of the job knows. */
  result?: ActResult;
}

/** All as of one moment. */
export interface JobTally {
  /** Sent, and still pending; and how many of those wait behind others of their ordering key. */
  underway: number;
  blocked: number;
  /** A broker took them over and they have not come back, and when it took the last of them. */
  taken: number;
  takenAtMs?: number;
  /** An operator cancelled them on their way. */
  cancelled: number;
  /** They came back into the inbox, whatever became of them there. */
  back: number;
  /** Why the last of those came back. */
  failure?: Failure;
}

/** Where the document of a job is kept. */
export const jobKey = (job: number | ''): string => `job:${job}`;

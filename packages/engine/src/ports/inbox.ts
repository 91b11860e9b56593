import type { Failure } from 'redrive';
import type { AttemptRecord, Destination, Reason, TaskContext } from '../task.ts';

import type { NewOutboxMessage } from './schedule.ts';

/** What never worked. For now it is filled and read; actions on it follow. */
export interface Inbox {
  /** Adds items that have no task (unreadable messages), each with its outbox message in one commit. One of a known id counts one more occurrence. */
  append(items: readonly (RawItem & { outbox?: NewOutboxMessage })[]): Promise<void>;
  item(id: number): Promise<InboxItem | undefined>;
  /** Newest first by id, keyset paging. */
  items(query: ItemQuery): Promise<InboxItem[]>;
  /** Every failed execution of a task, oldest first. */
  attempts(taskId: number): Promise<(AttemptRecord & { generation: number; atMs: number })[]>;
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

export interface InboxItem extends NewItem {
  id: number;
  /** Absent for a message that could not be read. */
  taskId?: number;
  messageId: string;
  destination: Destination;
  lane: string;
  payload: Uint8Array;
  context?: TaskContext;
  attempt: number;
  maxAttempts: number;
  generation: number;
  state: 'open' | 'replayed' | 'resolved' | 'discarded';
  occurrences: number;
  firstSeenMs: number;
  lastSeenMs: number;
}

export interface ItemQuery {
  state?: InboxItem['state'];
  reason?: Reason;
  lane?: string;
  fingerprint?: string;
  messageId?: string;
  before?: number;
  limit: number;
}

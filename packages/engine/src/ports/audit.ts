import type { AuditEvent, Duration } from 'redrive';

export type { AuditEvent } from 'redrive';
export { REGISTER_AGAIN_MS } from 'redrive/internal';

/** Takes the trail of decisions. The engine buffers, bounds and counts; a sink only writes. */
export interface AuditSink {
  /** Writes in order, all or nothing. */
  write(events: readonly AuditEvent[]): Promise<void>;
  /**
   * The newest first, keyset paging. It may look at a bounded number of events only, and then says where to go on: a page
   * that had to look far has few events, or none. Times are taken to grow with the ids, about: where it looked at nothing
   * but events before `fromMs`, and had to stop there, that is the end.
   */
  read?(query: AuditQuery): Promise<AuditPage>;
  /**
   * Deletes events older than that, oldest first and at most `limit`; answers how many. A `policy_registered` stays for
   * another `REGISTER_AGAIN_MS`: decisions that are kept may need it.
   */
  prune?(olderThanMs: number, limit: number): Promise<number>;
  /**
   * Rewrites every event of a message with `eraseEvent`; answers how many it rewrote. Events of that message that are
   * written within `ERASED_FOR_MS` afterwards are stored erased: an instance may have held them back. Without this method
   * the engine's `erase` says that the events in this sink were not reached.
   */
  erase?(messageId: string): Promise<number>;
  close?(): Promise<void>;
}

export interface AuditQuery {
  /** Only ids below this one. */
  before?: number;
  limit: number;
  /** The `event_type`. */
  type?: string;
  /** Of the task that it is about, as `messageIdOf` finds it. */
  messageId?: string;
  /** From then on, and before then, by the event's own time. */
  fromMs?: number;
  toMs?: number;
}

export interface AuditPage {
  events: AuditRecord[];
  /** Where to go on; absent: there are no more. */
  next?: number;
}

/** An event as it was written, and its number in the sink. */
export interface AuditRecord {
  id: number;
  event: AuditEvent;
}

export interface AuditOptions {
  /** Where the trail goes; the store's own sink unless given. */
  sink?: AuditSink;
  /** Also an event for everything that worked. Off: success then costs nothing. */
  successes?: boolean;
  /** Only the fields of the contract, without the object `redrive`: such a trail cannot be replayed. */
  strict?: boolean;
  /** How long events are kept, by a sink that can prune; for good unless given. At least an hour. */
  retention?: Duration;
}

/** So long after an erase a sink still expects events that were made before it. The trail gives up on an event in minutes. */
export const ERASED_FOR_MS = 3_600_000;

/**
 * Which message an event is about: what somebody did by hand names it beside the other fields, a decision among those of
 * Redrive, which a strict trail does not have.
 */
export function messageIdOf({ message_id: named, redrive }: AuditEvent): string | undefined {
  const id = named ?? redrive?.['message_id'];
  return typeof id === 'string' ? id : undefined;
}

import type { AuditEvent, Duration } from 'redrive';

export type { AuditEvent } from 'redrive';

/** Takes the trail of decisions. The engine buffers, bounds and counts; a sink only writes. */
export interface AuditSink {
  /** Writes in order, all or nothing. */
  write(events: readonly AuditEvent[]): Promise<void>;
  /**
   * Deletes events older than that, oldest first and at most `limit`; answers how many. A `policy_registered` stays for
   * another `REGISTER_AGAIN_MS`: decisions that are kept may need it.
   */
  prune?(olderThanMs: number, limit: number): Promise<number>;
  close?(): Promise<void>;
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

/** A policy in use is registered again so often: whatever is cut from a trail's beginning, the rest replays alone. */
export const REGISTER_AGAIN_MS = 3_600_000;

/** Takes the trail of decisions. The engine buffers, bounds and counts; a sink only writes. */
export interface AuditSink {
  /** Writes in order, all or nothing. */
  write(events: readonly AuditEvent[]): Promise<void>;
  close?(): Promise<void>;
}

/** One event: its type, and every fact of the decision, `snake_case` as on any wire. */
export interface AuditEvent {
  event_type: string;
  /** ISO-8601 UTC. */
  timestamp: string;
  /** Which instance, and its how manieth event: a gap would show. */
  instance: string;
  sequence: number;
  [fact: string]: unknown;
}

import type { AuditEvent, AuditSink } from '../../ports/audit.ts';

/** Keeps the newest events in this process. */
export class MemoryAudit implements AuditSink {
  #events: AuditEvent[] = [];
  readonly #maxEvents: number;

  constructor(maxEvents = 10_000) {
    this.#maxEvents = maxEvents;
  }

  /** The newest events, oldest first. */
  get events(): readonly AuditEvent[] {
    return this.#events;
  }

  async write(events: readonly AuditEvent[]): Promise<void> {
    // As JSON, like any other sink: what cannot be written fails here too, and later changes do not matter.
    const written = events.map((event) => JSON.parse(JSON.stringify(event)) as AuditEvent);
    this.#events = [...this.#events, ...written].slice(-this.#maxEvents);
  }
}

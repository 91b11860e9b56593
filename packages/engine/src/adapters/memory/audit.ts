import type { Clock } from 'redrive';
import { systemClock } from 'redrive/internal';
import { ErasedMessages } from '../../erase/erased-messages.ts';
import {
  type AuditEvent,
  type AuditPage,
  type AuditQuery,
  type AuditSink,
  messageIdOf,
} from '../../ports/audit.ts';

/** Keeps the newest events in this process. */
export class MemoryAudit implements AuditSink {
  #events: AuditEvent[] = [];
  #lastId = 0;
  readonly #erased = new ErasedMessages();
  readonly #maxEvents: number;
  readonly #clock: Clock;

  constructor(maxEvents = 10_000, clock: Clock = systemClock) {
    this.#maxEvents = maxEvents;
    this.#clock = clock;
  }

  /** The newest events, oldest first. */
  get events(): readonly AuditEvent[] {
    return this.#events;
  }

  async write(events: readonly AuditEvent[]): Promise<void> {
    // As JSON, like any other sink: what cannot be written fails here too, and later changes do not matter.
    const written = events
      .map((event) => JSON.parse(JSON.stringify(event)) as AuditEvent)
      .map((event) => this.#erased.kept(event, this.#clock.now()));
    this.#events = [...this.#events, ...written].slice(-this.#maxEvents);
    this.#lastId += written.length;
  }

  async erase(messageId: string): Promise<number> {
    const nowMs = this.#clock.now();
    this.#erased.add(messageId, nowMs);
    const before = this.#events;
    this.#events = before.map((event) => this.#erased.kept(event, nowMs));
    return this.#events.filter((event, i) => event !== before[i]).length;
  }

  async read({ before = Infinity, limit, ...filter }: AuditQuery): Promise<AuditPage> {
    const firstId = this.#lastId - this.#events.length + 1;
    const found = this.#events
      .map((event, i) => ({ id: firstId + i, event }))
      .filter(({ id, event }) => id < before && matches(event, filter))
      .toReversed();
    const events = found
      .slice(0, Math.max(0, limit))
      .map(({ id, event }) => ({ id, event: structuredClone(event) }));
    const next = found.length > events.length ? events.at(-1)?.id : undefined;
    return { events, ...(next === undefined ? {} : { next }) };
  }
}

function matches(event: AuditEvent, filter: Omit<AuditQuery, 'before' | 'limit'>): boolean {
  const { type, messageId, fromMs = -Infinity, toMs = Infinity } = filter;
  const atMs = Date.parse(event.timestamp);
  return (
    (type === undefined || event.event_type === type) &&
    (messageId === undefined || messageIdOf(event) === messageId) &&
    atMs >= fromMs &&
    atMs < toMs
  );
}

import { eraseEvent } from 'redrive';
import { type AuditEvent, ERASED_FOR_MS, messageIdOf } from '../ports/audit.ts';

const MAX_MESSAGES = 10_000;

/** Messages that were erased lately: events of theirs that come late are erased too. */
export class ErasedMessages {
  /** When each was erased, the oldest first. */
  readonly #times = new Map<string, number>();

  add(messageId: string, nowMs: number): void {
    this.#times.delete(messageId);
    this.#times.set(messageId, nowMs);
    for (const [id, atMs] of this.#times) {
      if (this.#times.size <= MAX_MESSAGES && nowMs - atMs < ERASED_FOR_MS) break;
      this.#times.delete(id);
    }
  }

  /** The event as it may be kept: erased if its message was, else the event itself. */
  kept(event: AuditEvent, nowMs: number): AuditEvent {
    if (this.#times.size === 0) return event;
    const id = messageIdOf(event);
    const atMs = id === undefined ? undefined : this.#times.get(id);
    return atMs === undefined || nowMs - atMs >= ERASED_FOR_MS ? event : eraseEvent(event, nowMs);
  }
}

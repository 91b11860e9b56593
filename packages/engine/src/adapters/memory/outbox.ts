import type { NewOutboxMessage, OutboxMessage } from '../../ports/schedule.ts';

/** Messages that wait to be published, each leased to who takes it. */
export class MemoryOutbox {
  readonly #messages = new Map<
    number,
    { message: NewOutboxMessage; visibleAtMs: number; messageId: string | undefined }
  >();
  #lastId = 0;

  /** `messageId`: of the message that it tells of. */
  send(message: NewOutboxMessage, messageId: string | undefined, nowMs: number): void {
    this.#lastId += 1;
    const copy = { ...message, payload: new Uint8Array(message.payload) };
    this.#messages.set(this.#lastId, { message: copy, visibleAtMs: nowMs, messageId });
  }

  take(limit: number, leaseMs: number, nowMs: number): OutboxMessage[] {
    const due = [...this.#messages].filter(([, { visibleAtMs }]) => visibleAtMs <= nowMs);
    return due.slice(0, limit).map(([id, entry]) => {
      entry.visibleAtMs = nowMs + leaseMs;
      return { ...entry.message, id };
    });
  }

  drop(ids: readonly number[]): void {
    for (const id of ids) this.#messages.delete(id);
  }

  dropOf(messageId: string): void {
    for (const [id, entry] of this.#messages) {
      if (entry.messageId === messageId) this.#messages.delete(id);
    }
  }
}

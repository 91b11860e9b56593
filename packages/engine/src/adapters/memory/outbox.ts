import type { NewOutboxMessage, OutboxFilter, OutboxMessage } from '../../ports/schedule.ts';

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

  take(
    limit: number,
    leaseMs: number,
    { kinds, maxBytes = Infinity }: OutboxFilter,
    nowMs: number,
  ): OutboxMessage[] {
    const taken: OutboxMessage[] = [];
    let bytes = 0;
    for (const [id, entry] of this.#messages) {
      const { message, visibleAtMs } = entry;
      if (visibleAtMs > nowMs || kinds?.includes(message.destination.kind) === false) continue;
      bytes += message.payload.length;
      if (taken.length >= limit || (taken.length > 0 && bytes > maxBytes)) break;
      entry.visibleAtMs = nowMs + leaseMs;
      taken.push({ ...message, id });
    }
    return taken;
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

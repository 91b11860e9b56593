import type { EngineEvent, InboxEntry } from '@redrive/engine';
import type { Logger } from 'pino';

const MOST = 1000;

/** What an operator should find in the log without being asked: what never worked, and what cannot. */
export class Notices {
  readonly #log: Logger;
  /** Nobody here can hand tasks over to queues. */
  readonly #isQueueless: boolean;
  /** The lanes of queues that were told of. */
  readonly #told = new Set<string>();

  constructor({ log, isQueueless }: { log: Logger; isQueueless: boolean }) {
    this.#log = log;
    this.#isQueueless = isQueueless;
  }

  /** A group at once, and then at most once a minute, with its count. */
  entered({ lane, reason, count, fingerprint, id }: InboxEntry): void {
    this.#log.warn({ lane, reason, count, fingerprint, message_id: id }, 'entered the inbox');
  }

  engineEvent(event: EngineEvent): void {
    if (!this.#isQueueless || event.type !== 'accepted' || !event.lane.startsWith('queue:')) return;
    if (this.#told.has(event.lane) || this.#told.size >= MOST) return;
    this.#told.add(event.lane);
    this.#log.warn(
      { lane: event.lane },
      'accepted, and waits: there is no broker here. Set RABBITMQ_URL, and it is delivered.',
    );
  }
}

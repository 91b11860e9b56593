/** Whether due retries can be sent at all. A change is logged, and `/health/ready` reports the trouble while it lasts. */
import type { Lane } from '@redrive/notifications';
import type { Logger } from 'pino';
import { hiddenUrl } from '../settings/hide.ts';

/** A receiver that takes every second request would otherwise fill the log. */
const LOG_EVERY_MS = 60_000;

type Level = 'info' | 'warn';

export class DeliveryTrouble {
  readonly #log: Pick<Logger, Level>;
  readonly #to: string;
  /** Of each lane by itself: one has connections of its own, and says nothing about the other. */
  readonly #troubles = new Map<Lane, string>();
  /** What the log says last, and when each kind of line was written. */
  #said: Level = 'info';
  readonly #saidAtMs: Record<Level, number> = { info: -Infinity, warn: -Infinity };

  constructor(destination: string, log: Pick<Logger, Level>) {
    this.#log = log;
    this.#to = /^https?:/.test(destination) ? hiddenUrl(destination) : destination;
  }

  /** In a sentence; undefined: the last one of each lane was sent. */
  get trouble(): string | undefined {
    const [first] = this.#troubles.values();
    return first;
  }

  /** `nowMs` is monotonic. */
  notSent(lane: Lane, why: string, nowMs: number): void {
    const reason = why.replace(/\.$/, '');
    const trouble = `Retries of notifications cannot be sent to NOTIFICATION_DELIVERY (${this.#to}): ${reason}. They wait, and no attempt is counted.`;
    this.#troubles.set(lane, trouble);
    this.#say('warn', trouble, nowMs);
  }

  sent(lane: Lane, nowMs: number): void {
    this.#troubles.delete(lane);
    if (this.#troubles.size > 0) return;
    this.#say('info', `Retries of notifications are sent to ${this.#to} again.`, nowMs);
  }

  /** What is held back here is said by the next retry after that time, if it still holds then. */
  #say(level: Level, text: string, nowMs: number): void {
    if (this.#said === level || nowMs - this.#saidAtMs[level] < LOG_EVERY_MS) return;
    this.#said = level;
    this.#saidAtMs[level] = nowMs;
    this.#log[level](text);
  }
}

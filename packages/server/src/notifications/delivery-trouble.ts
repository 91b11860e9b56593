/** Whether due retries can be sent at all. A change is logged, and `/health/ready` reports the trouble while it lasts. */
import type { Logger } from 'pino';
import { hiddenUrl } from '../settings/hide.ts';

export class DeliveryTrouble {
  readonly #log: Pick<Logger, 'info' | 'warn'>;
  readonly #to: string;
  #trouble: string | undefined;

  constructor(destination: string, log: Pick<Logger, 'info' | 'warn'>) {
    this.#log = log;
    this.#to = /^https?:/.test(destination) ? hiddenUrl(destination) : destination;
  }

  /** In a sentence; undefined: the last one was sent. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  notSent(why: string): void {
    const isNew = this.#trouble === undefined;
    const reason = why.replace(/\.$/, '');
    this.#trouble = `Retries of notifications cannot be sent to NOTIFICATION_DELIVERY (${this.#to}): ${reason}. They wait, and no attempt is counted.`;
    if (isNew) this.#log.warn(this.#trouble);
  }

  sent(): void {
    if (this.#trouble === undefined) return;
    this.#trouble = undefined;
    this.#log.info(`Retries of notifications are sent to ${this.#to} again.`);
  }
}

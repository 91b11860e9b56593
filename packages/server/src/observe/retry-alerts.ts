/** Measures retries per minute by the audit trail, and raises an alert where a category has too many. */
import type { AuditEvent, Engine } from '@redrive/engine';
import type { Logger } from 'pino';
import { type Clock, createRetryRates, type RetryRateAlert, type RetryRates } from 'redrive';
import { Webhook } from './webhook.ts';

interface RetryAlertOptions {
  /** Retries per minute and category; absent: no alerts. */
  perMinute?: number | undefined;
  url?: string | undefined;
  serviceName: string;
  instance: string;
  clock: Clock;
  log: Logger;
}

const EVERY_MS = 5000;

export class RetryAlerts {
  readonly #options: RetryAlertOptions;
  readonly #rates: RetryRates;
  readonly #webhook: Webhook | undefined;
  #timer: unknown;

  constructor(options: RetryAlertOptions) {
    const { perMinute, url, clock } = options;
    this.#options = options;
    this.#rates = createRetryRates(perMinute === undefined ? {} : { perMinute });
    this.#webhook = url === undefined ? undefined : new Webhook({ url, clock });
  }

  attach(engine: Pick<Engine, 'submit'>): void {
    this.#webhook?.attach(engine);
  }

  /** Events that are in the trail. */
  written(events: readonly AuditEvent[]): void {
    const nowMs = this.#options.clock.monotonic();
    for (const event of events) {
      // An alert about retries of alerts would make the next one.
      if (event['operation'] !== this.#webhook?.lane) this.#rates.add(event, nowMs);
    }
  }

  /** Retries of the last minute, by category. */
  rates(): { category: string; perMinute: number }[] {
    return this.#rates.rates(this.#options.clock.monotonic());
  }

  start(): void {
    this.stop();
    const { clock } = this.#options;
    for (const alert of this.#rates.look(clock.monotonic())) void this.#tell(alert);
    this.#timer = clock.setTimer(() => this.start(), EVERY_MS, true);
  }

  stop(): void {
    this.#options.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  async #tell({ state, category, perMinute, limit }: RetryRateAlert): Promise<void> {
    const { log, serviceName, instance } = this.#options;
    const numbers = { category, per_minute: perMinute, limit };
    if (state === 'raised') log.warn(numbers, 'too many retries a minute in this category');
    else log.info(numbers, 'retries a minute are below the limit again in this category');
    const body = { event: 'retry_rate', state, service: serviceName, instance, ...numbers };
    try {
      await this.#webhook?.tell(`retry-rate:${state}:${category}`, body);
    } catch (err) {
      log.warn({ err, category }, 'the webhook of retry rates could not be told');
    }
  }
}

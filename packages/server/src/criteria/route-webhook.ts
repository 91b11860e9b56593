/** Posts failed evaluations of one audience to its webhook: the first of a cause at once, the others once a minute. */
import type { Engine } from '@redrive/engine';
import { Webhook, type WebhookOptions, WINDOW_MS } from '../observe/webhook.ts';
import { type Audience, audienceOf } from './audience.ts';
import type { FailedEvaluation } from './error-log.ts';

/** Failures of one criterion and one code since the last post about them. */
interface Cause {
  last: FailedEvaluation;
  count: number;
  firstAtMs: number;
  lastAtMs: number;
}

type RouteOptions = WebhookOptions & { audience: Audience };

export class RouteWebhook {
  readonly #options: RouteOptions;
  readonly #webhook: Webhook;
  /** By criterion and code: a handful. */
  readonly #causes = new Map<string, Cause>();
  #timer: unknown;

  constructor(options: RouteOptions) {
    this.#options = options;
    this.#webhook = new Webhook(options);
  }

  attach(engine: Pick<Engine, 'submit'>): void {
    this.#webhook.attach(engine);
  }

  add(failed: FailedEvaluation): void {
    const { audience, clock } = this.#options;
    if (audienceOf(failed.error.code) !== audience) return;
    const key = `${failed.criterion}:${failed.error.code}`;
    const atMs = clock.now();
    const cause = this.#causes.get(key);
    if (!cause) {
      this.#causes.set(key, none(failed));
      void this.#tell(key, { last: failed, count: 1, firstAtMs: atMs, lastAtMs: atMs });
    } else {
      if (cause.count === 0) cause.firstAtMs = atMs;
      cause.last = failed;
      cause.count += 1;
      cause.lastAtMs = atMs;
    }
    this.#timer ??= clock.setTimer(() => this.#endWindow(), WINDOW_MS, true);
  }

  stop(): void {
    this.#options.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #endWindow(): void {
    this.#timer = undefined;
    for (const [key, cause] of this.#causes) {
      if (cause.count === 0) this.#causes.delete(key);
      else {
        this.#causes.set(key, none(cause.last));
        void this.#tell(key, cause);
      }
    }
    if (this.#causes.size === 0) return;
    this.#timer = this.#options.clock.setTimer(() => this.#endWindow(), WINDOW_MS, true);
  }

  async #tell(key: string, cause: Cause): Promise<void> {
    const { audience, log } = this.#options;
    try {
      await this.#webhook.tell(`criterion-webhook:${audience}:${key}`, this.#bodyOf(cause));
    } catch (err) {
      // The post of the next window includes these.
      const known = this.#causes.get(key);
      if (known) {
        if (known.count === 0) known.lastAtMs = cause.lastAtMs;
        known.count += cause.count;
        known.firstAtMs = cause.firstAtMs;
      }
      log.warn({ err, audience, cause: key }, 'the webhook of a route could not be told');
    }
  }

  #bodyOf({ last, count, firstAtMs, lastAtMs }: Cause): object {
    const { audience, serviceName, instance } = this.#options;
    const { criterion, error, entityId } = last;
    return {
      event: 'criterion_errors',
      audience,
      service: serviceName,
      instance,
      criterion,
      code: error.code,
      message: error.message,
      count,
      first_at: new Date(firstAtMs).toISOString(),
      last_at: new Date(lastAtMs).toISOString(),
      entity_id: entityId ?? null,
    };
  }
}

function none(last: FailedEvaluation): Cause {
  return { last, count: 0, firstAtMs: 0, lastAtMs: 0 };
}

import { type Engine, type InboxEntry, isEngineError, laneOf } from '@redrive/engine';
import type { Logger } from 'pino';
import type { Clock } from 'redrive';
import { shortened } from './log/redact.ts';

export interface WebhookOptions {
  url: string;
  serviceName: string;
  instance: string;
  clock: Clock;
  log: Logger;
}

/** A group is told of at most once in this time. */
export const WINDOW_MS = 60_000;
const MAX_TEXT = 1024;

/** A URL that is told of causes. It is told by tasks of the engine's own, so durable and retried like any other. */
export class Webhook {
  readonly #url: string;
  readonly #clock: Clock;
  #engine: Pick<Engine, 'submit'> | undefined;
  /** Where its tasks go. */
  readonly lane: string;

  constructor({ url, clock }: Pick<WebhookOptions, 'url' | 'clock'>) {
    this.#url = url;
    this.#clock = clock;
    this.lane = laneOf({ kind: 'http', address: url });
  }

  attach(engine: Pick<Engine, 'submit'>): void {
    this.#engine = engine;
  }

  /** Several instances that see the same cause at the same time tell of it once. False: the engine was stopped before. */
  async tell(cause: string, body: object): Promise<boolean> {
    const window = Math.floor(this.#clock.now() / WINDOW_MS);
    // Each instance counts for itself: the first to tell is enough.
    const options = { dedupeKey: `${cause}:${window}`, onConflict: 'duplicate' } as const;
    try {
      await this.#engine?.submit(this.#url as `http://${string}`, body, options);
      return true;
    } catch (error) {
      if (!isEngineError(error) || error.code !== 'ENGINE_STOPPED') throw error;
      return false;
    }
  }
}

/**
 * Tells a URL what entered the inbox. What comes of the webhook itself is never told, or one failure would make the next.
 */
export function inboxWebhook(options: WebhookOptions) {
  const { log } = options;
  const webhook = new Webhook(options);

  async function onEntry(entry: InboxEntry): Promise<void> {
    const { fingerprint, lane, count } = entry;
    if (lane === webhook.lane) {
      log.warn(
        { lane, fingerprint, count },
        'something failed where the inbox webhook is: it is not told there',
      );
      return;
    }
    const isTold = await webhook.tell(`inbox-webhook:${fingerprint}`, bodyOf(entry, options));
    // What was kept back until the stop comes too late: it is in the inbox all the same.
    if (!isTold) log.warn({ lane, fingerprint, count }, 'stopped: the inbox webhook was not told');
  }

  return { onEntry, attach: (to: Pick<Engine, 'submit'>): void => webhook.attach(to) };
}

function bodyOf(entry: InboxEntry, { serviceName, instance }: WebhookOptions): object {
  const { class: failureClass, code, message, status } = entry.failure;
  return {
    event: 'inbox_entry',
    service: serviceName,
    instance,
    fingerprint: entry.fingerprint,
    lane: entry.lane,
    reason: entry.reason,
    count: entry.count,
    first_at: new Date(entry.firstAtMs).toISOString(),
    last_at: new Date(entry.lastAtMs).toISOString(),
    message_id: entry.id,
    error: {
      class: failureClass,
      code: code ?? null,
      message: message === undefined ? null : shortened(message, MAX_TEXT),
      status: status ?? null,
    },
  };
}

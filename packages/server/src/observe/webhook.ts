import { type Engine, type InboxEntry, isEngineError, laneOf } from '@redrive/engine';
import type { Logger } from 'pino';
import type { Clock } from 'redrive';
import { shortened } from './redact.ts';

interface WebhookOptions {
  url: string;
  serviceName: string;
  instance: string;
  clock: Clock;
  log: Logger;
}

/** A group is told of at most once in this time. */
export const WINDOW_MS = 60_000;
const MAX_TEXT = 1024;

/**
 * Tells a URL what entered the inbox. It goes there as a task of the engine's own, so it is durable and retried like any
 * other; what comes of the webhook itself is never told, or one failure would make the next.
 */
export function inboxWebhook(options: WebhookOptions) {
  const { url, clock, log } = options;
  const own = laneOf({ kind: 'http', address: url });
  let engine: Pick<Engine, 'submit'> | undefined;

  async function onEntry(entry: InboxEntry): Promise<void> {
    const { fingerprint, lane, count } = entry;
    if (lane === own) {
      log.warn(
        { lane, fingerprint, count },
        'something failed where the inbox webhook is: it is not told there',
      );
      return;
    }
    // Several instances that see the same group at the same time tell of it once.
    const window = Math.floor(clock.now() / WINDOW_MS);
    const dedupeKey = `inbox-webhook:${fingerprint}:${window}`;
    try {
      await engine?.submit(url as `http://${string}`, bodyOf(entry, options), { dedupeKey });
    } catch (error) {
      // What was kept back until the stop comes too late: it is in the inbox all the same.
      if (!isEngineError(error) || error.code !== 'ENGINE_STOPPED') throw error;
      log.warn({ lane, fingerprint, count }, 'stopped: the inbox webhook was not told');
    }
  }

  return {
    onEntry,
    attach: (to: Pick<Engine, 'submit'>): void => {
      engine = to;
    },
  };
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

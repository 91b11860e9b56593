import type { FirstPublish } from './carried.ts';
import { type Headers, isRepublished, textOf } from './headers.ts';
import { isQueueName } from './retry-fields.ts';

/** One time that a broker gave a message up. */
export interface Death extends FirstPublish {
  queue: string;
  /** In the broker's words: rejected, expired, maxlen, delivery_limit. */
  reason?: string;
}

/** Newest first. What is no death as brokers write them is passed over. */
export function deathsOf(headers: Headers): Death[] {
  const given = headers['x-death'];
  if (!Array.isArray(given)) return [];
  return given.slice(0, MAX_DEATHS).flatMap((death: unknown) => {
    const { queue, exchange, ...rest } = Object(death) as Record<string, unknown>;
    const name = textOf(queue);
    if (!isQueueName(name)) return [];
    const keys = rest['routing-keys'];
    const reason = reasonOf(rest['reason']);
    const routingKey = Array.isArray(keys) ? textOf(keys[0]) : undefined;
    return [
      {
        queue: name,
        ...(reason === undefined ? {} : { reason }),
        ...(typeof exchange === 'string' ? { exchange } : {}),
        ...(routingKey === undefined ? {} : { routingKey }),
      },
    ];
  });
}

/** The newest death that is no expiry, since many wait in a queue of their own before they are looked at; else what headers say. */
export function originOf(headers: Headers, deaths: readonly Death[]): Death | undefined {
  const death = deaths.find(({ reason }) => reason !== 'expired');
  const queue = [death?.queue, headers['x-first-death-queue'], headers['x-original-queue']]
    .map(textOf)
    .find(isQueueName);
  if (queue === undefined) return undefined;
  const reason =
    death?.reason ??
    reasonOf(headers['x-first-death-reason']) ??
    deaths[0]?.reason ??
    brokerWord(textOf(headers['x-death-reason']));
  const origin = { queue, ...(reason === undefined ? {} : { reason }) };
  // How Redrive published it says nothing of how it was published first.
  return isRepublished(headers) ? origin : { ...death, ...origin };
}

/** The text, where it is no more than the broker's own reason. */
export function brokerWord(text: string | undefined): string | undefined {
  const word = text?.trim().toLowerCase().replaceAll('-', '_');
  return word !== undefined && words.has(word) ? word : undefined;
}

const words = new Set(['rejected', 'expired', 'maxlen', 'delivery_limit']);

/** A message that died more often than this walks in circles anyway. */
const MAX_DEATHS = 100;

function reasonOf(value: unknown): string | undefined {
  const text = textOf(value);
  return brokerWord(text) ?? text;
}

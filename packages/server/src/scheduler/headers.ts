import { bodyMark } from '@redrive/engine';
import { isUuid } from './retry-fields.ts';

/** Headers as they come: anybody may have written anything into them. */
export type Headers = Readonly<Record<string, unknown>>;

/** Counts past this are one: it is the most that the engine takes. */
export const MAX_COUNT = 1_000_000_000;

/** A text that is not empty. Some clients send texts as bytes. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value || undefined;
  if (!(value instanceof Uint8Array)) return undefined;
  return Buffer.from(value).toString('utf8') || undefined;
}

/** A whole number from 0 on, also one that is written as a text. */
export function countOf(value: unknown): number | undefined {
  const isText = typeof value === 'string' && /^\d{1,15}$/.test(value);
  const count = isText || typeof value === 'bigint' ? Number(value) : value;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 0) return undefined;
  return Math.min(count, MAX_COUNT);
}

/** Redrive sent it before. */
export function isRepublished(headers: Headers): boolean {
  const mark = headers['x-retry-scheduler'];
  return mark === true || textOf(mark) === 'true';
}

/**
 * The id that it was sent with. Consumers that pass headers on pass this one on too, in other messages: by the mark of the
 * body, those are told apart from the one that Redrive sent.
 */
export function sentIdOf(headers: Headers, payload: Uint8Array): string | undefined {
  const id = textOf(headers['x-message-id']);
  const mark = textOf(headers[BODY_MARK]);
  if (!isUuid(id) || (mark !== undefined && mark !== bodyMark(payload))) return undefined;
  return id.toLowerCase();
}

/** Redrive sent it, or a message whose headers it has. */
export function isMarked(headers: Headers): boolean {
  return textOf(headers[BODY_MARK]) !== undefined;
}

/**
 * The generation in which Redrive sent this very message. Only beside the count of the same sending: by a count of
 * somebody else's an engine would take a new failure for an old one, and drop it.
 */
export function generationOf(
  headers: Headers,
  messageId: string,
  payload: Uint8Array,
): number | undefined {
  const generation = countOf(headers['x-redrive-generation']);
  if (generation === undefined || countOf(headers['x-retry-count']) === undefined) return undefined;
  if (!isMarked(headers)) return undefined;
  return sentIdOf(headers, payload) === messageId ? generation : undefined;
}

/** As W3C has it; anything else is just a header. */
export function traceparentOf(headers: Headers): string | undefined {
  const text = textOf(headers['traceparent']);
  return text !== undefined && traceparent.test(text) ? text : undefined;
}

const BODY_MARK = 'x-redrive-body';
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

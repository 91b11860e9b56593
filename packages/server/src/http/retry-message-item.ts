/** A RetryMessage, as consumers publish it to RETRY_QUEUE, posted as it is: an item of the API in other words. */
import { type Static, Type } from 'typebox';
import type { WireFault } from './reading/faults.ts';
import { checkOf } from './reading/validate.ts';
import { classifications, type RetryItem } from './schemas/retries.ts';
import { choice, name, Uuid } from './schemas/common.ts';
import { payloadOf } from '../scheduler/retry-json.ts';

const MAX_COUNT = 0x7fff_ffff;

export const RetryMessageItem = Type.Object(
  {
    message_id: Uuid,
    original_queue: name(255),
    original_payload: Type.Unsafe<unknown>({
      type: ['string', 'object'],
      description: 'Base64, or a Buffer as Node writes one: {"type": "Buffer", "data": [...]}.',
    }),
    error_reason: Type.Optional(Type.String()),
    retry_count: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_COUNT })),
    max_retries: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_COUNT })),
    next_retry_at_ms: Type.Optional(
      Type.Unsafe<number | string>({
        type: ['number', 'string'],
        pattern: '^\\d{1,16}$',
        minimum: 0,
        description: 'Ms since the epoch. In the past, 0 or absent: computed.',
      }),
    ),
    classification: Type.Optional(
      Type.Union([choice(classifications), Type.Integer({ minimum: 0, maximum: 3 })]),
    ),
  },
  {
    $id: 'RetryMessage',
    additionalProperties: false,
    description: 'What a consumer publishes to the retry queue, in the words of that queue.',
  },
);

const check = checkOf(RetryMessageItem);

/** Said in the words of the queue: it names where the message failed, not where it should go. */
export function isRetryMessage(item: unknown): item is Record<string, unknown> {
  if (typeof item !== 'object' || item === null || Object.hasOwn(item, 'destination')) return false;
  return Object.hasOwn(item, 'original_queue') || Object.hasOwn(item, 'original_payload');
}

type ReadItem = { item: Static<typeof RetryItem> } | { faults: readonly WireFault[] };

/** The same in the words of the API, or everything that is wrong with it. */
export function readRetryMessage(given: Record<string, unknown>): ReadItem {
  // In the queue null is as good as absent.
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const faults = check(said, 'body') ?? [];
  const payload = payloadOf(said['original_payload']);
  if (payload === undefined && !faults.some(({ path }) => path === '/original_payload')) {
    const message = 'It is neither base64 nor a Buffer as Node writes one.';
    faults.push({ in: 'body', path: '/original_payload', code: 'INVALID_VALUE', message });
  }
  if (payload === undefined || faults.length > 0) return { faults };
  return { item: itemOf(said as Static<typeof RetryMessageItem>, payload) };
}

function itemOf(
  said: Static<typeof RetryMessageItem>,
  payload: Uint8Array,
): Static<typeof RetryItem> {
  const { retry_count = 0, next_retry_at_ms: next, classification = 0 } = said;
  const dueMs = Math.ceil(Number(next ?? 0));
  return {
    message_id: said.message_id,
    destination: { kind: 'queue', address: said.original_queue },
    payload_base64: Buffer.from(payload).toString('base64'),
    retry_count,
    classification:
      typeof classification === 'number' ? classifications[classification]! : classification,
    ...(said.max_retries === undefined ? {} : { max_retries: said.max_retries }),
    ...(said.error_reason === undefined ? {} : { error_reason: said.error_reason }),
    ...(dueMs > 0 ? { due_at: new Date(Math.min(dueMs, LAST_DATE_MS)).toISOString() } : {}),
  };
}

/** The last moment that a Date can hold. */
const LAST_DATE_MS = 8.64e15;

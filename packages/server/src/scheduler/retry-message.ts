import {
  type Decoded,
  isQueueName,
  isUuid,
  type RetryMessage,
  type Unreadable,
  unreadable,
} from './retry-fields.ts';
import { decodeJson } from './retry-json.ts';
import { decodeProtobuf } from './retry-protobuf.ts';

export type { RetryMessage } from './retry-fields.ts';
export { encodeJson } from './retry-json.ts';
export { encodeProtobuf } from './retry-protobuf.ts';

type RetryReading = { type: 'message'; message: RetryMessage } | Unreadable;

/**
 * Reads a body by its declared type first, then as the other one. Undeclared: JSON where it begins like an object, else
 * protobuf. `queue` is what a header says of the queue, for a body that names none.
 */
export function readRetryMessage(
  bytes: Uint8Array,
  contentType?: string,
  queue?: string,
): RetryReading {
  switch (formatOf(contentType)) {
    case 'json': {
      const reading = completed(decodeJson(bytes), queue);
      return readable(reading) ?? readable(completed(decodeProtobuf(bytes), queue)) ?? reading;
    }
    case 'protobuf': {
      const reading = completed(decodeProtobuf(bytes), queue);
      return readable(reading) ?? readable(completed(decodeJson(bytes), queue)) ?? reading;
    }
    case undefined: {
      const reading = beginsLikeObject(bytes) ? completed(decodeJson(bytes), queue) : undefined;
      // Bytes that nobody declared count as protobuf only where they name the queue themselves.
      const protobuf = () => completed(decodeProtobuf(bytes));
      if (!reading) return protobuf();
      return readable(reading) ?? readable(protobuf()) ?? reading;
    }
  }
}

function formatOf(contentType: string | undefined): 'json' | 'protobuf' | undefined {
  if (contentType === undefined) return undefined;
  const end = contentType.indexOf(';');
  const type = (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (type === 'application/json') return 'json';
  return type === 'application/x-protobuf' || type === 'application/protobuf'
    ? 'protobuf'
    : undefined;
}

function readable(reading: RetryReading): RetryReading | undefined {
  return reading.type === 'message' ? reading : undefined;
}

function completed(decoded: Decoded, queue?: string): RetryReading {
  if (decoded.type === 'unreadable') return decoded;
  const { messageId, originalPayload, originalQueue, retryCount, classification, ...rest } =
    decoded.fields;
  if (!isUuid(messageId)) return unreadable('message_id is not a UUID.');
  const name = originalQueue || queue;
  if (!name) return unreadable('original_queue is missing.');
  if (!isQueueName(name)) return unreadable('original_queue is not a name of 1 to 255 bytes.');
  return {
    type: 'message',
    message: {
      messageId: messageId.toLowerCase(),
      originalPayload: originalPayload ?? new Uint8Array(),
      originalQueue: name,
      retryCount: retryCount ?? 0,
      classification: classification ?? 'TRANSIENT',
      ...rest,
    },
  };
}

/** Blanks of JSON, and the mark that some writers put before UTF-8. */
const blanks = new Set<number | undefined>([0x20, 0x09, 0x0a, 0x0d]);
const mark = [0xef, 0xbb, 0xbf];

function beginsLikeObject(bytes: Uint8Array): boolean {
  let at = mark.every((byte, i) => bytes[i] === byte) ? mark.length : 0;
  while (blanks.has(bytes[at])) at += 1;
  return bytes[at] === 0x7b;
}

import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import {
  classifications,
  type Decoded,
  isInt32,
  type RetryFields,
  type RetryMessage,
  unreadable,
} from './retry-fields.ts';

/** The fields of `proto/retry.proto`. Unknown ones are skipped, the last value of a field wins. */
export function decodeProtobuf(bytes: Uint8Array): Decoded {
  const fields: RetryFields = {};
  try {
    const reader = new BinaryReader(bytes);
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag();
      const why = readField(reader, number, wireType, fields);
      if (why !== undefined) return unreadable(why);
    }
  } catch {
    // The library throws at whatever is cut short, and at what is no wire format at all.
    return unreadable('It is neither JSON nor protobuf.');
  }
  return { type: 'fields', fields };
}

/** A value that is 0 or empty is absent on this wire, as proto3 has it. */
export function encodeProtobuf(message: RetryMessage): Uint8Array {
  const writer = new BinaryWriter();
  const { messageId, originalPayload, originalQueue, errorReason, retryCount } = message;
  const { maxRetries, nextRetryAtMs, classification } = message;
  writer.tag(1, WireType.LengthDelimited).string(messageId);
  if (originalPayload.length > 0) writer.tag(2, WireType.LengthDelimited).bytes(originalPayload);
  writer.tag(3, WireType.LengthDelimited).string(originalQueue);
  if (errorReason) writer.tag(4, WireType.LengthDelimited).string(errorReason);
  if (retryCount) writer.tag(5, WireType.Varint).int32(retryCount);
  if (maxRetries) writer.tag(6, WireType.Varint).int32(maxRetries);
  if (nextRetryAtMs) writer.tag(7, WireType.Varint).int64(BigInt(nextRetryAtMs));
  const number = classifications.indexOf(classification);
  if (number > 0) writer.tag(8, WireType.Varint).int32(number);
  return writer.finish();
}

const names = [
  'message_id',
  'original_payload',
  'original_queue',
  'error_reason',
  'retry_count',
  'max_retries',
  'next_retry_at_ms',
  'classification',
] as const;

const FIRST_NUMBER = 5;

/** The answer is what is wrong with it. */
function readField(
  reader: BinaryReader,
  field: number,
  wireType: WireType,
  fields: RetryFields,
): string | undefined {
  const name = names[field - 1];
  if (name === undefined) {
    reader.skip(wireType, field);
    return undefined;
  }
  const wanted = field < FIRST_NUMBER ? WireType.LengthDelimited : WireType.Varint;
  if (wireType !== wanted) return `${name} has the wrong wire type.`;
  switch (name) {
    case 'message_id':
      fields.messageId = reader.string();
      return undefined;
    case 'original_payload':
      fields.originalPayload = reader.bytes();
      return undefined;
    case 'original_queue':
      // What is not UTF-8 is refused: a queue by another name would be another queue.
      fields.originalQueue = reader.string(true);
      return undefined;
    case 'error_reason':
      // For people to read: half a character at its end must not cost the message.
      setOrDelete(fields, 'errorReason', reader.string() || undefined);
      return undefined;
    case 'retry_count':
    case 'max_retries':
    case 'next_retry_at_ms':
    case 'classification':
      return readNumber(name, Number(reader.int64()), fields);
  }
}

/**
 * Read as an int64 whatever it is: as an int32, 2^32 would be cut down to 0, and a count would begin anew. Here nobody
 * can tell a 0 from what is absent.
 */
function readNumber(
  name: 'retry_count' | 'max_retries' | 'next_retry_at_ms' | 'classification',
  value: number,
  fields: RetryFields,
): string | undefined {
  switch (name) {
    case 'retry_count':
      if (!isInt32(value) || value < 0) return 'retry_count is not an int32 from 0 on.';
      fields.retryCount = value;
      return undefined;
    case 'max_retries':
      if (!isInt32(value)) return 'max_retries is not an int32.';
      setOrDelete(fields, 'maxRetries', value || undefined);
      return undefined;
    case 'next_retry_at_ms':
      setOrDelete(fields, 'nextRetryAtMs', value || undefined);
      return undefined;
    case 'classification':
      fields.classification = classifications[value] ?? 'UNKNOWN';
      return undefined;
  }
}

/** The last value wins, also one that means absent. */
function setOrDelete<K extends keyof RetryFields>(
  fields: RetryFields,
  name: K,
  value: RetryFields[K] | undefined,
): void {
  if (value === undefined) delete fields[name];
  else fields[name] = value;
}

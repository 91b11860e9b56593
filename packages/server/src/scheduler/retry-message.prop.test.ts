import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  encodeJson,
  encodeProtobuf,
  readRetryMessage,
  type RetryMessage,
} from './retry-message.ts';

type RetryReading = ReturnType<typeof readRetryMessage>;

const contentTypes = fc.constantFrom(
  undefined,
  'application/x-protobuf',
  'application/protobuf',
  'application/json',
  'text/plain',
);

const queues = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
  .filter((name) => Buffer.byteLength(name) <= 255 && !name.includes('\0'));

const messages: fc.Arbitrary<RetryMessage> = fc.record(
  {
    messageId: fc.uuid(),
    originalPayload: fc.uint8Array({ maxLength: 300 }),
    originalQueue: queues,
    errorReason: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 }),
    retryCount: fc.nat({ max: 2_147_483_647 }),
    maxRetries: fc.integer({ min: -5, max: 2_147_483_647 }).filter((count) => count !== 0),
    nextRetryAtMs: fc.maxSafeInteger().filter((ms) => ms !== 0),
    classification: fc.constantFrom('TRANSIENT', 'BUSINESS', 'TECHNICAL', 'UNKNOWN'),
  },
  {
    requiredKeys: ['messageId', 'originalPayload', 'originalQueue', 'retryCount', 'classification'],
  },
);

const plain = (reading: RetryReading) =>
  reading.type === 'message'
    ? { ...reading.message, originalPayload: Array.from(reading.message.originalPayload) }
    : reading;

it('what is encoded is decoded to the same, whatever type is declared', () => {
  fc.assert(
    fc.property(messages, contentTypes, (message, type) => {
      const expected = { ...message, originalPayload: Array.from(message.originalPayload) };
      for (const bytes of [
        encodeProtobuf(message),
        encodeJson(message),
        encodeJson(message, 'buffer'),
      ]) {
        expect(plain(readRetryMessage(bytes, type))).toEqual(expected);
      }
    }),
  );
});

it('any bytes are a message with all that it must have, or unreadable with a reason', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 400 }),
      contentTypes,
      fc.option(queues),
      (bytes, type, queue) => {
        expectAccounted(readRetryMessage(bytes, type, queue ?? undefined));
      },
    ),
    { numRuns: 2000 },
  );
});

it('so are the bytes of a message that were changed, cut or doubled on their way', () => {
  const changes = fc.array(
    fc.record({
      at: fc.nat(),
      byte: fc.nat({ max: 255 }),
      how: fc.constantFrom('set', 'cut', 'insert', 'twice'),
    }),
    { minLength: 1, maxLength: 5 },
  );
  fc.assert(
    fc.property(messages, fc.boolean(), changes, contentTypes, (message, isJson, steps, type) => {
      let bytes: number[] = [...(isJson ? encodeJson(message) : encodeProtobuf(message))];
      for (const { at, byte, how } of steps) {
        const i = at % (bytes.length + 1);
        if (how === 'set') bytes[i] = byte;
        else if (how === 'cut') bytes = bytes.slice(0, i);
        else if (how === 'insert') bytes.splice(i, 0, byte);
        else bytes = [...bytes, ...bytes.slice(i)];
      }
      expectAccounted(readRetryMessage(Uint8Array.from(bytes), type));
    }),
    { numRuns: 2000 },
  );
});

it('so is any JSON under the names of the fields', () => {
  const names = [
    'message_id',
    'original_payload',
    'original_queue',
    'error_reason',
    'retry_count',
    'max_retries',
    'next_retry_at_ms',
    'classification',
  ];
  const values = fc.oneof(fc.jsonValue(), fc.uuid(), fc.base64String(), fc.integer(), fc.double());
  const bodies = fc.dictionary(fc.constantFrom(...names), values, { maxKeys: 8 });
  const good = {
    message_id: '0f6f9a0e-1f3b-4c8e-9a53-6f2f8e3f1a11',
    original_payload: '',
    original_queue: 'q',
  };
  fc.assert(
    fc.property(bodies, fc.boolean(), (body, isBased) => {
      const bytes = Buffer.from(JSON.stringify(isBased ? { ...good, ...body } : body));
      expectAccounted(readRetryMessage(bytes));
    }),
    { numRuns: 2000 },
  );
});

function expectAccounted(reading: RetryReading): void {
  if (reading.type === 'unreadable') {
    expect(reading.why).toMatch(/^.{10,80}\.$/);
    return;
  }
  const { messageId, originalPayload, originalQueue, retryCount, maxRetries, nextRetryAtMs } =
    reading.message;
  expect(messageId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  expect(originalPayload).toBeInstanceOf(Uint8Array);
  expect(Buffer.byteLength(originalQueue)).toBeGreaterThan(0);
  expect(Buffer.byteLength(originalQueue)).toBeLessThanOrEqual(255);
  expect(Number.isInteger(retryCount) && retryCount >= 0 && retryCount < 2 ** 31).toBe(true);
  expect(Number.isInteger(maxRetries ?? 0)).toBe(true);
  expect(Number.isInteger(nextRetryAtMs ?? 0)).toBe(true);
}

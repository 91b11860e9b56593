import type { Reading, Received } from '@redrive/engine';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Carry } from './carried.ts';
import { deadLetterReader } from './dead-letter-reader.ts';
import { encodeJson, encodeProtobuf } from './retry-message.ts';
import { retryReader } from './retry-reader.ts';

const carry: Carry = () => ({ context: {}, headerBytes: 0 });

const common = {
  reviewQueue: 'manual-review.pending',
  maxPayloadBytes: 300,
  nowMs: () => 1_800_000_000_000,
  carry,
};

const retries = retryReader({ ...common, source: 'retry.scheduled', defaultMaxRetries: 3 });

const deadLetters = deadLetterReader({
  ...common,
  source: 'redrive.dead-letters',
  unclassifiedAs: 'transient',
  rules: [{ words: ['vat'], class: 'business' }],
  ownQueues: ['retry.scheduled'],
});

const names = [
  'x-death',
  'x-death-reason',
  'x-first-death-queue',
  'x-first-death-reason',
  'x-original-queue',
  'x-original-exchange',
  'x-original-routing-key',
  'x-original-error',
  'x-original-content-type',
  'x-exception-stacktrace',
  'x-retry-count',
  'x-retry-scheduler',
  'x-message-id',
  'x-redrive-generation',
  'x-redrive-body',
  'traceparent',
];

const anything = fc.anything({ withBigInt: true, withTypedArray: true, withNullPrototype: true });
const likely = fc.oneof(
  fc.constantFrom('orders', 'retry.scheduled', 'rejected', 'expired', 'true', 'timeout', 3, '3'),
  fc.uuid(),
);
const deaths = fc.array(
  fc.oneof(
    anything,
    fc.dictionary(
      fc.constantFrom('queue', 'reason', 'exchange', 'routing-keys'),
      fc.oneof(likely, anything),
    ),
  ),
  { maxLength: 4 },
);

const messages: fc.Arbitrary<Received> = fc
  .record({
    payload: fc.uint8Array({ maxLength: 400 }),
    headers: fc.dictionary(fc.constantFrom(...names), fc.oneof(likely, deaths, anything)),
    contentType: fc.option(fc.string(), { nil: undefined }),
    extra: fc.option(
      fc.record({
        properties: fc.oneof(anything, fc.record({ messageId: fc.oneof(likely, anything) })),
      }),
      {
        nil: undefined,
      },
    ),
  })
  .map(({ contentType, extra, ...rest }) => ({
    tag: 0,
    redelivered: false,
    ...rest,
    ...(contentType === undefined ? {} : { contentType }),
    ...(extra === undefined ? {} : { extra }),
  }));

it('whatever comes, a dead letter is a failure report that the engine takes, or an item with its bytes', () => {
  fc.assert(
    fc.property(messages, (message) => expectAccounted(deadLetters(message), message)),
    { numRuns: 1000 },
  );
});

it('whatever comes through RETRY_QUEUE is one or the other as well', () => {
  fc.assert(
    fc.property(messages, (message) => expectAccounted(retries(message), message)),
    { numRuns: 1000 },
  );
});

it('a RetryMessage is read to its last byte whatever headers come with it', () => {
  const bodies = fc.record({
    messageId: fc.uuid(),
    originalPayload: fc.uint8Array({ maxLength: 50 }),
    originalQueue: fc.constant('orders'),
    retryCount: fc.nat({ max: 5 }),
    classification: fc.constantFrom('TRANSIENT', 'UNKNOWN'),
  });
  fc.assert(
    fc.property(bodies, messages, fc.boolean(), (body, message, isJson) => {
      const payload = isJson ? encodeJson(body) : encodeProtobuf(body);
      const reading = retries({ ...message, payload });
      expectAccounted(reading, { ...message, payload });
      expect(reading).toMatchObject({
        type: 'failure',
        report: { messageId: body.messageId, to: { address: 'orders' } },
      });
      if (reading.type === 'unreadable') return;
      expect(Array.from(reading.report.payload as Uint8Array)).toEqual(
        Array.from(body.originalPayload),
      );
      expect(reading.report.attempt).toBeGreaterThan(body.retryCount);
    }),
    { numRuns: 1000 },
  );
});

function expectAccounted(reading: Reading, { payload }: Received): void {
  if (reading.type === 'unreadable') {
    const { item } = reading;
    expect(item.messageId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(item.payload).toBe(payload);
    expect(item.failure).toMatchObject({ class: 'technical' });
    expect(() => JSON.stringify(item.context)).not.toThrow();
    return;
  }
  const { report } = reading;
  expect(report.messageId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  expect(report.to.kind).toBe('queue');
  expect(Buffer.byteLength(report.to.address)).toBeGreaterThan(0);
  expect(Buffer.byteLength(report.to.address)).toBeLessThanOrEqual(255);
  expect(Number.isInteger(report.attempt)).toBe(true);
  expect(report.attempt).toBeGreaterThanOrEqual(1);
  expect(report.attempt).toBeLessThanOrEqual(1_000_000_000);
  expect(report.maxAttempts ?? 1).toBeGreaterThanOrEqual(1);
  expect(report.dueAtMs ?? 1).toBeGreaterThan(0);
  expect(() => JSON.stringify([report.context, report.failure])).not.toThrow();
}

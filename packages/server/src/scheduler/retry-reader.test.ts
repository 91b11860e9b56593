import { bodyMark, type FailureReport, type Reading, type Received, uuidOf } from '@redrive/engine';
import { decide, presets } from 'redrive';
import { describe, expect, it } from 'vitest';
import type { Carry } from './carried.ts';
import { encodeJson, encodeProtobuf, type RetryMessage } from './retry-message.ts';
import { retryReader } from './retry-reader.ts';

const NOW_MS = 1_800_000_000_000;
const DAY_MS = 86_400_000;
const KiB = 1024;
const id = '0f6f9a0e-1f3b-4c8e-9a53-6f2f8e3f1a11';

const message: RetryMessage = {
  messageId: id,
  originalPayload: new Uint8Array([0, 1, 254, 255]),
  originalQueue: 'orders',
  errorReason: 'connect ETIMEDOUT',
  retryCount: 0,
  classification: 'TRANSIENT',
};

/** All that came goes on; the sizes are those of names and texts. */
const carry: Carry = ({ headers, contentType, extra }) => ({
  context: {
    headers: headers as Record<string, string>,
    ...(contentType === undefined ? {} : { contentType }),
    ...(extra ? { extra } : {}),
  },
  headerBytes: Object.entries(headers).join('').length,
});

const options: Parameters<typeof retryReader>[0] = {
  source: 'retry.scheduled',
  reviewQueue: 'manual-review.pending',
  defaultMaxRetries: 3,
  maxPayloadBytes: 1024 * KiB,
  nowMs: () => NOW_MS,
  carry,
};

const received = (payload: Uint8Array, more: Partial<Received> = {}): Received => ({
  tag: 1,
  payload,
  headers: {},
  redelivered: false,
  ...more,
});

function reportOf(reading: Reading): FailureReport {
  if (reading.type === 'unreadable') throw new Error(reading.item.failure.message);
  return reading.report;
}

function itemOf(reading: Reading) {
  if (reading.type === 'failure') throw new Error('it could be read');
  return reading.item;
}

const read = (changes: Partial<RetryMessage> = {}, headers: Received['headers'] = {}) =>
  reportOf(retryReader(options)(received(encodeJson({ ...message, ...changes }), { headers })));

const rubbish = Buffer.from('rubbish');

describe('what becomes of a RetryMessage', () => {
  it('is an execution that failed, to be sent to original_queue again', () => {
    const payload = encodeProtobuf({ ...message, retryCount: 1, maxRetries: 5 });
    const reading = retryReader(options)(
      received(payload, { contentType: 'application/protobuf' }),
    );
    expect(reading).toEqual({
      type: 'failure',
      report: {
        messageId: id,
        to: { kind: 'queue', address: 'orders' },
        payload: message.originalPayload,
        context: {},
        failure: { class: 'transient', message: 'connect ETIMEDOUT' },
        attempt: 2,
        maxAttempts: 6,
      },
    });
  });

  it.each(['https://example.com/hook', 'handler:orders'])(
    'original_queue is always a queue, whatever it looks like: %s',
    (originalQueue) => {
      expect(read({ originalQueue }).to).toEqual({ kind: 'queue', address: originalQueue });
    },
  );

  it('max_retries that is absent is DEFAULT_MAX_RETRIES', () => {
    expect(read().maxAttempts).toBe(4);
  });

  it('max_retries of 0 in JSON, or below, is no retry', () => {
    expect(read({ maxRetries: 0 })).toMatchObject({ attempt: 1, maxAttempts: 1 });
    expect(read({ maxRetries: -7 })).toMatchObject({ attempt: 1, maxAttempts: 1 });
  });

  it('retries are used up on arrival once retry_count reaches max_retries', () => {
    const { attempt, maxAttempts = 0 } = read({ retryCount: 3, maxRetries: 3 });
    expect(attempt).toBeGreaterThanOrEqual(maxAttempts);
  });

  it.each([
    ['TRANSIENT', 'retry'],
    ['BUSINESS', 'giveUp'],
    ['TECHNICAL', 'giveUp'],
    ['UNKNOWN', 'giveUp'],
  ] as const)('anything but TRANSIENT goes straight to review: %s', (classification, action) => {
    const { attempt, failure } = read({ classification });
    expect(failure.class).toBe(classification.toLowerCase());
    expect(decide(presets.scheduler, { attempt, failure }).action).toBe(action);
  });

  it('the delay that follows retry_count = r is delay(r + 1)', () => {
    const policy = { base: 2000, cap: 60_000, multiplier: 2, jitter: 'none' } as const;
    const delays = [0, 1, 2].map((retryCount) => {
      const { attempt, failure } = read({ retryCount });
      return decide(policy, { attempt, failure });
    });
    expect(delays).toMatchObject([{ delayMs: 2000 }, { delayMs: 4000 }, { delayMs: 8000 }]);
  });

  it('the largest counts stay within what the engine takes', () => {
    const most = 2_147_483_647;
    const report = read({ retryCount: most, maxRetries: most });
    expect(report).toMatchObject({ attempt: 1_000_000_000, maxAttempts: 1_000_000_000 });
  });
});

describe('next_retry_at_ms', () => {
  it.each([1, DAY_MS, 365 * DAY_MS, 366 * DAY_MS])(
    'in the future, up to a year, is honoured as the due time: %i ms ahead',
    (aheadMs) => {
      const report = read({ nextRetryAtMs: NOW_MS + aheadMs });
      expect(report.dueAtMs).toBe(NOW_MS + aheadMs);
      expect(report).not.toHaveProperty('verdict');
    },
  );

  it('further away goes to the inbox', () => {
    const report = read({ nextRetryAtMs: NOW_MS + 366 * DAY_MS + 1 });
    expect(report.verdict).toBe('TOO_FAR');
    expect(report).not.toHaveProperty('dueAtMs');
    expect(read({ nextRetryAtMs: 2 ** 63 }).verdict).toBe('TOO_FAR');
  });

  it('further away of a message whose retries are used up is no reason any more', () => {
    const report = read({ nextRetryAtMs: NOW_MS + 400 * DAY_MS, retryCount: 3 });
    expect(report).not.toHaveProperty('verdict');
    expect(report).not.toHaveProperty('dueAtMs');
  });

  it('in the past is left to the clock of the store, which may go behind this one', () => {
    expect(read({ nextRetryAtMs: NOW_MS - 1 }).dueAtMs).toBe(NOW_MS - 1);
  });

  it('absent, or before all time, is computed', () => {
    expect(read()).not.toHaveProperty('dueAtMs');
    expect(read({ nextRetryAtMs: -1 })).not.toHaveProperty('dueAtMs');
  });
});

describe('the headers x-retry-count and x-original-queue', () => {
  it.each([
    [0, 2, 3],
    [2, 1, 3],
    [1, 1, 2],
    [0, '2', 3],
    [0, 2n, 3],
    [0, 10 ** 15, 1_000_000_000],
  ])('the larger count of body (%s) and header (%s) wins', (retryCount, header, attempt) => {
    expect(read({ retryCount }, { 'x-retry-count': header }).attempt).toBe(attempt);
  });

  it.each([-1, 1.5, NaN, Infinity, 'two', '-1', '', true, null, {}, [5]])(
    'a count that is none changes nothing: %j',
    (header) => {
      expect(read({ retryCount: 1 }, { 'x-retry-count': header }).attempt).toBe(2);
    },
  );

  it('a producer that always sends 0 counts by the header', () => {
    const { attempt, maxAttempts = 0 } = read({ retryCount: 0 }, { 'x-retry-count': 3 });
    expect(attempt).toBeGreaterThanOrEqual(maxAttempts);
  });

  it.each(['billing', Buffer.from('billing')])(
    'x-original-queue serves a body that names none',
    (header) => {
      const headers = { 'x-original-queue': header };
      expect(read({ originalQueue: '' }, headers).to.address).toBe('billing');
      expect(read({}, headers).to.address).toBe('orders');
    },
  );
});

describe('the generation that Redrive sent it in', () => {
  const own = {
    'x-message-id': id,
    'x-retry-count': 1,
    'x-redrive-generation': 2,
    'x-redrive-body': bodyMark(message.originalPayload),
  };

  it('comes back with the message', () => {
    expect(read({}, own)).toMatchObject({ generation: 2, attempt: 2 });
    expect(read({}, { ...own, 'x-message-id': id.toUpperCase() }).generation).toBe(2);
    expect(read({}, { ...own, 'x-redrive-generation': '0' }).generation).toBe(0);
  });

  it.each([
    ['another message', { 'x-message-id': '00000000-0000-4000-8000-000000000000' }],
    ['no id at all', { 'x-message-id': undefined }],
    ['what is no id', { 'x-message-id': 'abc' }],
    ['another body', { 'x-redrive-body': bodyMark(rubbish) }],
    ['no body', { 'x-redrive-body': undefined }],
    ['what is no generation', { 'x-redrive-generation': -1 }],
  ])('does not count where it is of %s', (_, changes) => {
    expect(read({}, { ...own, ...changes })).not.toHaveProperty('generation');
  });

  it('does not count without the count of that sending, or a new failure would be taken for an old one', () => {
    const report = read({ retryCount: 0 }, { ...own, 'x-retry-count': undefined });
    expect(report).not.toHaveProperty('generation');
  });
});

describe('properties and headers where they were carried', () => {
  it('go on', () => {
    const { context } = read({}, { 'x-tenant': 'a', custom: 'b' });
    expect(context?.headers).toEqual({ 'x-tenant': 'a', custom: 'b' });
  });

  it('the content type and the encoding of the envelope are not those of the payload', () => {
    const properties = {
      contentType: 'application/json',
      contentEncoding: 'gzip',
      correlationId: 'c1',
    };
    const payload = encodeJson(message);
    const contentType = 'application/json';
    const from = received(payload, { contentType, extra: { routingKey: 'r', properties } });
    const { context } = reportOf(retryReader(options)(from));
    expect(context).toEqual({
      extra: { routingKey: 'r', properties: { correlationId: 'c1' } },
    });
  });

  it('a broker that says nothing else of a message is no trouble', () => {
    const from = received(encodeJson(message), { extra: { routingKey: 'r', properties: null } });
    const { context } = reportOf(retryReader(options)(from));
    expect(context).toEqual({ extra: { routingKey: 'r', properties: null } });
  });

  it('the content type of the original is taken from x-original-content-type', () => {
    const headers = { 'x-original-content-type': 'application/xml' };
    expect(read({}, headers).context?.contentType).toBe('application/xml');
    for (const bad of ['x'.repeat(256), 'text/plain\0', '']) {
      const { context } = read({}, { 'x-original-content-type': bad });
      expect(context).not.toHaveProperty('contentType');
    }
  });

  it('x-original-exchange and x-original-routing-key stay known', () => {
    const adapter: Carry = () => ({ context: {}, headerBytes: 0 });
    const headers = { 'x-original-exchange': '', 'x-original-routing-key': 'orders.eu' };
    const from = received(encodeJson(message), { headers });
    const { context } = reportOf(retryReader({ ...options, carry: adapter })(from));
    expect(context?.headers).toEqual(headers);
  });

  it('what tells of the failure stays behind, or it would speak for the next one too', () => {
    const headers = { 'x-exception-stacktrace': 'at a', 'x-death-reason': 'b', kept: 'c' };
    expect(read({}, headers).context?.headers).toEqual({ kept: 'c' });
  });

  it('so it does where it came as bytes', () => {
    const headers = { 'x-exception-stacktrace': { '!': 'bytes', value: 'YQ==' }, kept: true };
    const amqp = { headers, properties: { appId: 'a' } };
    const adapter: Carry = () => ({ context: { extra: { amqp } }, headerBytes: 100 });
    const from = received(encodeJson(message));
    const { context } = reportOf(retryReader({ ...options, carry: adapter })(from));
    expect(context?.extra).toEqual({
      amqp: { headers: { kept: true }, properties: { appId: 'a' } },
    });
  });

  it('a traceparent goes on as one', () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    expect(read({}, { traceparent }).context?.traceparent).toBe(traceparent);
  });

  it.each([
    'nonsense',
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-4bf92f3577b34da6a3ce929d0e0e4736-${'0'.repeat(16)}-01`,
    'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    7,
  ])('what is no traceparent is just a header: %j', (traceparent) => {
    expect(read({}, { traceparent }).context).not.toHaveProperty('traceparent');
  });

  it('texts that no database takes are made such, and tables in tables have an end', () => {
    let deep: unknown = 'end';
    for (let i = 0; i < 60_000; i += 1) deep = i % 2 ? [deep] : { deep };
    const adapter: Carry = () => ({
      context: { headers: { 'a\0': 'b\0', c: '\ud800' }, extra: { list: [1, true, null, deep] } },
      headerBytes: 0,
    });
    const from = received(encodeJson(message));
    const { context } = reportOf(retryReader({ ...options, carry: adapter })(from));
    expect(context?.headers).toEqual({ 'a\uFFFD': 'b\uFFFD', c: '\uFFFD' });
    expect(context?.extra?.['list']).toMatchObject([1, true, null, {}]);
    expect(JSON.stringify(context).length).toBeLessThan(5000);
  });

  it('over 32 KiB in all ours are shortened first, then it goes to the inbox', () => {
    const exchange = { 'x-original-exchange': 'e'.repeat(200) };
    const adapter =
      (headerBytes: number): Carry =>
      () => ({ context: {}, headerBytes });
    const readWith = (headerBytes: number) => {
      const from = received(encodeJson(message), { headers: exchange });
      return reportOf(retryReader({ ...options, carry: adapter(headerBytes) })(from));
    };
    expect(readWith(31 * KiB)).toMatchObject({ context: { headers: exchange } });
    expect(readWith(31.5 * KiB).context).toEqual({});
    expect(readWith(31.5 * KiB)).not.toHaveProperty('verdict');
    expect(readWith(31.5 * KiB + 1).verdict).toBe('HEADERS_TOO_LARGE');
    expect(readWith(60 * KiB).verdict).toBe('HEADERS_TOO_LARGE');
  });

  it('one that could not be carried is too much as well: the message is not sent without it', () => {
    const adapter: Carry = () => ({ context: {}, headerBytes: 10, lost: ['deep'] });
    const from = received(encodeJson(message));
    const report = reportOf(retryReader({ ...options, carry: adapter })(from));
    expect(report.verdict).toBe('HEADERS_TOO_LARGE');
  });
});

describe('a message that cannot be understood', () => {
  const body = (payload: Uint8Array | undefined) =>
    JSON.parse(Buffer.from(payload ?? []).toString()) as unknown;

  it('goes to the inbox as technical, with its raw bytes and the reason', () => {
    const item = itemOf(
      retryReader(options)(received(rubbish, { contentType: 'text/plain', headers: { a: 'b' } })),
    );
    expect(item).toMatchObject({
      reason: 'UNREADABLE',
      failure: {
        class: 'technical',
        code: 'UNREADABLE',
        message: 'It is neither JSON nor protobuf.',
      },
      source: 'retry.scheduled',
      payload: rubbish,
      context: { headers: { a: 'b' }, contentType: 'text/plain' },
    });
  });

  it('has an id that is a UUIDv5 of its bytes: the same bytes again are the same item', () => {
    const first = itemOf(retryReader(options)(received(rubbish)));
    const again = itemOf(
      retryReader(options)(received(Buffer.from('rubbish'), { headers: { a: 1 } })),
    );
    const other = itemOf(retryReader(options)(received(Buffer.from('Rubbish'))));
    expect(first.messageId).toBe(uuidOf('retry.scheduled', 'rubbish'));
    expect(again.messageId).toBe(first.messageId);
    expect(other.messageId).not.toBe(first.messageId);
    expect(other.fingerprint).toBe(first.fingerprint);
  });

  it('is told to manual review in the same commit, with null for what is not known', () => {
    const { outbox, messageId } = itemOf(retryReader(options)(received(rubbish)));
    expect(outbox?.destination).toEqual({ kind: 'queue', address: 'manual-review.pending' });
    expect(outbox?.headers).toEqual({
      'content-type': 'application/json',
      'x-review-reason': 'UNREADABLE',
    });
    expect(body(outbox?.payload)).toEqual({
      message_id: messageId,
      original_queue: null,
      original_payload: rubbish.toString('base64'),
      error_reason: 'It is neither JSON nor protobuf.',
      retry_count: null,
      max_retries: null,
      classification: 'TECHNICAL',
      failed_at: new Date(NOW_MS).toISOString(),
    });
  });
});

describe('the size limit', () => {
  const encodings = [
    ['JSON with base64', (one: RetryMessage) => encodeJson(one)],
    ['JSON with a Buffer of Node', (one: RetryMessage) => encodeJson(one, 'buffer')],
    ['protobuf', encodeProtobuf],
  ] as const;
  /** Each byte is as long as it can be in the list of numbers that Node makes of a Buffer. */
  const payloadOf = (bytes: number) => new Uint8Array(bytes).fill(255);
  const readWith = (payload: Uint8Array, maxPayloadBytes = options.maxPayloadBytes) =>
    retryReader({ ...options, maxPayloadBytes })(received(payload));
  const failureOf = (json: string) =>
    itemOf(retryReader(options)(received(Buffer.from(json), { contentType: 'application/json' })))
      .failure.message;

  it.each(encodings)('is for the original payload: 900 kB in %s are accepted', (_, encode) => {
    const originalPayload = payloadOf(900_000);
    const report = reportOf(readWith(encode({ ...message, originalPayload })));
    expect(Buffer.from(report.payload as Uint8Array).equals(originalPayload)).toBe(true);
  });

  it.each(encodings)(
    'accepts a payload of exactly the limit in %s, and puts one with a byte more into the inbox whole',
    (_, encode) => {
      for (const limit of [1, 1000, 1024 * KiB]) {
        const at = encode({ ...message, originalPayload: payloadOf(limit) });
        expect(reportOf(readWith(at, limit)).payload).toHaveLength(limit);
        const over = encode({ ...message, retryCount: 2, originalPayload: payloadOf(limit + 1) });
        const item = itemOf(readWith(over, limit));
        expect(item).toMatchObject({
          reason: 'TOO_LARGE',
          failure: {
            class: 'technical',
            code: 'TOO_LARGE',
            message: `The original payload has ${limit + 1} bytes; REDRIVE_MAX_PAYLOAD_BYTES is ${limit}.`,
          },
        });
        expect(item.payload).toBe(over);
        expect(item.messageId).toBe(itemOf(readWith(over, limit)).messageId);
        expect(item.outbox?.headers).toEqual({
          'content-type': 'application/json',
          'x-review-reason': 'TOO_LARGE',
          'x-original-queue': 'orders',
        });
        const body: unknown = JSON.parse(Buffer.from(item.outbox?.payload ?? []).toString());
        expect(body).toMatchObject({ original_queue: 'orders', retry_count: 2 });
      }
    },
  );

  it('gives the envelope 5 times the limit and 64 KiB more; what is larger is not even read', () => {
    const limit = 10_000;
    const mostBytes = 5 * limit + 64 * KiB;
    const padded = (bytes: number) => {
      const bare = encodeJson({ ...message, errorReason: 'x' }).length;
      return encodeJson({ ...message, errorReason: 'x'.repeat(bytes - bare + 1) });
    };
    expect(padded(mostBytes)).toHaveLength(mostBytes);
    expect(readWith(padded(mostBytes), limit).type).toBe('failure');
    const item = itemOf(readWith(padded(mostBytes + 1), limit));
    expect(item).toMatchObject({
      reason: 'TOO_LARGE',
      failure: {
        message: `The message has ${mostBytes + 1} bytes; with REDRIVE_MAX_PAYLOAD_BYTES=${limit} at most ${mostBytes} are read.`,
      },
    });
    expect(item.payload).toHaveLength(mostBytes + 1);
  });

  it('gives no envelope more than 16 MiB', () => {
    const most = 16 * 1024 * KiB;
    const overhead = encodeProtobuf({ ...message, originalPayload: payloadOf(most - 100) }).length;
    const fitting = most - 100 - (overhead - most);
    const at = encodeProtobuf({ ...message, originalPayload: payloadOf(fitting) });
    expect(at).toHaveLength(most);
    expect(reportOf(readWith(at, most)).payload).toHaveLength(fitting);
    const over = encodeProtobuf({ ...message, originalPayload: payloadOf(fitting + 1) });
    expect(itemOf(readWith(over, most)).reason).toBe('TOO_LARGE');
  });

  it('does not let a large message of nothing but brackets block the process', () => {
    expect(failureOf('['.repeat(5_000_000))).toBe('Its JSON is nested more than 512 levels deep.');
  });

  it('reads no small message that is nested deeper than the API takes', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    expect(failureOf(nested(513))).toBe('Its JSON is nested more than 512 levels deep.');
    expect(failureOf(nested(512))).toBe('It is JSON, but no object.');
  });
});

import { bodyMark, type FailureReport, type Reading, type Received } from '@redrive/engine';
import { describe, expect, it } from 'vitest';
import type { Carry } from './carried.ts';
import { deadLetterReader } from './dead-letter-reader.ts';

type DeadLetterReaderOptions = Parameters<typeof deadLetterReader>[0];

const NOW_MS = 1_800_000_000_000;
const id = '0f6f9a0e-1f3b-4c8e-9a53-6f2f8e3f1a11';
const otherId = '11111111-2222-4333-8444-555555555555';
const newIds = [
  'aaaaaaaa-0000-4000-8000-000000000001',
  'aaaaaaaa-0000-4000-8000-000000000002',
] as const;

const carry: Carry = ({ headers, contentType }) => ({
  context: {
    headers: Object.fromEntries(
      Object.entries(headers).filter(([, value]) => typeof value === 'string'),
    ) as Record<string, string>,
    ...(contentType === undefined ? {} : { contentType }),
  },
  headerBytes: JSON.stringify(headers).length,
});

function readerOf(changes: Partial<DeadLetterReaderOptions> = {}) {
  let made = 0;
  return deadLetterReader({
    source: 'redrive.dead-letters',
    reviewQueue: 'manual-review.pending',
    maxPayloadBytes: 1024 * 1024,
    nowMs: () => NOW_MS,
    carry,
    unclassifiedAs: 'transient',
    rules: [],
    ownQueues: ['retry.scheduled', 'manual-review.pending', 'redrive.dead-letters'],
    newId: () => newIds[made++ % newIds.length]!,
    ...changes,
  });
}

const payload = Buffer.from('{"order":7}');

const received = (headers: Received['headers'], more: Partial<Received> = {}): Received => ({
  tag: 1,
  payload,
  headers,
  redelivered: false,
  ...more,
});

/** As a broker writes it. */
const death = (queue: string, reason: string, more: object = {}) => ({
  count: 1,
  reason,
  queue,
  time: { '!': 'timestamp', value: 1_700_000_000 },
  exchange: 'shop',
  'routing-keys': ['orders.new'],
  ...more,
});

const rejected = { 'x-death': [death('orders', 'rejected')] };

function reportOf(reading: Reading): FailureReport {
  if (reading.type === 'unreadable') throw new Error(reading.item.failure.message);
  return reading.report;
}

function itemOf(reading: Reading) {
  if (reading.type === 'failure') throw new Error('it could be read');
  return reading.item;
}

const read = (
  headers: Received['headers'],
  more: Partial<Received> = {},
  changes: Partial<DeadLetterReaderOptions> = {},
) => reportOf(readerOf(changes)(received(headers, more)));

const classOf = (headers: Received['headers'], changes: Partial<DeadLetterReaderOptions> = {}) =>
  read({ ...rejected, ...headers }, {}, changes).failure.class;

const withId = (messageId: unknown) => ({ extra: { properties: { messageId } } });

it('a dead letter is an execution that failed in the queue where it died', () => {
  const headers = {
    ...rejected,
    tenant: 'a',
    'x-exception-stacktrace': 'Error: connect ETIMEDOUT',
  };
  expect(readerOf()(received(headers, { contentType: 'application/json' }))).toEqual({
    type: 'failure',
    report: {
      messageId: newIds[0],
      to: { kind: 'queue', address: 'orders' },
      payload,
      context: {
        headers: {
          tenant: 'a',
          'x-original-exchange': 'shop',
          'x-original-routing-key': 'orders.new',
        },
        contentType: 'application/json',
      },
      failure: { class: 'transient', message: 'Error: connect ETIMEDOUT' },
      attempt: 1,
    },
  });
});

describe('the origin', () => {
  it.each([
    ['the newest death', [death('b', 'rejected'), death('a', 'rejected')], 'b'],
    ['not one that expired', [death('wait', 'expired'), death('a', 'rejected')], 'a'],
    ['also of a queue that was full', [death('b', 'maxlen'), death('a', 'rejected')], 'b'],
    ['one whose reason is not told', [{ queue: 'a' }], 'a'],
    ['past what is no death', [null, 7, 'x', [], {}, { queue: 7 }, death('a', 'rejected')], 'a'],
    [
      'past a name that no queue has',
      [death('q'.repeat(300), 'rejected'), death('a', 'rejected')],
      'a',
    ],
    ['a name that came as bytes', [death('', 'rejected', { queue: Buffer.from('a') })], 'a'],
  ])('is %s', (_, deaths, queue) => {
    expect(read({ 'x-death': deaths, 'x-first-death-queue': 'first' }).to.address).toBe(queue);
  });

  it('is else x-first-death-queue, else x-original-queue', () => {
    const expired = { 'x-death': [death('wait', 'expired')], 'x-original-queue': 'original' };
    expect(read({ ...expired, 'x-first-death-queue': 'first' }).to.address).toBe('first');
    expect(read(expired).to.address).toBe('original');
    expect(read({ 'x-original-queue': 'original' }).to.address).toBe('original');
  });

  it.each([
    {},
    { 'x-death': 'rejected' },
    { 'x-death': { queue: 'a' } },
    { 'x-death': [] },
    { 'x-death': [death('wait', 'expired')] },
    { 'x-first-death-queue': 7, 'x-original-queue': '' },
    { 'x-original-queue': 'q'.repeat(256) },
  ])('that nobody tells makes it a message that cannot be understood: %j', (headers) => {
    const item = itemOf(readerOf()(received(headers)));
    expect(item).toMatchObject({ reason: 'UNREADABLE', payload, source: 'redrive.dead-letters' });
    expect(item.failure).toMatchObject({ class: 'technical', code: 'NO_ORIGIN' });
    expect(item.outbox?.headers).toEqual({
      'content-type': 'application/json',
      'x-review-reason': 'UNREADABLE',
    });
  });

  it('is looked for among the newest hundred deaths', () => {
    const many = Array.from({ length: 5000 }, () => death('wait', 'expired'));
    const headers = { 'x-death': [...many, death('a', 'rejected')] };
    expect(itemOf(readerOf()(received(headers))).failure.code).toBe('NO_ORIGIN');
  });
});

describe('the error text', () => {
  it('is that of x-exception-stacktrace, x-death-reason, x-original-error, in this order', () => {
    const headers = {
      ...rejected,
      'x-exception-stacktrace': 'stack',
      'x-death-reason': 'reason',
      'x-original-error': 'error',
    };
    expect(read(headers).failure.message).toBe('stack');
    expect(read({ ...headers, 'x-exception-stacktrace': '' }).failure.message).toBe('reason');
    const two = { 'x-exception-stacktrace': undefined, 'x-death-reason': 7 };
    expect(read({ ...headers, ...two }).failure.message).toBe('error');
    const bytes = { 'x-exception-stacktrace': Buffer.from('bytes') };
    expect(read({ ...headers, ...bytes }).failure.message).toBe('bytes');
  });

  it('does not go out again with the message', () => {
    const headers = { ...rejected, 'x-exception-stacktrace': 'timeout', 'x-death-reason': 'b' };
    expect(read(headers).context?.headers).not.toHaveProperty('x-exception-stacktrace');
    expect(read(headers).context?.headers).not.toHaveProperty('x-death-reason');
  });

  it('of a hundred KiB is no reason to keep the message from being retried', () => {
    const stack = `Error: timeout\n${'  at com.example.Shop\n'.repeat(5000)}`;
    const report = read({ ...rejected, 'x-exception-stacktrace': stack });
    expect(report).not.toHaveProperty('verdict');
    expect(report.failure.class).toBe('transient');
    expect(report.failure.message).toHaveLength(8192);
  });

  it.each([
    ['Error: connect ECONNREFUSED', 'transient'],
    ['HTTP 503', 'transient'],
    ['order 503 already exists', 'business'],
    ['ValidationException: no', 'business'],
    ['TypeError: x is not a function', 'technical'],
    ['the private annulled syntaxerrors', 'unknown'],
    ['something else', 'unknown'],
  ])('is classified by words, transient before business before technical: %s', (text, expected) => {
    expect(classOf({ 'x-exception-stacktrace': text })).toBe(expected);
  });

  it('is asked by the rules of the user first', () => {
    const rules = [{ words: ['vat number'], class: 'business', code: 'VAT' } as const];
    const headers = { ...rejected, 'x-exception-stacktrace': 'timeout of the VAT number service' };
    const { failure } = read(headers, {}, { rules });
    expect(failure).toMatchObject({ class: 'business', code: 'VAT' });
    expect(read(headers).failure).toMatchObject({ class: 'transient' });
  });

  it('is asked by the rules also past its first lines', () => {
    const rules = [{ words: ['vat number'], class: 'business', code: 'VAT' } as const];
    const text = `${'at a.b.c\n'.repeat(300)} VAT number`;
    const { failure } = read({ ...rejected, 'x-exception-stacktrace': text }, {}, { rules });
    expect(failure.class).toBe('business');
  });

  it('of a rule that counts nothing counts all the same: the count came with the message', () => {
    const rules = [{ words: ['busy'], class: 'transient', counted: false } as const];
    const { failure } = read({ ...rejected, 'x-original-error': 'busy' }, {}, { rules });
    expect(failure).toEqual({ class: 'transient', message: 'busy' });
  });
});

describe("with no text but the broker's own reason", () => {
  it.each(['rejected', 'delivery_limit'])('%s counts as UNCLASSIFIED_AS', (reason) => {
    const headers = { 'x-death': [death('orders', reason)] };
    const report = read(headers);
    expect(report.failure.class).toBe('transient');
    expect(report.failure.code).toBe(`DEAD_LETTER_${reason.toUpperCase()}`);
    expect(report).not.toHaveProperty('verdict');
    expect(read(headers, {}, { unclassifiedAs: 'business' }).failure.class).toBe('business');
  });

  it.each([
    ['expired', 'EXPIRED'],
    ['maxlen', 'PERMANENT'],
  ])('%s goes to review', (reason, verdict) => {
    const deaths = [death('orders', reason)];
    const report = read({ 'x-death': deaths, 'x-first-death-queue': 'orders' });
    expect(report.to.address).toBe('orders');
    expect(report.verdict).toBe(verdict);
    expect(report.failure.code).toBe(`DEAD_LETTER_${reason.toUpperCase()}`);
    expect(report.failure.class).toBe('unknown');
  });

  it.each([
    ['x-first-death-reason', { 'x-first-death-reason': 'expired' }],
    ['x-death-reason', { 'x-death-reason': 'Expired' }],
    ['an older death', { 'x-death': [death('wait', 'expired')] }],
  ])('the reason may stand in %s', (_, headers) => {
    expect(read({ 'x-original-queue': 'orders', ...headers }).verdict).toBe('EXPIRED');
  });

  it.each(['x-exception-stacktrace', 'x-death-reason', 'x-original-error'])(
    'a text that is no more than such a reason is none: %s',
    (name) => {
      for (const text of ['rejected', ' Delivery-Limit ']) {
        expect(classOf({ [name]: text })).toBe('transient');
      }
    },
  );

  it('a reason that was never heard of, or none, counts as UNCLASSIFIED_AS', () => {
    const unheard = { 'x-death': [death('orders', 'moon')] };
    const code = 'DEAD_LETTER_UNCLASSIFIED';
    expect(read(unheard).failure).toEqual({ class: 'transient', code });
    expect(read({ 'x-original-queue': 'orders' }).failure).toEqual({ class: 'transient', code });
  });

  it('the wait in a queue of its own does not make a rejected message an expired one', () => {
    const deaths = [death('wait', 'expired'), death('orders', 'rejected')];
    expect(read({ 'x-death': deaths })).not.toHaveProperty('verdict');
  });
});

describe('a message that Redrive has sent before', () => {
  const sent = {
    'x-death': [death('orders', 'rejected', { exchange: '', 'routing-keys': ['orders'] })],
    'x-retry-scheduler': 'true',
    'x-message-id': id,
    'x-retry-count': 1,
    'x-redrive-generation': 0,
    'x-redrive-body': bodyMark(payload),
    'x-original-error': 'order 7 already exists',
  };

  it('and that dies again carries its id, its count and its generation', () => {
    expect(read(sent)).toMatchObject({ messageId: id, attempt: 2, generation: 0 });
  });

  it('and that its consumer publishes to the exchange with those headers goes to its queue', () => {
    const { 'x-death': _, ...headers } = sent;
    const copied = { ...headers, 'x-original-queue': 'orders', 'x-exception-stacktrace': '503' };
    expect(read(copied)).toMatchObject({
      to: { kind: 'queue', address: 'orders' },
      messageId: id,
      attempt: 2,
      generation: 0,
      failure: { class: 'transient', message: '503' },
    });
    // What the broker says goes before: the copy died in another queue.
    for (const more of [
      { 'x-death': [death('billing', 'rejected')] },
      { 'x-first-death-queue': 'billing' },
    ]) {
      expect(read({ ...copied, ...more }).to.address).toBe('billing');
    }
  });

  it('does not take the code of the failure before for its text', () => {
    const again = { ...sent, 'x-original-error': 'DEAD_LETTER_REJECTED' };
    expect(read(again).failure).toEqual({ class: 'transient', code: 'DEAD_LETTER_REJECTED' });
  });

  it('is judged by this failure: what was written down of the one before says nothing of it', () => {
    expect(read(sent).failure).toEqual({
      class: 'transient',
      code: 'DEAD_LETTER_REJECTED',
      message: 'order 7 already exists',
    });
    expect(read({ ...sent, 'x-retry-scheduler': true }).failure.class).toBe('transient');
    const other = { ...sent, 'x-retry-scheduler': undefined };
    expect(read(other).failure.class).toBe('business');
  });

  it('is rejected without a word again and again, and retried each time until its count is used up', () => {
    let headers: Received['headers'] = { 'x-death': [death('orders', 'rejected')] };
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      const report = read(headers);
      expect(report).toMatchObject({ attempt, failure: { class: 'transient' } });
      const { messageId, failure } = report;
      headers = {
        ...sent,
        'x-message-id': messageId,
        'x-retry-count': attempt,
        'x-original-error': failure.message ?? failure.code,
      };
    }
  });

  it('is not counted by x-death, which a republish resets', () => {
    const deaths = [
      death('orders', 'rejected', { count: 50 }),
      death('orders', 'expired', { count: 9 }),
    ];
    expect(read({ 'x-death': deaths }).attempt).toBe(1);
    expect(read({ ...sent, 'x-death': deaths }).attempt).toBe(2);
  });

  it('tells of its first publish only what it carries: how Redrive sent it is no news', () => {
    expect(read(sent).context?.headers).not.toHaveProperty('x-original-exchange');
    const first = { 'x-original-exchange': 'shop', 'x-original-routing-key': 'orders.new' };
    expect(read({ ...sent, ...first }).context?.headers).toMatchObject(first);
  });

  it('and whose headers a consumer copied into other messages is none of those', () => {
    const copies = ['{"line":1}', '{"line":2}'].map((text) => ({ payload: Buffer.from(text) }));
    const reader = readerOf();
    const reports = copies.map((copy) => reportOf(reader(received(sent, copy))));
    expect(reports.map(({ messageId }) => messageId)).toEqual(newIds);
    for (const report of reports) {
      expect(report).not.toHaveProperty('generation');
      // Who copies headers for ever must not be retried for ever.
      expect(report.attempt).toBe(2);
    }
  });
});

describe('the id', () => {
  it('is x-message-id, else the AMQP message_id', () => {
    expect(read({ ...rejected, 'x-message-id': id.toUpperCase() }, withId(otherId)).messageId).toBe(
      id,
    );
    expect(read(rejected, withId(otherId.toUpperCase())).messageId).toBe(otherId);
    expect(read({ ...rejected, 'x-message-id': 'abc' }, withId(otherId)).messageId).toBe(otherId);
  });

  it('of a message_id that is no UUID is a UUIDv5 of origin, id and body', () => {
    const first = read(rejected, withId('order-7')).messageId;
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
    expect(read(rejected, withId('order-7')).messageId).toBe(first);
    const others = [
      read({ 'x-death': [death('billing', 'rejected')] }, withId('order-7')),
      read(rejected, withId('order-8')),
      read(rejected, { ...withId('order-7'), payload: Buffer.from('{"order":8}') }),
    ].map(({ messageId }) => messageId);
    expect(new Set([first, ...others]).size).toBe(4);
  });

  it('is else random: distinct messages are never merged', () => {
    const reader = readerOf();
    const ids = [1, 2].map(() => reportOf(reader(received(rejected))).messageId);
    expect(ids).toEqual(newIds);
    for (const none of [undefined, {}, { properties: 7 }, { properties: { messageId: 7 } }]) {
      const extra = none ? { extra: none } : {};
      expect(read(rejected, extra).messageId).toBe(newIds[0]);
    }
  });

  it('is made up by the machine where nobody else does it', () => {
    const { newId: _, ...options } = {
      source: 's',
      reviewQueue: 'r',
      maxPayloadBytes: 100,
      nowMs: () => NOW_MS,
      carry,
      unclassifiedAs: 'transient' as const,
      rules: [],
      ownQueues: [],
      newId: undefined,
    };
    const reader = deadLetterReader(options);
    const ids = [1, 2].map(() => reportOf(reader(received(rejected))).messageId);
    expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    expect(ids[1]).not.toBe(ids[0]);
  });

  it('of one without an origin tells two messages of the same body apart as well', () => {
    const reader = readerOf();
    const ids = [1, 2].map(() => itemOf(reader(received({}))).messageId);
    expect(ids).toEqual(newIds);
    const known = [1, 2].map(() => itemOf(reader(received({}, withId('m1')))).messageId);
    expect(known[1]).toBe(known[0]);
    const copied = [payload, Buffer.from('other')].map(
      (body) => itemOf(reader(received({ 'x-message-id': id }, { payload: body }))).messageId,
    );
    expect(copied[1]).not.toBe(copied[0]);
  });
});

describe("a dead letter whose origin is one of Redrive's own queues", () => {
  it.each(['retry.scheduled', 'redrive.dead-letters'])(
    'goes straight to the inbox: %s',
    (queue) => {
      const item = itemOf(readerOf()(received({ 'x-death': [death(queue, 'rejected')] })));
      expect(item).toMatchObject({ reason: 'PERMANENT', payload });
      expect(item.failure).toMatchObject({ class: 'technical', code: 'OWN_QUEUE' });
      expect(item.outbox?.headers).toEqual({
        'content-type': 'application/json',
        'x-review-reason': 'PERMANENT',
        'x-original-queue': queue,
      });
    },
  );

  it.each([
    { 'x-death': [death('manual-review.pending', 'rejected')] },
    {
      'x-death': [death('manual-review.pending', 'expired')],
      'x-first-death-queue': 'manual-review.pending',
    },
    { 'x-death': [death('manual-review.pending', 'expired')] },
    {
      'x-death': [death('manual-review.pending', 'expired'), death('retry.scheduled', 'rejected')],
    },
  ])(
    'is not told to manual review where it died there, or it would go round for ever: %#',
    (headers) => {
      const item = itemOf(readerOf()(received(headers)));
      expect(item.failure.code).toBe('OWN_QUEUE');
      expect(item).not.toHaveProperty('outbox');
    },
  );

  it('is one also where it carries the deaths of another message: the envelope must not go to that queue', () => {
    const deaths = [death('retry.scheduled', 'expired'), death('orders', 'rejected')];
    expect(itemOf(readerOf()(received({ 'x-death': deaths }))).failure.code).toBe('OWN_QUEUE');
  });
});

describe('sizes', () => {
  it('one over the limit goes whole into the inbox as TOO_LARGE, with what is known of it', () => {
    const reader = readerOf({ maxPayloadBytes: payload.length - 1 });
    const item = itemOf(reader(received({ ...rejected, 'x-retry-count': 2 })));
    expect(item).toMatchObject({ reason: 'TOO_LARGE', payload });
    const body: unknown = JSON.parse(Buffer.from(item.outbox?.payload ?? []).toString());
    expect(body).toMatchObject({ original_queue: 'orders', retry_count: 2, max_retries: null });
    const atLimit = readerOf({ maxPayloadBytes: payload.length })(received(rejected));
    expect(atLimit.type).toBe('failure');
  });

  it('headers over 32 KiB make it HEADERS_TOO_LARGE', () => {
    const report = read({ ...rejected, long: 'x'.repeat(33_000) });
    expect(report.verdict).toBe('HEADERS_TOO_LARGE');
    expect(report.context?.headers?.['long']).toHaveLength(33_000);
  });

  it('the largest count stays within what the engine takes', () => {
    expect(read({ ...rejected, 'x-retry-count': 2 ** 50 }).attempt).toBe(1_000_000_000);
  });
});

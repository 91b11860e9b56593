import { bodyMark, type Reading, type Received, uuidOf } from '@redrive/engine';
import { carriedContext, type NatsExtra } from '@redrive/engine/nats';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxDeliveriesReader } from './max-deliveries-reader.ts';

const maxDeliveries = { stream: 'ORDERS', consumer: 'worker', sequence: 7, deliveries: 5 };
const nats: NatsExtra = {
  subject: 'orders.eu',
  stream: 'ORDERS',
  sequence: 7,
  storedAtMs: 1000,
  maxDeliveries,
};
const body = Buffer.from('{"order":17}');
const ID = '4b7f3d7e-0f7d-4d5b-9f3b-0c7b1a2d3e4f';

const options = {
  source: 'REDRIVE_DEAD_LETTERS',
  carry: carriedContext,
  nowMs: () => 0,
  maxPayloadBytes: 100,
  unclassifiedAs: 'transient',
  ownSubject: 'retry.scheduled',
} as const;
const read = maxDeliveriesReader(options);

function received(changes: Partial<Received> = {}): Received {
  return {
    tag: 1,
    payload: body,
    headers: {},
    redelivered: false,
    extra: { nats },
    ...changes,
  };
}

function reportOf(reading: Reading) {
  if (reading.type !== 'failure') throw new Error(reading.item.failure.message);
  return reading.report;
}

function itemOf(reading: Reading) {
  if (reading.type !== 'unreadable') throw new Error('It was read.');
  return reading.item;
}

describe('a message that a consumer gave up', () => {
  it('is a failure at its own subject, with its payload and headers', () => {
    const reading = read(received({ headers: { 'x-tenant': 'a' }, contentType: 'a/b' }));
    expect(reportOf(reading)).toEqual({
      messageId: uuidOf('orders.eu', 'ORDERS 7 1000'),
      to: { kind: 'nats', address: 'orders.eu' },
      payload: body,
      context: { headers: { 'x-tenant': 'a' }, contentType: 'a/b' },
      failure: {
        class: 'transient',
        code: 'DEAD_LETTER_MAX_DELIVERIES',
        message: 'Consumer worker of stream ORDERS did not acknowledge it in 5 deliveries.',
      },
      attempt: 1,
    });
  });

  it('goes on with the count and the id with which Redrive sent it', () => {
    const headers = {
      'x-message-id': ID,
      'x-retry-count': '2',
      'x-redrive-generation': '1',
      'x-redrive-body': bodyMark(body),
    };
    expect(reportOf(read(received({ headers })))).toMatchObject({
      messageId: ID,
      attempt: 3,
      generation: 1,
    });
  });

  it('has the id of its publisher, and never that of another message with the same one', () => {
    const of = (id: string, payload = body) =>
      reportOf(read(received({ headers: { 'Nats-Msg-Id': id }, payload })));
    expect(of(ID)).toMatchObject({ messageId: ID, otherId: uuidOf('orders.eu', ID, String(body)) });
    expect(of('order-17').messageId).toBe(of('order-17').messageId);
    expect(of('order-17').messageId).not.toBe(of('order-17', Buffer.from('other')).messageId);
  });

  it('has another id in another place of the stream', () => {
    const at = (changes: Partial<NatsExtra>) =>
      reportOf(read(received({ extra: { nats: { ...nats, ...changes } } }))).messageId;
    expect(at({})).toBe(at({}));
    // The stream was made anew, and counts from the beginning.
    expect(at({ storedAtMs: 2000 })).not.toBe(at({}));
    const other = { ...nats, maxDeliveries: { ...maxDeliveries, sequence: 8 } };
    expect(at(other)).not.toBe(at({}));
    // Another consumer of the same message: it is one message all the same.
    expect(at({ maxDeliveries: { ...maxDeliveries, consumer: 'other' } })).toBe(at({}));
  });

  it('goes to the inbox when it is gone from its stream, which is said', () => {
    const gone = { ...nats, maxDeliveries: { ...maxDeliveries, isGone: true as const } };
    const item = itemOf(read(received({ extra: { nats: gone } })));
    expect(item).toMatchObject({
      reason: 'UNREADABLE',
      failure: {
        code: 'MESSAGE_GONE',
        message: expect.stringContaining('Message 7 of stream ORDERS') as string,
      },
      payload: body,
    });
    expect(item.outbox).toBeUndefined();
  });

  it('goes to the inbox when it is too large', () => {
    expect(itemOf(read(received({ payload: Buffer.alloc(101) })))).toMatchObject({
      reason: 'TOO_LARGE',
      failure: { code: 'TOO_LARGE' },
    });
  });

  it.each(['retry.scheduled', '$JS.EVENT.ADVISORY.X'])(
    'goes to the inbox where its subject is %s, and is never sent there again',
    (subject) => {
      const item = itemOf(read(received({ extra: { nats: { ...nats, subject } } })));
      expect(item).toMatchObject({ reason: 'PERMANENT', failure: { code: 'OWN_QUEUE' } });
    },
  );

  it('goes to the inbox where it is no advisory', () => {
    for (const extra of [{}, { nats: {} }, { nats: { ...nats, maxDeliveries: undefined } }]) {
      const item = itemOf(read(received({ extra })));
      expect(item).toMatchObject({ reason: 'UNREADABLE', failure: { code: 'NO_ADVISORY' } });
    }
  });

  it('is told to the queue for review where there is one', () => {
    const telling = maxDeliveriesReader({ ...options, reviewQueue: 'review' });
    const item = itemOf(telling(received({ payload: Buffer.alloc(101) })));
    expect(item.outbox).toMatchObject({ destination: { kind: 'queue', address: 'review' } });
  });

  it('is read whatever its headers say', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), fc.uint8Array(), (headers, payload) => {
        expect(['failure', 'unreadable']).toContain(read(received({ headers, payload })).type);
      }),
    );
  });
});

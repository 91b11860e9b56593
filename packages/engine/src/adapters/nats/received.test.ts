import { headers as newHeaders } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { maxDeliveriesIn } from './advisory.ts';
import { carriedContext, natsExtraOf } from './carry.ts';
import { prepare } from './prepare.ts';
import { deliveryFacts, receivedOf } from './received.ts';
import { loadNats } from './library.ts';

await loadNats();

function received(entries: [string, string][]) {
  const headers = newHeaders();
  for (const [name, value] of entries) headers.append(name, value);
  return receivedOf({
    tag: { sequence: 1 },
    subject: 'orders.eu',
    payload: Buffer.from('x'),
    headers,
    stream: 'ORDERS',
    sequence: 1,
    storedAtMs: 5,
    redelivered: false,
  });
}

describe('a message of a stream', () => {
  it('leaves its headers to its task, but for those of the server and of Redrive', () => {
    const message = received([
      ['x-a', '1'],
      ['x-list', '1'],
      ['x-list', '2'],
      ['content-type', 'a/b'],
      ['Nats-Msg-Id', 'id'],
      ['x-retry-count', '3'],
      ['x-redrive-body', 'b'],
    ]);
    const { context, headerBytes } = carriedContext(message);
    expect(context).toEqual({
      headers: { 'x-a': '1' },
      contentType: 'a/b',
      extra: { nats: { headers: { 'x-list': ['1', '2'] } } },
    });
    expect(headerBytes).toBe('x-a: 1\r\nx-list: 1\r\nx-list: 2\r\n'.length);
    const again = prepare(
      {
        address: 'a',
        payload: message.payload,
        headers: context.headers!,
        extra: context.extra!,
        contentType: 'a/b',
      },
      1000,
    );
    expect(
      Object.fromEntries((again as { headers: Iterable<[string, string[]]> }).headers),
    ).toEqual({
      'x-list': ['1', '2'],
      'x-a': ['1'],
      'Content-Type': ['a/b'],
    });
  });

  it('may have the names of prototypes among its headers', () => {
    const message = received([
      ['__proto__', 'a'],
      ['constructor', 'b'],
      ['toString', 'c'],
    ]);
    expect(Object.entries(carriedContext(message).context.headers!)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
      ['toString', 'c'],
    ]);
    expect(natsExtraOf(message)?.subject).toBe('orders.eu');
  });
});

describe('the subject for answers', () => {
  it.each([
    ['$JS.ACK.ORDERS.redrive.2.17.5.1700000000000000000.9'],
    ['$JS.ACK.hub.hash.ORDERS.redrive.2.17.5.1700000000000000000.9.random'],
  ])('is read: %s', (reply) => {
    expect(deliveryFacts(reply)).toEqual({
      stream: 'ORDERS',
      sequence: 17,
      deliveries: 2,
      storedAtMs: 1_700_000_000_000,
    });
  });

  it.each([undefined, '', '_INBOX.a', '$JS.ACK.ORDERS', '$JS.API.INFO'])('is none: %s', (reply) => {
    expect(deliveryFacts(reply)).toBeUndefined();
  });
});

describe('an advisory', () => {
  const subject = '$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.ORDERS.worker';
  const body = { stream: 'ORDERS', consumer: 'worker', stream_seq: 7, deliveries: 5 };
  const read = (value: unknown, at = subject) =>
    maxDeliveriesIn(at, Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));

  it('names the message that was given up', () => {
    expect(read(body)).toEqual({
      stream: 'ORDERS',
      consumer: 'worker',
      sequence: 7,
      deliveries: 5,
    });
  });

  it.each([
    'no json',
    'null',
    '[]',
    { ...body, stream: 'A.B' },
    { ...body, stream: '>' },
    { ...body, stream_seq: 0 },
    { ...body, stream_seq: 1.5 },
    { ...body, stream_seq: '7' },
    { ...body, consumer: undefined },
  ])('is none where it says %j', (value) => {
    expect(read(value)).toBeUndefined();
  });

  it('comes over its own subject only', () => {
    expect(read(body, 'orders.eu')).toBeUndefined();
  });
});

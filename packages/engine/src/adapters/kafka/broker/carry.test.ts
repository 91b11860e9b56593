import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FetchedRecord } from '../client/record-batches.ts';
import type { OutRecord } from '../client/producer.ts';
import { carriedContext, kafkaExtraOf } from './carry.ts';
import { prepare } from './prepare.ts';
import { receivedOf } from './received.ts';

type Headers = FetchedRecord['headers'];

function received(record: Partial<FetchedRecord>) {
  const base = { offset: 7, timestampMs: 5, leaderEpoch: 0, key: null, value: Buffer.from('x') };
  return receivedOf({ topic: 't', partition: 1 }, { ...base, headers: [], ...record }, {});
}

/** From a topic into a task, and from there to a topic. */
function carriedOn(key: Buffer | null, headers: Headers) {
  const { context } = carriedContext(received({ key, headers }));
  // Tasks are stored as JSON.
  const stored = JSON.parse(JSON.stringify(context)) as typeof context;
  const ready = prepare({
    address: 't',
    payload: Buffer.from('x'),
    headers: stored.headers ?? {},
    ...(stored.contentType === undefined ? {} : { contentType: stored.contentType }),
    ...(stored.extra ? { extra: stored.extra } : {}),
  }) as OutRecord;
  return { key: ready.key, headers: [...(ready.headers ?? [])] };
}

const sorted = (headers: Iterable<readonly [Buffer | null, Buffer | null]>) =>
  Array.from(headers, ([name, value]) => [
    String(name),
    value?.toString('base64') ?? null,
  ]).toSorted((a, b) => (a[0]! < b[0]! ? -1 : a[0]! > b[0]! ? 1 : 0));

describe('what a record of Kafka carries', () => {
  it('comes out as it went in: key, and headers of any bytes and number', () => {
    const bytes = fc.uint8Array({ maxLength: 20 }).map((one) => Buffer.from(one));
    const name = fc.constantFrom('a', 'b', 'ünï', 'traceparent', 'content-type');
    const value = fc.option(
      fc.oneof(
        bytes,
        fc.string().map((text) => Buffer.from(text)),
      ),
    );
    fc.assert(
      fc.property(fc.option(bytes), fc.array(fc.tuple(name, value)), (key, given) => {
        // One content type, as a text: it has a place of its own.
        const single = given.filter(
          ([one], i) => one !== 'content-type' || given.findIndex(([other]) => other === one) === i,
        );
        const headers: Headers = single.map(([one, bytesOf]) => [
          Buffer.from(one),
          one === 'content-type' ? Buffer.from('application/json') : bytesOf,
        ]);
        const out = carriedOn(key, headers);
        expect(out.key).toEqual(key);
        expect(sorted(out.headers)).toEqual(sorted(headers));
      }),
    );
  });

  it('leaves out what Redrive writes itself', () => {
    const headers: Headers = [
      [Buffer.from('x-retry-count'), Buffer.from('3')],
      [Buffer.from('x-redrive-generation'), Buffer.from([0xff])],
      [Buffer.from('kept'), Buffer.from('yes')],
    ];
    expect(carriedContext(received({ headers })).context).toEqual({ headers: { kept: 'yes' } });
  });

  it('lets a header of the publisher replace what was carried', () => {
    const ready = prepare({
      address: 't',
      payload: Buffer.alloc(0),
      headers: { a: 'new', 'x-retry-count': 2 },
      extra: {
        kafka: {
          headers: [
            ['a', 'AAA='],
            ['b', null],
          ],
        },
      },
    }) as OutRecord;
    expect(sorted(ready.headers!)).toEqual([
      ['a', Buffer.from('new').toString('base64')],
      ['b', null],
      ['x-retry-count', Buffer.from('2').toString('base64')],
    ]);
  });

  it('says where a record was', () => {
    const key = Buffer.from([0, 255]);
    expect(kafkaExtraOf(received({ key }))).toEqual({
      topic: 't',
      partition: 1,
      offset: 7,
      timestampMs: 5,
      key: 'AP8=',
    });
  });

  it.each([
    ['a topic that is none', { address: 'a b' }],
    ['a topic of one dot', { address: '.' }],
    ['a topic that is too long', { address: 'a'.repeat(250) }],
    ['a header that is neither text nor number', { headers: { a: {} as string } }],
    ['a key that is no text', { extra: { kafka: { key: 7 } } }],
    ['headers that are none', { extra: { kafka: { headers: [['a']] } } }],
    ['headers that are no list of pairs', { extra: { kafka: { headers: 'a' } } }],
  ])('refuses %s', (_, change) => {
    const message = { address: 't', payload: Buffer.alloc(0), headers: {}, ...change };
    expect(prepare(message)).toMatchObject({
      outcome: 'impossible',
      failure: { code: 'INVALID_MESSAGE' },
    });
  });
});

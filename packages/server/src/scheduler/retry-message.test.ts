import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { describe, expect, it } from 'vitest';
import {
  encodeJson,
  encodeProtobuf,
  readRetryMessage,
  type RetryMessage,
} from './retry-message.ts';

type RetryReading = ReturnType<typeof readRetryMessage>;

const PROTOBUF = 'application/x-protobuf';
const JSON_TYPE = 'application/json';
const id = '0f6f9a0e-1f3b-4c8e-9a53-6f2f8e3f1a11';

const whole: RetryMessage = {
  messageId: id,
  originalPayload: new Uint8Array([0, 1, 254, 255]),
  originalQueue: 'orders',
  errorReason: 'connect ETIMEDOUT',
  retryCount: 2,
  maxRetries: 5,
  nextRetryAtMs: 1_800_000_000_000,
  classification: 'BUSINESS',
};

const least = { message_id: id, original_payload: 'aGk=', original_queue: 'orders' };

const bytesOf = (value: unknown) =>
  new Uint8Array(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));

/** As JSON, declared as such. */
const fromJson = (fields: object) => readRetryMessage(bytesOf({ ...least, ...fields }), JSON_TYPE);

/** As protobuf, with what `write` adds after the least that is needed. */
function fromProtobuf(write: (writer: BinaryWriter) => unknown, type: string = PROTOBUF) {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).string(id);
  writer.tag(2, WireType.LengthDelimited).bytes(new Uint8Array([104, 105]));
  writer.tag(3, WireType.LengthDelimited).string('orders');
  write(writer);
  return readRetryMessage(writer.finish(), type);
}

const varint = (field: number, value: bigint | number) => (writer: BinaryWriter) =>
  writer.tag(field, WireType.Varint).int64(BigInt(value));

const text = (field: number, value: string) => (writer: BinaryWriter) =>
  writer.tag(field, WireType.LengthDelimited).string(value);

function messageOf(reading: RetryReading): RetryMessage {
  if (reading.type === 'unreadable') throw new Error(reading.why);
  // A Buffer is not like other bytes to vitest.
  return { ...reading.message, originalPayload: new Uint8Array(reading.message.originalPayload) };
}

const whyOf = (reading: RetryReading) =>
  reading.type === 'unreadable' ? reading.why : 'it was readable';

describe('a RetryMessage is accepted as protobuf and as JSON', () => {
  it.each([
    ['application/x-protobuf', encodeProtobuf(whole)],
    ['application/protobuf', encodeProtobuf(whole)],
    ['application/json', encodeJson(whole)],
  ])('%s', (type, bytes) => {
    expect(messageOf(readRetryMessage(bytes, type))).toEqual(whole);
  });

  it.each([
    ['JSON declared as protobuf', PROTOBUF, encodeJson(whole)],
    ['protobuf declared as JSON', JSON_TYPE, encodeProtobuf(whole)],
  ])('a declared type is tried first, then the other: %s', (_, type, bytes) => {
    expect(messageOf(readRetryMessage(bytes, type))).toEqual(whole);
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON;x=y', ' application/json '])(
    'type parameters are ignored: %s',
    (type) => {
      expect(messageOf(readRetryMessage(bytesOf(least), type)).originalQueue).toBe('orders');
      expect(whyOf(readRetryMessage(bytesOf('nothing'), type))).toBe('It is not JSON in UTF-8.');
    },
  );

  it('a type that is neither counts as undeclared', () => {
    for (const type of ['application/octet-stream', 'text/plain', '']) {
      expect(messageOf(readRetryMessage(encodeJson(whole), type))).toEqual(whole);
      expect(messageOf(readRetryMessage(encodeProtobuf(whole), type))).toEqual(whole);
    }
  });
});

describe('an undeclared message', () => {
  it.each(['', ' \t\r\n', '\uFEFF', '\uFEFF  '])(
    'is JSON if its first byte that is no blank is a brace and it parses (%j)',
    (before) => {
      const reading = readRetryMessage(bytesOf(before + JSON.stringify(least)));
      expect(messageOf(reading).originalQueue).toBe('orders');
    },
  );

  it('is else protobuf if it decodes to a UUID and a queue', () => {
    expect(messageOf(readRetryMessage(encodeProtobuf(whole)))).toEqual(whole);
  });

  it('is protobuf only if it names the queue itself, and not just a header', () => {
    const bytes = encodeProtobuf({ ...whole, originalQueue: '' });
    expect(readRetryMessage(bytes, undefined, 'orders').type).toBe('unreadable');
    expect(messageOf(readRetryMessage(bytes, PROTOBUF, 'orders')).originalQueue).toBe('orders');
  });

  it('is protobuf even where it begins with a brace', () => {
    // Field 15 as a group: the tag of it is the byte of `{`.
    const group = new BinaryWriter().tag(15, WireType.StartGroup).tag(15, WireType.EndGroup);
    const bytes = Buffer.concat([group.finish(), encodeProtobuf(whole)]);
    expect(bytes[0]).toBe('{'.charCodeAt(0));
    expect(messageOf(readRetryMessage(bytes))).toEqual(whole);
  });

  it.each([
    ['no bytes', ''],
    ['only blanks', ' \n '],
    ['a brace and nothing', '{'],
    ['an array', JSON.stringify([least])],
    ['a text', 'hello'],
    ['JSON of something else', '{"hello":"world"}'],
  ])('is else unreadable: %s', (_, body) => {
    expect(readRetryMessage(bytesOf(body)).type).toBe('unreadable');
  });

  it('says of JSON what is wrong with the JSON, of other bytes what is wrong with the protobuf', () => {
    expect(whyOf(readRetryMessage(bytesOf('{"a":1}')))).toBe('message_id is not a UUID.');
    expect(whyOf(readRetryMessage(bytesOf('{nonsense')))).toBe('It is not JSON in UTF-8.');
    expect(whyOf(readRetryMessage(bytesOf('nonsense')))).toBe('It is neither JSON nor protobuf.');
  });
});

describe('message_id', () => {
  it.each([
    'abc',
    '',
    `{${id}}`,
    `urn:uuid:${id}`,
    id.replaceAll('-', ''),
    `${id}0`,
    ` ${id}`,
    `${id}\n`,
  ])('is a UUID; anything else is unreadable: %j', (bad) => {
    expect(whyOf(fromJson({ message_id: bad }))).toBe('message_id is not a UUID.');
    expect(whyOf(fromProtobuf(text(1, bad)))).toBe('message_id is not a UUID.');
  });

  it.each([null, undefined, 7, {}, [id]])('that is no text is unreadable: %j', (bad) => {
    expect(whyOf(fromJson({ message_id: bad }))).toBe('message_id is not a UUID.');
  });

  it('in capitals is the same id', () => {
    expect(messageOf(fromJson({ message_id: id.toUpperCase() })).messageId).toBe(id);
    expect(messageOf(fromProtobuf(text(1, id.toUpperCase()))).messageId).toBe(id);
  });
});

describe('original_payload', () => {
  it.each([
    ['a base64 string', 'AAH+/w=='],
    ['base64 of the other alphabet', 'AAH-_w=='],
    ['base64 without padding', 'AAH+/w'],
    ["Node's Buffer", { type: 'Buffer', data: [0, 1, 254, 255] }],
  ])('in JSON is %s', (_, original_payload) => {
    const { originalPayload } = messageOf(fromJson({ original_payload }));
    expect(originalPayload).toEqual(new Uint8Array([0, 1, 254, 255]));
  });

  it.each([
    ['text that is no base64', 'not base64!'],
    ['base64 with a blank in it', 'AA H'],
    ['a length that no base64 has', 'AAAAA'],
    ['padding that does not fit', 'AAA=='],
    ['nothing but padding', '=='],
    ['padding within', 'AA==AA=='],
    ['a number', 5],
    ['a plain object', { a: 1 }],
    ['a list', [1, 2]],
    ['a Buffer with a text', { type: 'Buffer', data: 'AAH' }],
    ['a Buffer with 256', { type: 'Buffer', data: [256] }],
    ['a Buffer with -1', { type: 'Buffer', data: [-1] }],
    ['a Buffer with a fraction', { type: 'Buffer', data: [0.5] }],
    ['a Buffer with a text in it', { type: 'Buffer', data: ['1'] }],
    ['something of another type', { type: 'Uint8Array', data: [1] }],
  ])('in JSON of another kind is unreadable: %s', (_, original_payload) => {
    expect(whyOf(fromJson({ original_payload }))).toBe(
      'original_payload is neither base64 nor a Buffer.',
    );
  });

  it('in JSON must be there, since an empty message would be sent in its place', () => {
    const why = 'original_payload is neither base64 nor a Buffer.';
    expect(whyOf(fromJson({ original_payload: undefined, payload: 'aGk=' }))).toBe(why);
    expect(whyOf(fromJson({ original_payload: null }))).toBe(why);
  });

  it('may be empty', () => {
    const none = new Uint8Array();
    expect(messageOf(fromJson({ original_payload: '' })).originalPayload).toEqual(none);
    const bytes = encodeProtobuf({ ...whole, originalPayload: none });
    expect(messageOf(readRetryMessage(bytes, PROTOBUF)).originalPayload).toEqual(none);
  });
});

describe('original_queue', () => {
  it.each([
    ['255 bytes', 'q'.repeat(255)],
    ['255 bytes of more than one each', `${'ä'.repeat(127)}q`],
    ['a URL, which is a name as well', 'https://example.com/a'],
    ["a handler's, which is a name as well", 'handler:orders'],
    ['a blank', ' '],
  ])('has 1 to 255 bytes and is always the name of a queue: %s', (_, queue) => {
    expect(messageOf(fromJson({ original_queue: queue })).originalQueue).toBe(queue);
    expect(messageOf(fromProtobuf(text(3, queue))).originalQueue).toBe(queue);
  });

  it.each([
    ['256 bytes', 'q'.repeat(256)],
    ['256 bytes of two each', 'ä'.repeat(128)],
    ['a NUL, which no store takes', 'or\0ders'],
  ])('with %s is unreadable', (_, queue) => {
    const why = 'original_queue is not a name of 1 to 255 bytes.';
    expect(whyOf(fromJson({ original_queue: queue }))).toBe(why);
    expect(whyOf(fromProtobuf(text(3, queue)))).toBe(why);
  });

  it('with half a character is unreadable, rather than the name of another queue', () => {
    const half = bytesOf(JSON.stringify(least).replace('orders', '\\ud83d'));
    expect(readRetryMessage(half, JSON_TYPE).type).toBe('unreadable');
    const bytes = (writer: BinaryWriter) =>
      writer.tag(3, WireType.LengthDelimited).bytes(new Uint8Array([0xc3]));
    expect(fromProtobuf(bytes).type).toBe('unreadable');
  });

  it.each([undefined, null, ''])('that is missing (%j) may stand in the header instead', (none) => {
    const body = bytesOf({ ...least, original_queue: none });
    expect(whyOf(readRetryMessage(body, JSON_TYPE))).toBe('original_queue is missing.');
    expect(messageOf(readRetryMessage(body, JSON_TYPE, 'billing')).originalQueue).toBe('billing');
    expect(messageOf(readRetryMessage(body, undefined, 'billing')).originalQueue).toBe('billing');
  });

  it('in the body comes before the header', () => {
    const reading = readRetryMessage(bytesOf(least), JSON_TYPE, 'billing');
    expect(messageOf(reading).originalQueue).toBe('orders');
  });

  it('that is no text is unreadable', () => {
    expect(whyOf(fromJson({ original_queue: 7 }))).toBe('original_queue is not a text.');
  });
});

describe('error_reason', () => {
  it('may be absent', () => {
    expect(messageOf(fromJson({}))).not.toHaveProperty('errorReason');
    expect(messageOf(fromJson({ error_reason: null }))).not.toHaveProperty('errorReason');
    expect(messageOf(fromProtobuf(text(4, '')))).not.toHaveProperty('errorReason');
  });

  it('that is no text is unreadable', () => {
    expect(whyOf(fromJson({ error_reason: { message: 'no' } }))).toBe(
      'error_reason is not a text.',
    );
  });

  it('with half a character at its end does not cost the message', () => {
    const bytes = (writer: BinaryWriter) =>
      writer.tag(4, WireType.LengthDelimited).bytes(new Uint8Array([110, 111, 0xc3]));
    expect(messageOf(fromProtobuf(bytes)).errorReason).toBe('no\uFFFD');
  });
});

describe('retry_count', () => {
  it('is 0, 1, 2 ..., and 0 where it is absent', () => {
    for (const count of [0, 1, 2, 2_147_483_647]) {
      expect(messageOf(fromJson({ retry_count: count })).retryCount).toBe(count);
      expect(messageOf(fromProtobuf(varint(5, count))).retryCount).toBe(count);
    }
    expect(messageOf(fromJson({})).retryCount).toBe(0);
    expect(messageOf(fromProtobuf(() => undefined)).retryCount).toBe(0);
  });

  it.each([-1, -2_147_483_648, 2_147_483_648, 4_294_967_296])(
    'that is negative or no int32 is unreadable: %j',
    (count) => {
      const why = 'retry_count is not an int32 from 0 on.';
      expect(whyOf(fromJson({ retry_count: count }))).toBe(why);
      expect(whyOf(fromProtobuf(varint(5, count)))).toBe(why);
    },
  );

  it.each([1.5, '1', true, [], {}])('in JSON is a number: %j is unreadable', (count) => {
    expect(whyOf(fromJson({ retry_count: count }))).toBe('retry_count is not an int32 from 0 on.');
  });
});

describe('max_retries', () => {
  it('absent means the default, on protobuf also 0', () => {
    expect(messageOf(fromJson({}))).not.toHaveProperty('maxRetries');
    expect(messageOf(fromJson({ max_retries: null }))).not.toHaveProperty('maxRetries');
    expect(messageOf(fromProtobuf(() => undefined))).not.toHaveProperty('maxRetries');
    expect(messageOf(fromProtobuf(varint(6, 0)))).not.toHaveProperty('maxRetries');
  });

  it('as JSON 0 means no retry', () => {
    expect(messageOf(fromJson({ max_retries: 0 })).maxRetries).toBe(0);
  });

  it('may be below 0', () => {
    expect(messageOf(fromJson({ max_retries: -1 })).maxRetries).toBe(-1);
    expect(messageOf(fromProtobuf(varint(6, -1))).maxRetries).toBe(-1);
  });

  it('that is no int32 is unreadable', () => {
    expect(whyOf(fromJson({ max_retries: 2 ** 31 }))).toBe('max_retries is not an int32.');
    expect(whyOf(fromJson({ max_retries: '3' }))).toBe('max_retries is not an int32.');
    expect(whyOf(fromProtobuf(varint(6, 2 ** 31)))).toBe('max_retries is not an int32.');
  });
});

describe('next_retry_at_ms', () => {
  it.each([
    ['a number', 1_800_000_000_000, 1_800_000_000_000],
    ['a string', '1800000000000', 1_800_000_000_000],
    [
      'a number with a fraction, which goes up so that nothing is early',
      1_800_000_000_000.25,
      1_800_000_000_001,
    ],
    ['the largest int64', '9223372036854775807', 2 ** 63],
    ['one that is long past', -5, -5],
  ])('in JSON is %s', (_, next_retry_at_ms, expected) => {
    expect(messageOf(fromJson({ next_retry_at_ms })).nextRetryAtMs).toBe(expected);
  });

  it('is read over its whole range on protobuf', () => {
    for (const ms of [1_800_000_000_000n, 2n ** 63n - 1n, -(2n ** 63n)]) {
      expect(messageOf(fromProtobuf(varint(7, ms))).nextRetryAtMs).toBe(Number(ms));
    }
  });

  it('is absent where it is 0 or null', () => {
    expect(messageOf(fromJson({ next_retry_at_ms: 0 }))).not.toHaveProperty('nextRetryAtMs');
    expect(messageOf(fromJson({ next_retry_at_ms: '0' }))).not.toHaveProperty('nextRetryAtMs');
    expect(messageOf(fromJson({ next_retry_at_ms: null }))).not.toHaveProperty('nextRetryAtMs');
    expect(messageOf(fromJson({ next_retry_at_ms: -0.5 }))).not.toHaveProperty('nextRetryAtMs');
    expect(messageOf(fromProtobuf(varint(7, 0)))).not.toHaveProperty('nextRetryAtMs');
  });

  it.each(['', 'soon', '1e3', '0x10', ' 5', '99999999999999999999', true, [], {}, 1e19])(
    'of another kind is unreadable: %j',
    (next_retry_at_ms) => {
      expect(whyOf(fromJson({ next_retry_at_ms }))).toBe(
        'next_retry_at_ms is not an int64, as a number or a text.',
      );
    },
  );

  it('past what a number can say is unreadable', () => {
    const body = JSON.stringify({ ...least, next_retry_at_ms: 5 }).replace(':5', ':1e999');
    expect(readRetryMessage(bytesOf(body), JSON_TYPE).type).toBe('unreadable');
  });
});

describe('classification', () => {
  it.each([
    ['TRANSIENT', 0],
    ['BUSINESS', 1],
    ['TECHNICAL', 2],
    ['UNKNOWN', 3],
  ] as const)('%s is %i; in JSON a name or a number', (name, number) => {
    expect(messageOf(fromJson({ classification: name })).classification).toBe(name);
    expect(messageOf(fromJson({ classification: number })).classification).toBe(name);
    expect(messageOf(fromProtobuf(varint(8, number))).classification).toBe(name);
  });

  it('absent is TRANSIENT', () => {
    expect(messageOf(fromJson({})).classification).toBe('TRANSIENT');
    expect(messageOf(fromJson({ classification: null })).classification).toBe('TRANSIENT');
    expect(messageOf(fromProtobuf(() => undefined)).classification).toBe('TRANSIENT');
  });

  it.each([4, -1, 0.5, 'transient', '0', 'FATAL', '', 'length', true, {}, []])(
    'not in the list is UNKNOWN: %j',
    (classification) => {
      expect(messageOf(fromJson({ classification })).classification).toBe('UNKNOWN');
    },
  );

  it.each([4n, -1n, 2n ** 40n])('not in the list is UNKNOWN on protobuf: %s', (number) => {
    expect(messageOf(fromProtobuf(varint(8, number))).classification).toBe('UNKNOWN');
  });
});

describe('protobuf', () => {
  it('skips fields that are not known, whatever their wire type', () => {
    const reading = fromProtobuf((writer) => {
      writer.tag(9, WireType.Varint).uint32(1);
      writer.tag(10, WireType.Bit64).fixed64(1n);
      writer.tag(11, WireType.LengthDelimited).string('more');
      writer.tag(12, WireType.StartGroup).tag(1, WireType.Varint).uint32(1);
      writer.tag(12, WireType.EndGroup);
      writer.tag(13, WireType.Bit32).fixed32(1);
      writer.tag(5, WireType.Varint).int32(2);
    });
    expect(messageOf(reading).retryCount).toBe(2);
  });

  it('takes the last value of a field, also one that means absent', () => {
    const reading = fromProtobuf((writer) => {
      for (const queue of ['first', 'last']) text(3, queue)(writer);
      for (const reason of ['timeout', '']) text(4, reason)(writer);
      for (const most of [5, 0]) varint(6, most)(writer);
      for (const time of [1_800_000_000_000, 0]) varint(7, time)(writer);
      for (const name of [1, 0]) varint(8, name)(writer);
    });
    expect(messageOf(reading)).toEqual({
      messageId: id,
      originalPayload: new Uint8Array([104, 105]),
      originalQueue: 'last',
      retryCount: 0,
      classification: 'TRANSIENT',
    });
  });

  it.each([
    ['message_id', 1, WireType.Varint],
    ['original_payload', 2, WireType.Varint],
    ['original_queue', 3, WireType.Bit32],
    ['error_reason', 4, WireType.Bit64],
    ['retry_count', 5, WireType.LengthDelimited],
    ['max_retries', 6, WireType.Bit32],
    ['next_retry_at_ms', 7, WireType.Bit64],
    ['classification', 8, WireType.StartGroup],
  ])('with a wrong wire type is unreadable: %s', (name, field, wireType) => {
    const reading = fromProtobuf((writer) => writer.tag(field, wireType).fixed64(0n));
    expect(whyOf(reading)).toBe(`${name} has the wrong wire type.`);
  });

  it('that is cut short anywhere is unreadable, or has lost a whole field at its end', () => {
    const bytes = encodeProtobuf(whole);
    for (let length = 0; length < bytes.length; length += 1) {
      const reading = readRetryMessage(bytes.subarray(0, length), PROTOBUF);
      if (reading.type === 'unreadable') continue;
      const { retryCount, maxRetries, errorReason, nextRetryAtMs } = reading.message;
      expect([retryCount, maxRetries, errorReason, nextRetryAtMs]).not.toContain(NaN);
      expect(reading.message).toMatchObject({ messageId: id, originalQueue: 'orders' });
    }
    expect.hasAssertions();
  });
});

describe('JSON', () => {
  it('takes no notice of names that are not known', () => {
    const body = JSON.stringify(least).replace('{', '{"__proto__":{"retry_count":9},"more":1,');
    expect(messageOf(readRetryMessage(bytesOf(body), JSON_TYPE)).retryCount).toBe(0);
  });

  it('that is not UTF-8 is unreadable', () => {
    const bytes = Buffer.from(JSON.stringify({ ...least, error_reason: 'ä' }), 'latin1');
    expect(whyOf(readRetryMessage(bytes, JSON_TYPE))).toBe('It is not JSON in UTF-8.');
  });

  it.each(['null', '1', '"text"', '[]'])('that is no object is unreadable: %s', (body) => {
    expect(whyOf(readRetryMessage(bytesOf(body), JSON_TYPE))).toBe('It is JSON, but no object.');
  });

  it('in layers without end is unreadable, not the end of the reader', () => {
    const deep = `{"a":${'['.repeat(500_000)}`;
    expect(readRetryMessage(bytesOf(deep)).type).toBe('unreadable');
  });
});

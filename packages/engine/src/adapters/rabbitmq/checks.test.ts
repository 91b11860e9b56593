import { describe, expect, it } from 'vitest';
import type { Publication } from '../../ports/broker.ts';
import { prepare } from './checks.ts';

const limits = { frameBytes: 131_072, messageBytes: 1000 };

function prepared(parts: Partial<Publication>, frameBytes = limits.frameBytes) {
  const message = { address: 'orders', payload: new Uint8Array(), headers: {}, ...parts };
  return prepare(message, { ...limits, frameBytes });
}

const withProperty = (name: string, value: unknown): Partial<Publication> => ({
  extra: { amqp: { properties: { [name]: value } } },
});
const withHeader = (value: unknown): Partial<Publication> => ({
  extra: { amqp: { headers: { 'x-a': value } } },
});

describe('a message that the broker would close the channel for', () => {
  it.each<[string, Partial<Publication>, string, string]>([
    ['no queue', { address: '' }, 'INVALID_MESSAGE', 'name of a queue'],
    ['a long queue', { address: 'ü'.repeat(128) }, 'INVALID_MESSAGE', 'name of a queue'],
    ['too much', { payload: new Uint8Array(1001) }, 'MESSAGE_TOO_LARGE', 'at most 1000 bytes'],
    ['a long type', { contentType: 'x'.repeat(256) }, 'INVALID_MESSAGE', 'contentType'],
    ['a long id', withProperty('messageId', 'ü'.repeat(128)), 'INVALID_MESSAGE', 'messageId'],
    ['an odd id', withProperty('correlationId', 5), 'INVALID_MESSAGE', 'correlationId'],
    ['priority', withProperty('priority', 256), 'INVALID_MESSAGE', 'priority'],
    ['a time before time', withProperty('timestamp', -1), 'INVALID_MESSAGE', 'timestamp'],
    ['no time', withProperty('timestamp', 'now'), 'INVALID_MESSAGE', 'timestamp'],
    [
      'an answer to a channel',
      withProperty('replyTo', 'amq.rabbitmq.reply-to'),
      'INVALID_MESSAGE',
      'replyTo',
    ],
    ['an odd header', { headers: { 'x-a': {} as string } }, 'INVALID_MESSAGE', 'neither a text'],
    ['a long name', { headers: { ['x'.repeat(256)]: '1' } }, 'INVALID_MESSAGE', 'more than 255'],
    ['a plain number', withHeader(5), 'INVALID_MESSAGE', 'no type that RabbitMQ knows'],
    ['an unknown type', withHeader({ '!': 'any', value: 1 }), 'INVALID_MESSAGE', 'no type'],
    ['a large byte', withHeader({ '!': 'int8', value: 128 }), 'INVALID_MESSAGE', 'is no int8'],
    [
      'a long',
      withHeader({ '!': 'int64', value: '9223372036854775808' }),
      'INVALID_MESSAGE',
      'int64',
    ],
    ['half', withHeader({ '!': 'int32', value: 0.5 }), 'INVALID_MESSAGE', 'is no int32'],
    ['a word', withHeader({ '!': 'double', value: 'one' }), 'INVALID_MESSAGE', 'is no double'],
    [
      'a decimal',
      withHeader({ '!': 'decimal', value: { places: 1 } }),
      'INVALID_MESSAGE',
      'decimal',
    ],
    ['no bytes', withHeader({ '!': 'bytes', value: [1] }), 'INVALID_MESSAGE', 'base64'],
    ['no table', withHeader({ '!': 'table', value: null }), 'INVALID_MESSAGE', 'is no table'],
    [
      'a long name inside',
      withHeader({ '!': 'table', value: { ['x'.repeat(256)]: null } }),
      'INVALID_MESSAGE',
      'more than 255 bytes in it',
    ],
    ['a list with a fault', withHeader([null, 1]), 'INVALID_MESSAGE', 'no type'],
    ['64 KiB of headers', { headers: { 'x-a': 'x'.repeat(65_600) } }, 'HEADERS_TOO_LARGE', '65532'],
  ])('is impossible: %s', (_, parts, code, sentence) => {
    const result = prepared(parts);
    expect(result).toMatchObject({ outcome: 'impossible', failure: { class: 'technical', code } });
    expect(result.outcome === 'impossible' && result.failure.message).toContain(sentence);
  });

  it('is impossible where a value has no end', () => {
    let deep: unknown = null;
    for (let depth = 0; depth < 10_000; depth++) deep = [deep];
    expect(prepared(withHeader(deep))).toMatchObject({ failure: { code: 'INVALID_MESSAGE' } });
  });

  it('is impossible where both sides agreed on small frames, and possible where not', () => {
    const parts = { headers: { 'x-a': 'x'.repeat(8150) } };
    expect(prepared(parts, 8192).outcome).toBe('impossible');
    expect(prepared(parts, 8300).outcome).toBe('ready');
  });
});

describe('a message that can be sent', () => {
  it('has what was carried, and what its publisher says above it', () => {
    const result = prepared({
      contentType: 'text/plain',
      headers: { 'x-a': 'mine', 'x-count': 3, 'x-large': 2 ** 40, 'x-half': 0.5 },
      extra: {
        amqp: {
          properties: { correlationId: 'c', priority: 0, userId: 'guest', expiration: '1' },
          headers: { 'x-a': true, 'x-b': { '!': 'int64', value: '5' }, CC: ['q'], 'x-death': [] },
        },
      },
    });
    if (result.outcome === 'impossible') throw new Error(result.failure.message);
    expect(result.properties).toEqual({
      persistent: true,
      mandatory: true,
      contentType: 'text/plain',
      correlationId: 'c',
      priority: 0,
    });
    expect([...result.headers]).toEqual([
      ['x-b', { '!': 'int64', value: 5n }],
      ['x-a', 'mine'],
      ['x-count', { '!': 'int32', value: 3 }],
      ['x-large', { '!': 'int64', value: 2 ** 40 }],
      ['x-half', { '!': 'double', value: 0.5 }],
    ]);
  });

  it('loses what would make copies of it or kill it, whoever wrote that', () => {
    const result = prepared({ headers: { CC: 'q', BCC: 'q', 'x-delay': 5, 'x-kept': '1' } });
    expect(result.outcome === 'ready' && [...result.headers.keys()]).toEqual(['x-kept']);
  });

  it('says from which queue it comes where Redrive republishes it', () => {
    const originOf = (headers: Publication['headers'], frameBytes?: number) => {
      const result = prepared({ headers }, frameBytes);
      return result.outcome === 'ready' ? result.headers.get('x-original-queue') : result.outcome;
    };
    const mark = { 'x-retry-scheduler': 'true' };
    expect(originOf(mark)).toBe('orders');
    expect(originOf({ ...mark, 'x-original-queue': 'theirs' })).toBe('theirs');
    // Not a republish: a message of somebody else, and one that Redrive puts aside.
    expect(originOf({})).toBeUndefined();
    expect(originOf({ ...mark, 'x-redrive-source': 'retry.scheduled' })).toBeUndefined();
    // The header gives way where there is no room for it.
    expect(originOf({ ...mark, 'x-a': 'x'.repeat(100) }, 230)).toBeUndefined();
  });

  it('takes 60 KiB of headers', () => {
    expect(prepared({ headers: { 'x-a': 'x'.repeat(60 * 1024) } }).outcome).toBe('ready');
  });

  it('takes no notice of an edit that is no object', () => {
    expect(prepared({ extra: { amqp: 'none' } }).outcome).toBe('ready');
    expect(prepared({ extra: { amqp: { headers: null, properties: 5 } } }).outcome).toBe('ready');
  });
});

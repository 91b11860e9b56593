import { describe, expect, it } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import { carriedContext } from './carry.ts';

function received(parts: Partial<Received>): Received {
  return { tag: 1, payload: new Uint8Array(), headers: {}, redelivered: false, ...parts };
}

describe('what a message leaves to its task', () => {
  it('is its texts as headers, and the rest beside them with its types', () => {
    const properties = {
      correlationId: 'c-1',
      replyTo: 'answers',
      timestamp: 1_700_000_000,
      priority: 3,
      deliveryMode: 1,
      userId: 'guest',
      expiration: '5000',
    };
    const { context, headerBytes, lost } = carriedContext(
      received({
        headers: { 'x-tenant': 'a', 'x-number': 7, 'x-flag': true },
        contentType: 'application/json',
        extra: { exchange: 'e', routingKey: 'r', properties },
      }),
    );
    expect(context).toEqual({
      headers: { 'x-tenant': 'a' },
      contentType: 'application/json',
      extra: {
        amqp: {
          properties: {
            correlationId: 'c-1',
            replyTo: 'answers',
            timestamp: 1_700_000_000,
            priority: 3,
          },
          headers: { 'x-number': { '!': 'int32', value: 7 }, 'x-flag': true },
        },
      },
    });
    expect(lost).toEqual([]);
    expect(headerBytes).toBe('x-tenantx-numberx-flag'.length + 3 + 6 + 5 + 2);
  });

  it('is nothing at all of a plain one', () => {
    expect(carriedContext(received({}))).toEqual({ context: {}, headerBytes: 0, lost: [] });
  });

  it('has guessed types where the bytes of the headers are not known', () => {
    const headers = {
      large: 2 ** 40,
      half: 0.5,
      none: null,
      nothing: Number.NaN,
      minus: -0,
      big: 2n ** 62n,
      bytes: Buffer.from('ab'),
      list: [1, 'two'],
      table: { at: { '!': 'timestamp', value: 5 } },
      odd: () => undefined,
    };
    const { context, lost } = carriedContext(received({ headers }));
    expect(context.extra).toEqual({
      amqp: {
        headers: {
          large: { '!': 'int64', value: 2 ** 40 },
          half: { '!': 'double', value: 0.5 },
          none: null,
          nothing: { '!': 'double', value: 'NaN' },
          minus: { '!': 'double', value: '-0' },
          big: { '!': 'int64', value: String(2n ** 62n) },
          bytes: { '!': 'bytes', value: 'YWI=' },
          list: [{ '!': 'int32', value: 1 }, 'two'],
          table: { '!': 'table', value: { at: { '!': 'timestamp', value: 5 } } },
        },
      },
    });
    expect(lost).toEqual(['odd']);
  });

  it('leaves out what is nested without an end, and names it', () => {
    const cycle: Record<string, unknown> = {};
    cycle['again'] = cycle;
    const { context, lost } = carriedContext(received({ headers: { cycle, kept: 'yes' } }));
    expect(lost).toEqual(['cycle']);
    expect(context).toEqual({ headers: { kept: 'yes' } });
  });
});

import type { InboxItem } from '@redrive/engine';
import { describe, expect, it } from 'vitest';
import { readBase64, showDifference, showPayload } from './payload.ts';

describe('payloads on the wire', () => {
  it('are JSON where that loses nothing', () => {
    expect(showPayload(Buffer.from('{"a":1}'))).toEqual({ payload: { a: 1 } });
    const large = showPayload(Buffer.from('{"id":12345678901234567890}'));
    expect(JSON.stringify(large)).toBe('{"payload":{"id":12345678901234567890}}');
  });

  it('are base64 where they are bytes, large, or nested too deep', () => {
    expect(showPayload(Uint8Array.of(0, 255))).toEqual({ payload_base64: 'AP8=' });
    const large = Buffer.from(`"${'x'.repeat(1024 * 1024)}"`);
    expect(showPayload(large)).toEqual({ payload_base64: large.toString('base64') });
    expect(Object.keys(showPayload(Buffer.from('['.repeat(600) + ']'.repeat(600))))).toEqual([
      'payload_base64',
    ]);
  });

  it('are those of a part of a larger piece of memory', () => {
    const part = new Uint8Array(new Uint8Array([1, 2, 255, 254, 3]).buffer, 2, 2);
    expect(showPayload(part)).toEqual({ payload_base64: '//4=' });
  });

  it.each(['', 'AAEC', 'AP8=', '/w==', '_-8='])('are read from base64: %j', (text) => {
    expect(readBase64(text)).toEqual(Buffer.from(text, 'base64'));
  });

  it.each(['A', 'AAE', '!!!!', 'AP8=AP8=', 'AA=A', 'A A=', '===='])(
    'are not read from what is none: %j',
    (text) => {
      expect(readBase64(text)).toBeUndefined();
    },
  );
});

describe('differences on the wire', () => {
  const item = {
    payload: Buffer.from('{"a":1}'),
    destination: { kind: 'queue', address: 'orders' },
  } as unknown as InboxItem;
  const edited = (edit: object, payload = item.payload) =>
    showDifference({ ...item, payload, edit });

  it('are there only with an edit', () => {
    expect(showDifference(item)).toEqual([]);
  });

  it('name each place', () => {
    expect(edited({ payload: Buffer.from('{"a":2}') })).toEqual([
      { path: '/payload/a', before: 1, after: 2 },
    ]);
  });

  it('tell payloads that cannot be shown by their size', () => {
    const deep = Buffer.from('['.repeat(600) + ']'.repeat(600));
    const to = { kind: 'queue', address: 'other' };
    expect(edited({ payload: deep, destination: to })).toEqual([
      { path: '/payload', before: '7 bytes', after: '1200 bytes' },
      { path: '/destination', before: 'queue:orders', after: 'queue:other' },
    ]);
    expect(edited({ payload: deep }, deep)).toEqual([]);
  });
});

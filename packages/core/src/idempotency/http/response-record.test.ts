import { describe, expect, it } from 'vitest';
import { fromRecord, type HeaderPair, releasesKey, toRecord } from './response-record.ts';

const body = new TextEncoder().encode('{"id":7}');

/** As a store gives it back. */
function stored(response: Parameters<typeof toRecord>[0]) {
  return fromRecord(JSON.parse(JSON.stringify(toRecord(response))));
}

function headersOf(...headers: HeaderPair[]): unknown {
  return stored({ status: 200, headers, body })?.headers;
}

describe('the record of a response', () => {
  it('keeps the status, the headers and the body', () => {
    const headers: HeaderPair[] = [
      ['content-type', 'application/json'],
      ['link', '<a>; rel="next"'],
      ['link', '<b>; rel="prev"'],
      ['x-größe', 'not a name'],
    ];
    expect(stored({ status: 201, headers, body })).toEqual({
      status: 201,
      headers: headers.slice(0, 3),
      body,
    });
  });

  it('shows a body of text as a text, and keeps a byte order mark', () => {
    const marked = new TextEncoder().encode('\uFEFFhello');
    expect(toRecord({ status: 200, headers: [], body: marked })).toMatchObject({
      text: '\uFEFFhello',
    });
    expect(stored({ status: 200, headers: [], body: marked })?.body).toEqual(marked);
  });

  it('keeps any bytes', () => {
    const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 256);
    const record = toRecord({ status: 200, headers: [], body: bytes });
    expect(record).toHaveProperty('base64');
    expect(fromRecord(record)?.body).toEqual(bytes);
    expect(stored({ status: 204, headers: [], body: new Uint8Array() })?.body).toHaveLength(0);
  });

  it('drops cookies and what belongs to one connection or one moment', () => {
    expect(
      headersOf(
        ['Set-Cookie', 'session=1'],
        ['set-cookie2', 'session=1'],
        ['Connection', 'close, X-Hop , content-language'],
        ['x-hop', '1'],
        ['content-language', 'de'],
        ['keep-alive', 'timeout=5'],
        ['transfer-encoding', 'chunked'],
        ['content-length', '8'],
        ['trailer', 'x-sum'],
        ['upgrade', 'h2c'],
        ['te', 'trailers'],
        ['proxy-authenticate', 'Basic'],
        ['date', 'Thu, 01 Jan 2026 00:00:00 GMT'],
        ['age', '3'],
        ['idempotency-replayed', 'true'],
        ['Location', '/orders/7'],
      ),
    ).toEqual([['location', '/orders/7']]);
  });

  it.each([
    ['a line break', 'a\r\nset-cookie: session=1'],
    ['a bare line feed', 'a\nx: 1'],
    ['a NUL', 'a\0'],
    ['a letter that HTTP cannot carry', '日本'],
  ])('drops a header with %s, from a handler or from the store', (_, value) => {
    expect(headersOf(['x-note', value], ['x-good', '1'])).toEqual([['x-good', '1']]);
    const record = { status: 200, headers: [['x-note', value]], text: '' };
    expect(fromRecord(record)?.headers).toEqual([]);
  });

  it('drops cookies and bad names also from the store', () => {
    const headers = [
      ['set-cookie', 'session=1'],
      ['bad name', '1'],
      ['x\r\ny', '1'],
      ['', '1'],
      ['x-only-a-name'],
      'x-text',
      null,
      ['x-number', 7],
      ['__proto__', 'polluted'],
    ];
    const kept = fromRecord({ status: 200, headers, text: '' });
    expect(kept?.headers).toEqual([['__proto__', 'polluted']]);
    expect(Object.prototype).not.toHaveProperty('polluted');
  });

  it('is kept without its body where the body was not kept, or the headers are too many', () => {
    const unkept = 'its body is over the limit of 5 bytes';
    const location: HeaderPair = ['location', '/orders/7'];
    expect(stored({ status: 201, headers: [location], unkept })).toEqual({
      status: 201,
      headers: [location],
      unkept,
    });
    expect(stored({ status: 201, headers: [] })).toEqual({
      status: 201,
      headers: [],
      unkept: 'it was not sent as one body',
    });
    const many = Array.from({ length: 101 }, (_, i): HeaderPair => [`x-${i}`, '1']);
    const large: HeaderPair[] = [['x-large', 'x'.repeat(16 * 1024)]];
    for (const headers of [many, large]) {
      expect(stored({ status: 200, headers, body })).toEqual({
        status: 200,
        headers: [],
        unkept: 'its headers are over the limit of 100 headers with 16384 characters',
      });
    }
    expect(headersOf(...many.slice(1))).toHaveLength(100);
  });

  it.each([
    ['a text', 'done'],
    ['nothing', null],
    ['a list', []],
    ['no headers', { status: 200, text: '' }],
    ['no body', { status: 200, headers: [] }],
    ['no status', { headers: [], text: '' }],
    ['a status as a text', { status: '200', headers: [], text: '' }],
    ['a status that is none', { status: 101, headers: [], text: '' }],
    ['a status over all', { status: 600, headers: [], text: '' }],
    ['a status between two', { status: 200.5, headers: [], text: '' }],
    ['what is not base64', { status: 200, headers: [], base64: '*' }],
  ])('is none with %s', (_, record) => {
    expect(fromRecord(record)).toBeUndefined();
  });
});

it('frees the key where a client is expected to try again', () => {
  const freeing = Array.from({ length: 600 }, (_, status) => status).filter(releasesKey);
  expect(freeing.filter((status) => status >= 200 && status < 500)).toEqual([408, 425, 429]);
  expect(freeing.filter((status) => status < 200 || status >= 500)).toHaveLength(300);
});

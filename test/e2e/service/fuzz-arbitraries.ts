/** Requests that nobody with good intentions sends. */
import fc from 'fast-check';
import type { Request } from './fuzz-wire.ts';

const bits = (text: string) => Buffer.from(text, 'latin1');

/** Texts that have broken something somewhere. */
const oddText = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '\0',
    '../../etc/passwd',
    '%00',
    '%zz',
    '%2e%2e%2f',
    '__proto__',
    'constructor',
    "'; DROP TABLE retry_queue; --",
    '{{7*7}}',
    '\u202e',
    'ÿþ',
    '-1',
    '1e999',
    'NaN',
    '9'.repeat(40),
    'x'.repeat(5000),
    'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
    '0001-01-01T00:00:00Z',
    '+275760-09-13T00:00:00.001Z',
    '2024-02-30T25:61:61Z',
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
);

const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  { maxDepth: 3 },
  oddText,
  fc.constantFrom(null, true, false, 0, -0, -1, 0.5, 1e308, 2 ** 53, -(2 ** 63), [], {}, [[]]),
  fc.integer(),
  fc.dictionary(oddText, fc.constantFrom(null, 1, 'x', []), { maxKeys: 3 }),
  fc.array(oddText, { maxLength: 3 }),
);

const fields = [
  'message_id',
  'destination',
  'payload',
  'payload_base64',
  'headers',
  'content_type',
  'method',
  'secret',
  'retry_count',
  'max_retries',
  'policy',
  'due_at',
  'expires_at',
  'ordering_key',
  'on_dead',
  'error_reason',
  'classification',
  'unknown_field',
] as const;

/** One that would be taken, but for a few fields. It is due when nobody is there any more. */
const item = fc
  .record({
    id: fc.uuid(),
    wrong: fc.oneof(
      fc.constant({}),
      fc.dictionary(fc.constantFrom(...fields), oddValue, { minKeys: 1, maxKeys: 2 }),
    ),
    missing: fc.option(fc.constantFrom(...fields), { freq: 8 }),
  })
  .map(({ id, wrong, missing }) => {
    const given: Record<string, unknown> = {
      message_id: id,
      destination: 'http://127.0.0.1:9/nobody',
      payload: { order: 7 },
      due_at: '2099-01-01T00:00:00Z',
      ...wrong,
    };
    if (missing) delete given[missing];
    return given;
  });

const retries = fc.oneof(
  { weight: 4, arbitrary: item },
  {
    weight: 3,
    arbitrary: fc.record({
      items: fc.array(
        fc.oneof({ weight: 3, arbitrary: item }, { weight: 1, arbitrary: oddValue }),
        { maxLength: 5 },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ items: oddValue }) },
);

/** Bytes that may be JSON or not. */
const rawBody = fc.oneof(
  fc.constantFrom(
    bits(''),
    bits('{'),
    bits('nul'),
    bits('"\\ud800"'),
    bits('{"a":1,"a":2}'),
    bits('{"__proto__":{"x":1},"destination":"http://127.0.0.1:9/","payload":1}'),
    bits('{"retry_count":1e999}'),
    bits('\u00ef\u00bb\u00bf{}'),
    bits('{"destination":"\u00ff\u00fe"}'),
    bits('['.repeat(50_000)),
    bits(`${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`),
    bits(`{"destination":"http://127.0.0.1:9/","payload":${'['.repeat(3000)}${']'.repeat(3000)}}`),
    bits(`{"items":[${'{},'.repeat(2000)}{}]}`),
  ),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);

const anyJson = oddValue.map((value) => Buffer.from(JSON.stringify(value)));
const retriesJson = retries.map((value) => Buffer.from(JSON.stringify(value)));

const method = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE') },
  {
    weight: 2,
    arbitrary: fc.constantFrom('HEAD', 'OPTIONS', 'TRACE', 'CONNECT', 'BREW', 'get', ''),
  },
);

const id = fc.oneof(fc.uuid(), fc.integer({ min: -1, max: 30 }).map(String), oddText);
const paths = [
  '/api/v1/retries',
  '/api/v1/retries/*',
  '/api/v1/retries/*/expedite',
  '/api/v1/retries/*/succeeded',
  '/api/v1/review',
  '/api/v1/review/*',
  '/api/v1/review/*/replay',
  '/api/v1/review/*/edit',
  '/api/v1/review/*/resolve',
  '/api/v1/review/*/discard',
  '/api/v1/review/*/restore',
  '/api/v1/review/groups',
  '/api/v1/review/groups/*',
  '/api/v1/review/bulk',
  '/api/v1/review/bulk/preview',
  '/api/v1/review/bulk/*',
  '/api/v1/review/bulk/*/members',
  '/api/v1/lanes',
  '/api/v1/lanes/*/pause',
  '/api/v1/lanes/*/resume',
  '/api/v1/policies/simulate',
  '/api/v1/audit',
  '/api/v1/events',
  '/health/ready',
  '/metrics',
  '/openapi.json',
  '/',
  '/*',
] as const;

const queries = fc.dictionary(
  fc.oneof(
    fc.constantFrom('limit', 'cursor', 'state', 'status', 'queue', 'from', 'to', 'text', 'key'),
    oddText,
  ),
  oddText,
  { maxKeys: 3 },
);

const target = fc
  .tuple(fc.constantFrom(...paths), id, queries, fc.boolean())
  .map(([path, value, query, isEncoded]) => {
    // Characters past the first 256 do not go over this wire as they are.
    const write = (text: string) =>
      isEncoded || /[^\x21-\xff]/.test(text) ? encodeURIComponent(text.toWellFormed()) : text;
    const pairs = Object.entries(query).map(([name, text]) => `${write(name)}=${write(text)}`);
    return path.replace('*', () => write(value)) + (pairs.length > 0 ? `?${pairs.join('&')}` : '');
  });

const latin1 = fc.string({
  unit: fc.integer({ min: 1, max: 255 }).map((c) => String.fromCharCode(c)),
  maxLength: 40,
});

const header = fc.oneof(
  fc.tuple(
    fc.constantFrom(
      'content-type',
      'content-length',
      'content-encoding',
      'transfer-encoding',
      'host',
      'origin',
      'sec-fetch-site',
      'authorization',
      'idempotency-key',
      'x-redrive-operator',
      'traceparent',

      'expect',
      'connection',
      'accept',
      'upgrade',
      'last-event-id',
      'range',
      'if-match',
    ),
    fc.oneof(
      latin1,
      fc.constantFrom(
        'application/json',
        'application/json; charset=utf-16',
        'text/plain',
        'multipart/form-data; boundary=x',
        'chunked',
        'gzip',
        'identity, chunked',
        '127.0.0.1',
        'evil.example',
        'null',
        '100-continue',
        'websocket',
        'Bearer x',
        '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        'k'.repeat(300),
        '-1',
        '99999999999999999999',
      ),
    ),
  ),
  fc.tuple(latin1, latin1),
  fc.constant(['x-long', 'x'.repeat(20_000)] as [string, string]),
);

const usual = [
  ['host', '127.0.0.1'],
  ['content-type', 'application/json'],
] as const;

/** A request to the API that is nearly right. */
export const nearlyRight: fc.Arbitrary<Request> = fc.record({
  method: fc.oneof(
    { weight: 8, arbitrary: fc.constant('POST') },
    { weight: 1, arbitrary: fc.constantFrom('PUT', 'PATCH', 'DELETE') },
  ),
  target: fc.oneof(
    { weight: 5, arbitrary: fc.constant('/api/v1/retries') },
    { weight: 3, arbitrary: target },
  ),
  headers: fc.constant(usual),
  body: fc.oneof(
    { weight: 5, arbitrary: retriesJson },
    { weight: 2, arbitrary: anyJson },
    { weight: 2, arbitrary: rawBody },
  ),
});

/** One with odd headers, an odd method, or a length that is not the truth. */
export const odd: fc.Arbitrary<Request> = fc.record({
  method,
  target,
  headers: fc
    .tuple(fc.subarray([...usual]), fc.array(header, { maxLength: 4 }))
    .map(([some, more]) => [...some, ...more]),
  body: fc.oneof(retriesJson, anyJson, rawBody),
  lengthOff: fc.constantFrom(0, 0, 0, 1, -1, 1000),
});

/** What is hardly HTTP. */
export const garbage: fc.Arbitrary<Uint8Array> = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 300 }),
  fc.constantFrom(
    bits('GET\r\n\r\n'),
    bits('GET / HTTP/1.1\r\n\r\n'),
    bits('GET / HTTP/9.9\r\nhost: 127.0.0.1\r\n\r\n'),

    bits('GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n broken: fold\r\n\r\n'),
    bits(
      'POST /api/v1/retries HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}',
    ),
    bits(
      'POST /api/v1/retries HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
    ),
    bits(
      'POST /api/v1/retries HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    ),
    bits(`GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`),
    bits(`GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n${'x: y\r\n'.repeat(3000)}\r\n`),
    bits('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    bits('\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'),
    bits('\r\n\r\n\r\nGET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'),
  ),
);

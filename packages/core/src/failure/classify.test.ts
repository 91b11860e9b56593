import { describe, expect, it } from 'vitest';
import { classify } from './classify.ts';
import type { FailureClass } from './failure.ts';

const coded = (code: unknown, message = 'boom', options?: ErrorOptions) =>
  Object.assign(new Error(message, options), { code });
const named = (name: string, message = 'boom', options?: ErrorOptions) =>
  Object.assign(new Error(message, options), { name });
const split = (list: string) => list.split(' ');

describe('classify by system code', () => {
  const transient = split(
    'ETIMEDOUT ECONNREFUSED ECONNRESET ECONNABORTED ENETUNREACH EHOSTUNREACH ENETDOWN EHOSTDOWN EPIPE ' +
      'EAI_AGAIN ENOTFOUND ENOMEM EMFILE ENFILE EAGAIN EBUSY ENOBUFS UND_ERR_CONNECT_TIMEOUT ' +
      'UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT UND_ERR_SOCKET ERR_STREAM_PREMATURE_CLOSE ' +
      'ERR_TLS_HANDSHAKE_TIMEOUT',
  );
  const technical = split(
    'ENOENT EACCES EPERM EEXIST EISDIR ENOTDIR EINVAL ENOSPC CERT_HAS_EXPIRED CERT_REVOKED ' +
      'DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE ' +
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY ERR_TLS_CERT_ALTNAME_INVALID ERR_INVALID_ARG_TYPE ' +
      'ERR_INVALID_URL',
  );

  it.each(transient)('takes %s for transient', (code) => {
    expect(classify(coded(code))).toMatchObject({ class: 'transient', code });
  });

  it.each(technical)('takes %s for technical', (code) => {
    expect(classify(coded(code, 'timeout'))).toMatchObject({ class: 'technical', code });
  });

  it.each([
    'P2024',
    'XECONNRESET',
    'ECONNRESETX',
    'econnreset',
    'UNABLE_TO_LOCK_ROW',
    '',
    'MY_CERT_X',
  ])('keeps %j without letting it decide', (code) => {
    expect(classify(coded(code))).toMatchObject({ class: 'unknown', code });
    expect(classify(coded(code, 'forbidden'))).toMatchObject({ class: 'business', code });
  });

  it('knows of which the work surely did not run', () => {
    const surely = transient.filter((code) => classify(coded(code)).notExecuted);
    expect(surely).toEqual(['ECONNREFUSED', 'EAI_AGAIN', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT']);
    expect(classify(coded('ECONNRESET'))).not.toHaveProperty('notExecuted');
  });

  it('believes no word of a text about that', () => {
    expect(classify(new Error('connect ECONNREFUSED'))).toEqual({
      class: 'transient',
      message: 'connect ECONNREFUSED',
      names: ['Error'],
    });
  });

  it('makes nothing of a numeric code', () => {
    expect(classify(coded(14))).toEqual({ class: 'unknown', message: 'boom', names: ['Error'] });
  });
});

describe('classify by HTTP status', () => {
  it.each<[number, FailureClass]>([
    ...[408, 425, 429, 500, 501, 502, 503, 504, 505, 599].map((s) => [s, 'transient'] as const),
    ...[400, 401, 403, 404, 409, 410, 418, 422, 451, 499].map((s) => [s, 'business'] as const),
    ...[100, 200, 204, 302, 304].map((s) => [s, 'unknown'] as const),
  ] as [number, FailureClass][])('takes %d for %s', (status, expected) => {
    expect(classify({ status })).toEqual({
      class: expected,
      status,
      code: `HTTP_${status}`,
      ...(status === 429 && { notExecuted: true }),
    });
  });

  it.each([
    ['status', { status: 503 }],
    ['statusCode', { statusCode: 503 }],
    ['response.status', { response: { status: 503 } }],
    ['$metadata.httpStatusCode', { $metadata: { httpStatusCode: 503 } }],
  ])('finds it as %s', (_, fields) => {
    expect(classify(Object.assign(new Error('boom'), fields))).toMatchObject({
      class: 'transient',
      status: 503,
      code: 'HTTP_503',
    });
  });

  it.each([99, 600, 1000, 0, -503, 503.5, Number.NaN, '503', null, {}])(
    'takes %j for no status',
    (status) => {
      expect(classify({ status })).toEqual({ class: 'unknown' });
    },
  );

  it('passes over a status that is none on the way to one that is', () => {
    expect(classify({ status: 'error', statusCode: 404 })).toMatchObject({ status: 404 });
  });

  it('reads a Response', () => {
    const response = new Response(null, { status: 429, headers: { 'retry-after': '3' } });
    expect(classify(response)).toEqual({
      class: 'transient',
      status: 429,
      code: 'HTTP_429',
      retryAfterMs: 3000,
      notExecuted: true,
    });
  });

  it('keeps the code that the error has of its own', () => {
    const error = Object.assign(coded('ERR_BAD_RESPONSE'), { response: { status: 502 } });
    expect(classify(error)).toMatchObject({
      class: 'transient',
      code: 'ERR_BAD_RESPONSE',
      status: 502,
    });
  });

  it('believes a system code more, and a gRPC name less', () => {
    expect(classify({ status: 404, code: 'ECONNRESET' }).class).toBe('transient');
    expect(classify({ status: 500, code: 'INTERNAL' }).class).toBe('transient');
    expect(classify({ status: 400, code: 'UNAVAILABLE' }).class).toBe('business');
  });
});

describe('classify by gRPC code', () => {
  const codes: [string, FailureClass][] = [
    ['OK', 'unknown'],
    ['CANCELLED', 'technical'],
    ['UNKNOWN', 'unknown'],
    ['INVALID_ARGUMENT', 'business'],
    ['DEADLINE_EXCEEDED', 'transient'],
    ['NOT_FOUND', 'business'],
    ['ALREADY_EXISTS', 'business'],
    ['PERMISSION_DENIED', 'business'],
    ['RESOURCE_EXHAUSTED', 'transient'],
    ['FAILED_PRECONDITION', 'business'],
    ['ABORTED', 'transient'],
    ['OUT_OF_RANGE', 'business'],
    ['UNIMPLEMENTED', 'technical'],
    ['INTERNAL', 'technical'],
    ['UNAVAILABLE', 'transient'],
    ['DATA_LOSS', 'technical'],
    ['UNAUTHENTICATED', 'business'],
  ];

  it.each(codes.map(([code, expected], number) => [number, code, expected] as const))(
    'takes %d, which is %s, for %s',
    (number, code, expected) => {
      const failure = { class: expected, code, message: 'boom' };
      expect(classify(Object.assign(coded(number), { details: '' }))).toMatchObject(failure);
      expect(classify(Object.assign(coded(number), { metadata: {} }))).toMatchObject(failure);
      expect(classify(Object.assign(named('ConnectError'), { code: number }))).toMatchObject(
        failure,
      );
      expect(classify(Object.assign(named('ClientError'), { code: number }))).toMatchObject(
        failure,
      );
      expect(classify(coded(code))).toMatchObject(failure);
    },
  );

  it.each([-1, 17, 1.5, Number.NaN])('knows no code %d', (code) => {
    expect(classify({ code, details: 'x' })).toEqual({ class: 'unknown' });
  });

  it('asks nothing else once the server said UNKNOWN', () => {
    expect(classify(coded('UNKNOWN', 'timeout')).class).toBe('unknown');
  });

  it.each([
    ['as grpc-js gives it', { get: () => ['1500'] }],
    ['in Headers', new Headers({ 'grpc-retry-pushback-ms': '1500' })],
  ])('reads pushback %s', (_, metadata) => {
    expect(classify({ code: 14, metadata })).toEqual({
      class: 'transient',
      code: 'UNAVAILABLE',
      retryAfterMs: 1500,
    });
  });

  it.each(['-1', 'never', '0x5'])('takes pushback %j for: do not come back', (value) => {
    const metadata = new Headers({ 'grpc-retry-pushback-ms': value });
    expect(classify({ code: 14, metadata })).toEqual({ class: 'technical', code: 'UNAVAILABLE' });
  });

  it('makes nothing of metadata without pushback', () => {
    expect(classify({ code: 14, metadata: { get: () => [] } })).toEqual({
      class: 'transient',
      code: 'UNAVAILABLE',
    });
  });
});

describe('classify by name', () => {
  it('never takes a cancellation for something to try again', () => {
    const reason = AbortSignal.abort().reason as unknown;
    expect(classify(reason)).toMatchObject({
      class: 'technical',
      code: 'ABORT_ERR',
      names: ['AbortError', 'DOMException', 'Error'],
    });
    expect(classify(named('AbortError', 'timeout'))).toMatchObject({ class: 'technical' });
  });

  it('takes a timeout for transient', () => {
    const error = new DOMException('The operation was aborted', 'TimeoutError');
    expect(classify(error)).toMatchObject({ class: 'transient', code: 'TIMEOUT' });
  });

  it('keeps the code that such an error has of its own', () => {
    expect(classify(Object.assign(named('TimeoutError'), { code: 'POOL' }))).toMatchObject({
      class: 'transient',
      code: 'POOL',
    });
  });

  it('goes by the class where no name was set', () => {
    class TimeoutError extends Error {}
    expect(classify(new TimeoutError('x'))).toMatchObject({
      class: 'transient',
      names: ['TimeoutError', 'Error'],
    });
  });

  it.each([
    'Failed to fetch',
    'Load failed',
    'NetworkError when attempting to fetch resource.',
    'fetch failed',
    'Load failed (api.example.com)',
  ])('takes the TypeError %j for a failed fetch', (message) => {
    expect(classify(new TypeError(message))).toMatchObject({
      class: 'transient',
      code: 'FETCH_FAILED',
    });
  });

  it('believes no name of something whose message is no text', () => {
    const odd = Object.assign(new TypeError('fetch failed'), { message: 5 });
    expect(classify(odd)).toEqual({ class: 'unknown' });
  });

  it('takes those words for nothing in another error, and no other words', () => {
    expect(classify(new Error('fetch failed')).class).toBe('unknown');
    expect(classify(new TypeError('prefetch failed')).class).toBe('technical');
    expect(classify(new TypeError('fetch failed to compile')).class).toBe('technical');
  });

  it.each([TypeError, ReferenceError, RangeError, SyntaxError, EvalError, URIError])(
    'takes any other %o for technical, whatever it says',
    (Kind) => {
      class Own extends Kind {}
      const message = 'timeout is not a function';
      expect(classify(new Kind(message))).toEqual({
        class: 'technical',
        message,
        names: [Kind.name, 'Error'],
      });
      expect(classify(new Own('timeout')).class).toBe('technical');
    },
  );

  it('takes a failed assertion for technical', () => {
    expect(classify(named('AssertionError', 'timeout')).class).toBe('technical');
  });
});

describe('classify by text', () => {
  it('reads name and message', () => {
    expect(classify(new Error('Connection terminated unexpectedly')).class).toBe('transient');
    expect(classify(named('ValidationError')).class).toBe('business');
    expect(classify(named('ServiceTimeoutException', 'duplicate')).class).toBe('transient');
    expect(classify({ message: 'forbidden' })).toEqual({ class: 'business', message: 'forbidden' });
  });

  it('reads the class where no name was set', () => {
    class ValidationError extends Error {}
    expect(classify(new ValidationError('boom')).class).toBe('business');
  });

  it('sees a message that is nothing but a status', () => {
    expect(classify(new Error('503')).class).toBe('transient');
    expect(classify(new Error('order 503 already exists')).class).toBe('business');
  });

  it('reads a thrown string', () => {
    expect(classify('rate limit')).toEqual({ class: 'transient', message: 'rate limit' });
    expect(classify('boom')).toEqual({ class: 'unknown', message: 'boom' });
  });

  it('reads the whole message though it keeps a part', () => {
    const failure = classify(new Error(`${'x'.repeat(1100)} timeout`));
    expect(failure.class).toBe('transient');
    expect(failure.message).toBe('x'.repeat(1024));
  });
});

import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../ports/delivery.ts';
import { AddressRefused } from './lookup.ts';
import { answeredOutcome, brokenOutcome, endedOutcome, invalidOutcome } from './outcome.ts';

const url = new URL('https://example.com/hook?token=hunter2');
const noonMs = Date.UTC(2030, 0, 1, 12);

function answered(status: number, headers: Record<string, string> = {}, text = '') {
  const body = text === '' ? undefined : Buffer.from(text);
  return failureOf(answeredOutcome({ status, headers, body }, url, noonMs, undefined));
}

function broken(error: unknown, reached = true) {
  return failureOf(brokenOutcome(error, url.origin, reached, undefined));
}

function failureOf(outcome: Outcome) {
  if (outcome.type !== 'failed') throw new Error(outcome.type);
  return outcome.failure;
}

function errorOf(code: string, message = `it is ${code}`): Error {
  return Object.assign(new Error(message), { code });
}

describe('an answer that is not 2xx', () => {
  it.each([408, 425, 429, 500, 501, 502, 503, 504, 599, 600, 999])('%i is transient', (status) => {
    expect(answered(status)).toMatchObject({ class: 'transient', code: `HTTP_${status}`, status });
  });

  it.each([400, 401, 403, 404, 405, 409, 410, 413, 418, 422, 451, 499])(
    '%i is permanent',
    (status) => {
      expect(answered(status)).toMatchObject({ class: 'business', code: `HTTP_${status}`, status });
    },
  );

  it.each([300, 301, 302, 303, 304, 307, 308])('%i is permanent: nobody follows', (status) => {
    const failure = answered(status, { location: 'https://other.example.com/next?token=hunter3' });
    expect(failure).toMatchObject({ class: 'technical', code: `HTTP_${status}`, status });
    expect(failure.message).toContain(
      'points to https://other.example.com: redirects are not followed',
    );
    expect(failure.message).not.toContain('hunter');
  });

  it.each([
    ['/relative', ' and points to https://example.com:'],
    ['https://user:hunter2@b.example/', ' and points to https://b.example:'],
    ['http://[broken', ': redirects'],
    ['javascript:alert(1)', ': redirects'],
  ])('a redirect to %s is told by its origin', (location, words) => {
    expect(answered(302, { location }).message).toContain(`answered 302${words}`);
  });

  it('a redirect to nowhere is none to follow either', () => {
    expect(answered(300).message).toBe(
      'https://example.com answered 300: redirects are not followed. Submit to the final URL.',
    );
  });

  it('says what surely did not run', () => {
    expect(answered(429).notExecuted).toBe(true);
    expect(answered(503).notExecuted).toBeUndefined();
  });

  it.each([
    [{ 'retry-after': '120' }, 120_000],
    [{ 'retry-after': 'Tue, 01 Jan 2030 12:02:00 GMT' }, 120_000],
    [
      { 'retry-after': 'Tue, 01 Jan 2030 15:01:00 GMT', date: 'Tue, 01 Jan 2030 15:00:00 GMT' },
      60_000,
    ],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('with %j asks for a wait of %s', (headers, waitMs) => {
    expect(answered(503, headers).retryAfterMs).toBe(waitMs);
    expect(answered(429, headers).retryAfterMs).toBe(waitMs);
    expect(answered(404, headers).retryAfterMs).toBeUndefined();
  });

  it('keeps what was written, and not a word of it in the message', () => {
    const outcome = answeredOutcome(
      { status: 500, headers: {}, body: Buffer.from('boom') },
      url,
      0,
      /o+/g,
    );
    expect(outcome).toEqual({
      type: 'failed',
      failure: {
        class: 'transient',
        code: 'HTTP_500',
        status: 500,
        message: 'https://example.com answered 500.',
      },
      answer: 'b[secret]m',
    });
    expect(
      answeredOutcome({ status: 500, headers: {}, body: undefined }, url, 0, undefined),
    ).not.toHaveProperty('answer');
  });
});

describe('a connection that failed', () => {
  it.each([
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'EMFILE',
    'CERT_HAS_EXPIRED',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'EPROTO',
  ])('before anything was sent (%s) is transient, and nothing ran', (code) => {
    expect(broken(errorOf(code), false)).toMatchObject({
      class: 'transient',
      code,
      notExecuted: true,
    });
  });

  it.each(['ECONNRESET', 'EPIPE', 'HPE_INVALID_CONSTANT', 'HPE_HEADER_OVERFLOW'])(
    'later (%s) is transient, and nobody knows what ran',
    (code) => {
      const failure = broken(errorOf(code));
      expect(failure).toMatchObject({ class: 'transient', code });
      expect(failure).not.toHaveProperty('notExecuted');
    },
  );

  it('says to whom, and what the error said', () => {
    expect(broken(errorOf('ECONNRESET', 'socket hang up')).message).toBe(
      'No answer from https://example.com: socket hang up',
    );
    const many = Object.assign(new AggregateError([errorOf('ECONNREFUSED')]), {
      code: 'ECONNREFUSED',
    });
    expect(broken(many, false).message).toBe('No answer from https://example.com: ECONNREFUSED');
  });

  it('has a code in any case', () => {
    expect(broken(new Error('closed'))).toMatchObject({
      class: 'transient',
      code: 'CONNECTION_FAILED',
    });
    expect(broken(undefined)).toMatchObject({ class: 'transient', code: 'CONNECTION_FAILED' });
  });

  it('is permanent where it was refused here', () => {
    expect(broken(new AddressRefused('db', 'private'), false)).toMatchObject({
      class: 'technical',
      code: 'ADDRESS_REFUSED',
      notExecuted: true,
      message: expect.stringMatching(/^The host 'db' has a private address/),
    });
  });

  it('repeats no secret', () => {
    const outcome = brokenOutcome(errorOf('EX', 'bad hunter2\u001b'), url.origin, true, /hunter2/g);
    expect(failureOf(outcome).message).toBe(
      'No answer from https://example.com: bad [secret]\u{FFFD}',
    );
  });
});

describe('a task that cannot be sent', () => {
  it('is permanent, and its message obeys nobody', () => {
    expect(failureOf(invalidOutcome('headers.a\u001bb: no'))).toEqual({
      class: 'technical',
      code: 'INVALID_REQUEST',
      message: 'headers.a\u{FFFD}b: no',
      notExecuted: true,
    });
  });
});

describe('a delivery that was ended', () => {
  it('by its time is transient', () => {
    expect(failureOf(endedOutcome('timeout', url.origin, true))).toEqual({
      class: 'transient',
      code: 'TIMEOUT',
      message: 'No answer from https://example.com in time.',
    });
    expect(failureOf(endedOutcome('timeout', url.origin, false))).toMatchObject({
      notExecuted: true,
      message: 'No connection to https://example.com in time.',
    });
  });

  it('by an abort says so', () => {
    expect(failureOf(endedOutcome('abort', url.origin, true))).toMatchObject({
      class: 'technical',
      code: 'ABORT_ERR',
    });
    expect(failureOf(endedOutcome('abort', url.origin, false)).notExecuted).toBe(true);
  });
});

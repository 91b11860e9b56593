import { describe, expect, it } from 'vitest';
import { whyDenied } from './denied.ts';

const closed = new Error('Connection closed');
const sasl = { mechanism: 'PLAIN', username: 'u', password: 's3cret' } as const;
const tls = {};

/** As the library wraps what it met. */
function failure(message: string, cause: unknown): Error {
  const failed = Object.assign(new Error(message, { cause }), { code: 'PLT_KFK_AUTHENTICATION' });
  return new Error('Connection to a:1 failed.', { cause: failed });
}

describe('a broker that closes the connection', () => {
  it.each([
    [{}, /TLS or a user/],
    [{ tls }, /require a user: set sasl\.username/],
    [{ sasl }, /require TLS: set tls/],
  ])('may want what was not given: %j', (access, sentence) => {
    expect(whyDenied(closed, access)).toMatch(sentence);
  });

  it('is only away where all was given', () => {
    expect(whyDenied(closed, { tls, sasl })).toBeUndefined();
    expect(whyDenied(new Error('connect ECONNREFUSED'), {})).toBeUndefined();
  });
});

describe('a broker that refuses', () => {
  const answer = Object.assign(new Error('refused'), { response: {} });

  it('names the user, never the password', () => {
    const why = whyDenied(failure('SASL authentication failed.', answer), { tls, sasl });
    expect(why).toMatch(/refuses the user "u", or its password/);
    expect(why).not.toContain('s3cret');
  });

  it('names the mechanism that it does not take', () => {
    const error = failure('Cannot find a suitable SASL mechanism.', answer);
    expect(whyDenied(error, { tls, sasl })).toMatch(/the SASL mechanism PLAIN/);
  });

  it('suggests TLS where it closed the connection during the login', () => {
    const error = failure('Cannot find a suitable SASL mechanism.', closed);
    expect(whyDenied(error, { sasl })).toMatch(/require TLS/);
  });
});

describe('a certificate', () => {
  it.each([
    ['CERT_HAS_EXPIRED', /not valid now/],
    ['SELF_SIGNED_CERT_IN_CHAIN', /tls\.ca \(KAFKA_TLS_CA_FILE\)/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /another name/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /TLS handshake/],
  ])('with %s is explained', (code, sentence) => {
    const error = new Error('failed', { cause: Object.assign(new Error('x'), { code }) });
    expect(whyDenied(error, { tls })).toMatch(sentence);
  });

  it('is looked for in a bounded chain of causes', () => {
    const error: Error & { cause?: unknown } = new Error('round');
    error.cause = error;
    expect(whyDenied(error, { tls, sasl })).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import { classify } from './classify.ts';
import type { FailureClass } from './failure.ts';

const coded = (code: unknown, message = 'boom', options?: ErrorOptions) =>
  Object.assign(new Error(message, options), { code });
const named = (name: string, message = 'boom', options?: ErrorOptions) =>
  Object.assign(new Error(message, options), { name });

describe('classify along the causes', () => {
  it('believes a code below more than a name above', () => {
    const cause = coded('ECONNREFUSED', 'connect');
    expect(classify(new TypeError('fetch failed', { cause }))).toEqual({
      class: 'transient',
      code: 'ECONNREFUSED',
      message: 'fetch failed',
      names: ['TypeError', 'Error'],
      notExecuted: true,
    });
  });

  it('believes what is above more than what is below, strength being equal', () => {
    expect(classify(coded('EINVAL', 'x', { cause: coded('ECONNREFUSED') }))).toEqual({
      class: 'technical',
      code: 'EINVAL',
      message: 'x',
      names: ['Error'],
    });
    const timeout = named('TimeoutError');
    expect(classify(new Error('forbidden', { cause: timeout })).class).toBe('business');
    expect(classify(new Error('boom', { cause: timeout }))).toMatchObject({
      class: 'transient',
      code: 'TIMEOUT',
      names: ['Error'],
    });
    expect(classify(new Error('boom', { cause: 'forbidden' })).class).toBe('business');
  });

  it('takes the status and the wait of the cause that decides', () => {
    const cause = { status: 503, headers: { 'retry-after': '2' } };
    expect(classify(new Error('forbidden', { cause }))).toMatchObject({
      class: 'transient',
      status: 503,
      code: 'HTTP_503',
      retryAfterMs: 2000,
    });
  });

  it('keeps its own code, then that of the deciding name, then one from below', () => {
    const cause = coded('BELOW');
    expect(classify(coded('OWN', 'x', { cause: coded('ECONNRESET') }))).toMatchObject({
      class: 'transient',
      code: 'OWN',
    });
    expect(classify(named('AbortError', 'x', { cause })).code).toBe('ABORT_ERR');
    expect(classify(new Error('x', { cause }))).toMatchObject({ class: 'unknown', code: 'BELOW' });
  });

  it('looks eight causes deep', () => {
    const wrapped = (depth: number): unknown =>
      depth === 0 ? coded('ECONNRESET') : new Error('x', { cause: wrapped(depth - 1) });
    expect(classify(wrapped(8)).class).toBe('transient');
    expect(classify(wrapped(9)).class).toBe('unknown');
  });

  it('ends in a circle', () => {
    const one = new Error('one');
    const two = new Error('two', { cause: one });
    one.cause = two;
    expect(classify(one)).toEqual({ class: 'unknown', message: 'one', names: ['Error'] });
  });
});

describe('classify an AggregateError', () => {
  const of = (...errors: unknown[]) => new AggregateError(errors, 'all failed');

  it('goes by evidence of its own first', () => {
    const error = Object.assign(of(coded('ENOENT')), { code: 'ECONNREFUSED' });
    expect(classify(error)).toMatchObject({ class: 'transient', code: 'ECONNREFUSED' });
    expect(classify(new AggregateError([coded('ECONNRESET')], 'forbidden')).class).toBe('business');
  });

  it.each<[FailureClass, string[]]>([
    ['transient', ['forbidden', 'assertion', 'boom', 'timeout']],
    ['unknown', ['forbidden', 'assertion', 'boom']],
    ['technical', ['forbidden', 'assertion']],
    ['business', ['forbidden']],
  ])('is %s with the members %j', (expected, messages) => {
    const errors = messages.map((message) => new Error(message));
    expect(classify(of(...errors)).class).toBe(expected);
    expect(classify(of(...errors.toReversed())).class).toBe(expected);
  });

  it('takes the code of the best member and the longest wait of all', () => {
    const error = of(
      { status: 404, retryAfterMs: 9000 },
      { status: 503, retryAfterMs: 10 },
      new Error('x'),
    );
    expect(classify(error)).toEqual({
      class: 'transient',
      status: 503,
      code: 'HTTP_503',
      retryAfterMs: 9000,
      message: 'all failed',
      names: ['AggregateError', 'Error'],
    });
  });

  it('was not executed only if no member was', () => {
    const refused = coded('ECONNREFUSED');
    expect(classify(of(refused, { status: 429 })).notExecuted).toBe(true);
    expect(classify(of(refused, coded('ECONNRESET')))).not.toHaveProperty('notExecuted');
    expect(classify(of(...Array.from({ length: 16 }, () => refused))).notExecuted).toBe(true);
    expect(classify(of(...Array.from({ length: 17 }, () => refused)))).not.toHaveProperty(
      'notExecuted',
    );
    const holes: unknown[] = [refused];
    holes.length = 2;
    expect(classify({ errors: holes })).not.toHaveProperty('notExecuted');
  });

  it('looks at sixteen members, two levels deep', () => {
    const fillers = Array.from({ length: 15 }, () => new Error('forbidden'));
    expect(classify(of(...fillers, new Error('timeout'))).class).toBe('transient');
    expect(classify(of(...fillers, fillers[0], new Error('timeout'))).class).toBe('business');
    expect(classify(of(of(new Error('timeout')))).class).toBe('transient');
    expect(classify(of(of(of(new Error('timeout'))))).class).toBe('unknown');
  });

  it('has no opinion without members', () => {
    expect(classify(of()).class).toBe('unknown');
    expect(classify({ errors: 'timeout' })).toEqual({ class: 'unknown' });
  });

  it('counts as a cause too', () => {
    const cause = of(coded('ECONNRESET'));
    expect(classify(new Error('x', { cause }))).toMatchObject({ class: 'transient' });
  });

  it('ends when it holds itself', () => {
    const error = of();
    error.errors.push(error, error);
    expect(classify(error).class).toBe('unknown');
  });
});

describe('classify and server guidance', () => {
  it.each([
    ['its headers', { headers: { 'Retry-After': '2' } }],
    ["its response's headers", { response: { headers: new Headers({ 'retry-after': '2' }) } }],
    ['its own field', { retryAfterMs: 2000 }],
    ['its own field first', { retryAfterMs: 2000, headers: { 'retry-after': '7' } }],
    [
      'the response where its headers say nothing',
      { headers: {}, response: { headers: { 'retry-after': '2' } } },
    ],
  ])('reads %s', (_, fields) => {
    expect(classify(Object.assign(new Error('boom'), fields)).retryAfterMs).toBe(2000);
  });

  it('keeps a wait of zero', () => {
    expect(classify({ retryAfterMs: 0 })).toEqual({ class: 'unknown', retryAfterMs: 0 });
  });

  it.each([-1, Number.NaN, '5', null])('ignores a retryAfterMs of %j', (retryAfterMs) => {
    expect(classify({ retryAfterMs })).toEqual({ class: 'unknown' });
  });

  it('measures dates by the clock it is given, and resets by the status', () => {
    const at = (headers: object) =>
      classify({ status: 429, headers }, { nowMs: 1e12 }).retryAfterMs;
    expect(at({ 'retry-after': new Date(1e12 + 5000).toUTCString() })).toBe(5000);
    expect(at({ 'x-ratelimit-reset': '1000000005' })).toBe(5000);
    expect(classify({ status: 500, headers: { 'x-ratelimit-reset': '5' } })).not.toHaveProperty(
      'retryAfterMs',
    );
  });
});

import { describe, expect, it } from 'vitest';
import { classify } from './classify.ts';

const coded = (code: unknown, message = 'boom', options?: ErrorOptions) =>
  Object.assign(new Error(message, options), { code });
const named = (name: string, message = 'boom', options?: ErrorOptions) =>
  Object.assign(new Error(message, options), { name });

describe('classify what is no error', () => {
  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [503, '503'],
    [Number.NaN, 'NaN'],
    [true, 'true'],
    [10n, '10'],
    [Symbol('timeout'), 'Symbol(timeout)'],
  ])('takes %s for unknown', (value, message) => {
    expect(classify(value)).toEqual({ class: 'unknown', message });
  });

  it.each([
    [{}],
    [[]],
    [() => 'timeout'],
    [Object.create(null)],
    [{ message: 5, name: 'TimeoutError' }],
  ])('finds nothing in %o', (value) => {
    expect(classify(value)).toEqual({ class: 'unknown' });
  });

  it('reads an error that lost its class on a wire', () => {
    expect(classify({ name: 'TimeoutError', message: 'x' })).toEqual({
      class: 'transient',
      code: 'TIMEOUT',
      message: 'x',
      names: ['TimeoutError'],
    });
  });
});

describe('classify what was given up on', () => {
  const decision = (failure: object) => ({ action: 'giveUp', failure });

  it('judges a RetryError by the failure it gave up on', () => {
    const failure = {
      class: 'business',
      code: 'HTTP_422',
      status: 422,
      message: 'no',
      names: ['A'],
    };
    const error = Object.assign(named('RetryError', 'Gave up'), {
      code: 'EXHAUSTED',
      decision: decision(failure),
    });
    expect(classify(error)).toMatchObject({ class: 'business', code: 'HTTP_422', status: 422 });
    expect(classify(new Error('outer', { cause: error })).class).toBe('business');
  });

  it('takes an aborted one for aborted, whatever had failed before', () => {
    const error = Object.assign(named('RetryError', 'Gave up'), {
      code: 'ABORTED',
      decision: decision({ class: 'transient', code: 'ECONNRESET' }),
    });
    expect(classify(error)).toMatchObject({ class: 'technical', code: 'ABORT_ERR' });
  });

  it('believes no decision without a proper failure', () => {
    expect(classify({ decision: decision({ class: 'odd' }), message: 'timeout' }).class).toBe(
      'transient',
    );
  });
});

describe('classify names', () => {
  it('lists the name, then the classes, the most specific first', () => {
    class Base extends Error {}
    class Own extends Base {}
    expect(classify(new Own('x')).names).toEqual(['Own', 'Base', 'Error']);
    expect(classify(Object.assign(new Own('x'), { name: 'Given' })).names).toEqual([
      'Given',
      'Own',
      'Base',
      'Error',
    ]);
    expect(classify(named('')).names).toEqual(['Error']);
  });

  it('ends, however long the chain of classes', () => {
    const endless: object = new Proxy(new Error('x'), { getPrototypeOf: () => endless });
    expect(classify(endless).names).toEqual(['Error']);
  });
});

describe('classify never throws', () => {
  const hostile = () => {
    throw new Error('no');
  };
  const throwing: ProxyHandler<object> = new Proxy({}, { get: () => hostile });

  it.each([
    ['a proxy that throws on everything', new Proxy({}, throwing)],
    ['a proxy of an error that throws on everything', new Proxy(new Error('x'), throwing)],
    ['a proxy of a function that throws on everything', new Proxy(() => 1, throwing)],
    ['an object whose toString throws', { toString: hostile, [Symbol.toPrimitive]: hostile }],
  ])('on %s', (_, value) => {
    expect(classify(value, { rules: [{ words: ['x'], class: 'business' }] })).toEqual({
      class: 'unknown',
    });
  });

  it('on one bad getter, and then knows nothing', () => {
    const error = Object.defineProperty(coded('ECONNRESET'), 'message', { get: hostile });
    expect(classify(error)).toEqual({ class: 'unknown' });
    const noProto = new Proxy(new TypeError('x'), { getPrototypeOf: hostile });
    expect(classify(noProto)).toEqual({ class: 'unknown' });
  });

  it('and leaves the stack of an error alone, which is costly to make', () => {
    let reads = 0;
    const error = Object.defineProperty(new Error('x', { cause: 'timeout' }), 'stack', {
      get: () => (reads += 1),
    });
    expect(classify(error).class).toBe('transient');
    expect(reads).toBe(0);
  });

  it('on revoked proxies, wherever they are', () => {
    const { proxy, revoke } = Proxy.revocable([], {});
    revoke();
    for (const key of [
      'cause',
      'errors',
      'headers',
      'response',
      'metadata',
      'code',
      'names',
      'name',
      'stack',
    ]) {
      expect({ key, class: classify({ [key]: proxy }).class }).toEqual({ key, class: 'unknown' });
    }
    expect(classify(proxy)).toEqual({ class: 'unknown' });
  });
});

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

  it('passes on what already is a failure', () => {
    const failure = {
      class: 'business',
      code: 'ECONNRESET',
      message: 'timeout',
      names: ['CardDeclined', 'Error'],
      status: 402,
      retryAfterMs: 5,
      notExecuted: true,
      counted: false,
    };
    expect(classify(failure)).toEqual(failure);
    expect(classify(failure)).not.toBe(failure);
    expect(classify({ class: 'unknown', message: 'timeout' })).toEqual({
      class: 'unknown',
      message: 'timeout',
    });
    expect(classify(new Error('x', { cause: failure }))).toMatchObject({
      class: 'business',
      names: ['Error'],
    });
  });

  it('passes on no field of a failure that is not what it should be', () => {
    const failure = {
      class: 'business',
      code: 5,
      message: 5,
      names: [5, 'A'],
      status: 'x',
      retryAfterMs: -1,
      notExecuted: 1,
      counted: 0,
    };
    expect(classify(failure)).toEqual({ class: 'business', names: ['A'] });
    expect(classify({ class: 'business', names: 'A' })).toEqual({ class: 'business' });
  });

  it('takes neither an error nor another word for a failure', () => {
    expect(classify(Object.assign(new Error('timeout'), { class: 'business' })).class).toBe(
      'transient',
    );
    expect(classify({ class: 'first', message: 'timeout', names: ['A'] })).toEqual({
      class: 'transient',
      message: 'timeout',
    });
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

  it('on one bad getter, and reads the others', () => {
    const error = Object.defineProperty(coded('ECONNRESET'), 'message', { get: hostile });
    expect(classify(error)).toEqual({ class: 'transient', code: 'ECONNRESET' });
    const noProto = new Proxy(new TypeError('x'), { getPrototypeOf: hostile });
    expect(classify(noProto)).toEqual({ class: 'technical', message: 'x', names: ['TypeError'] });
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

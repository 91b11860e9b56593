import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cleanData, withoutCredentials } from './redact.ts';

describe('credentials in a text', () => {
  it.each([
    ['amqp://user:pass@broker:5672/vhost', 'amqp://***@broker:5672/vhost'],
    ['postgres://me:p%40ss@db/tasks', 'postgres://***@db/tasks'],
    ['connect to "amqps://u:p@b" failed', 'connect to "amqps://***@b" failed'],
    ['https://token@api.example.com/a', 'https://***@api.example.com/a'],
    // A raw @ in the password: the last one counts.
    ['amqp://user:p@ss@broker', 'amqp://***@broker'],
    // No URL any more, but a password still.
    ['amqp://user:pa/ss@broker', 'amqp://***@broker'],
    ['two: amqp://a:b@c and http://d:e@f', 'two: amqp://***@c and http://***@f'],
    [
      'postgres://db/tasks?user=me&password=hunter2&x=1',
      'postgres://db/tasks?user=me&password=***&x=1',
    ],
    ['host=db password=hunter2 dbname=x', 'host=db password=*** dbname=x'],
    ['GET /hook?access_token=abc.def HTTP/1.1', 'GET /hook?access_token=*** HTTP/1.1'],
    ['Authorization: Bearer abcdefgh12345678', 'Authorization: Bearer ***'],
    ['sent basic dXNlcjpwYXNz', 'sent basic ***'],
  ])('are taken out of %s', (text, expected) => {
    expect(withoutCredentials(text)).toBe(expected);
  });

  it.each([
    ['amqp://user:hunt', 'amqp://***'],
    ["'postgres://me:hunt' is not a URL", "'postgres://***' is not a URL"],
    ['{"a":"amqp://user:hunt\\"', '{"a":"amqp://***\\"'],
    ['said \\"password=hunt\\"', 'said \\"password=***\\"'],
  ])('are taken out where the text was cut or quoted: %s', (text, expected) => {
    expect(withoutCredentials(text)).toBe(expected);
  });

  it('leave a line of JSON readable', () => {
    const words = [
      'amqp://',
      'u:p',
      '@',
      'password=',
      'bearer ',
      '\\',
      '"',
      "'",
      '/',
      'abcdefg1',
      ' ',
    ];
    const texts = fc.array(fc.constantFrom(...words), { maxLength: 12 });
    fc.assert(
      fc.property(texts, (parts) => {
        const line = JSON.stringify({ text: parts.join('') });
        expect(() => JSON.parse(withoutCredentials(line)) as unknown).not.toThrow();
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    'https://api.example.com:8080/@user/page',
    'No answer from http://127.0.0.1:8080: connect ECONNREFUSED',
    'Listening on http://127.0.0.1:8080.',
    'http://[::1]:8080',
    'http://[fe80::1]/',
    'https://api.example.com:',
    'https://api.example.com/a?mail=x@example.com',
    'a@example.com wrote that a=b',
    'bearer of bad news',
    'basic authentication failed',
    'ratio 3://4',
  ])('that are none stay: %s', (text) => {
    expect(withoutCredentials(text)).toBe(text);
  });
});

describe('data for the log', () => {
  it.each([
    'amqp://user:hunter2hunter2@broker',
    'https://hunter2hunter2@api.example.com',
    'Bearer hunter2hunter2',
  ])('has no part of a credential where a long text is cut: %s', (secret) => {
    for (let before = 8192 - secret.length; before <= 8192; before++) {
      const text = `${'.'.repeat(before - 1)} ${secret} and what follows`;
      for (const data of [text, { text }, new Error(text)]) {
        expect(withoutCredentials(JSON.stringify(cleanData(data)))).not.toMatch(/hun|ter2/);
      }
    }
  });

  it('hides what is secret or content by its name, at every depth', () => {
    const headers = { Authorization: 'Bearer x', cookie: 'a', 'x-api-key': 'k', accept: 'json' };
    expect(
      cleanData({ task: { headers, payload: { card: 1 } }, csrfToken: 'x', body: 'x' }),
    ).toEqual({
      task: {
        headers: { Authorization: '***', cookie: '***', 'x-api-key': '***', accept: 'json' },
        payload: '<left out>',
      },
      csrfToken: '***',
      body: '<left out>',
    });
  });

  it('shows bytes by their number only', () => {
    expect(cleanData({ a: Buffer.from('secret'), b: new Uint8Array(3) })).toEqual({
      a: '<6 bytes>',
      b: '<3 bytes>',
    });
  });

  it('is bounded in length, depth and breadth', () => {
    const deep: Record<string, unknown> = {};
    deep['self'] = deep;
    const clean = cleanData({
      text: 'x'.repeat(10_000),
      list: Array.from({ length: 80 }, (_, i) => i),
      many: Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`k${i}`, i])),
      deep,
      lists: [[[[[1]]]]],
    }) as Record<string, unknown>;
    expect((clean['text'] as string).length).toBe(8195);
    expect(clean['list']).toHaveLength(50);
    expect(Object.keys(clean['many'] as object)).toHaveLength(50);
    expect(JSON.stringify(clean['deep'])).toBe('{"self":{"self":{"self":"{...}"}}}');
    expect(clean['lists']).toEqual([[['[...]']]]);
  });

  it('takes odd values as they can be written', () => {
    class Session {
      readonly password = 'x';
    }
    const clean = cleanData({
      session: new Session(),
      nameless: Object.create({ constructor: undefined }),
      at: new Date(0),
      never: new Date(Number.NaN),
      many: 2n ** 70n,
      run: () => 1,
      sign: Symbol('s'),
      nothing: null,
      no: undefined,
      yes: true,
    });
    expect(clean).toEqual({
      session: '<Session>',
      nameless: '<object>',
      at: '1970-01-01T00:00:00.000Z',
      never: null,
      many: '1180591620717411303424',
      run: undefined,
      sign: undefined,
      nothing: null,
      no: undefined,
      yes: true,
    });
  });

  it('of an error is what it says, its code and its causes, and nothing that hangs on it', () => {
    const cause = Object.assign(new TypeError('inner'), {
      code: 'ECONNREFUSED',
      config: { auth: 'x' },
    });
    const error = Object.assign(new Error('outer', { cause }), { request: { headers: {} } });
    const clean = cleanData(error) as { cause: object };
    expect(Object.keys(clean)).toEqual(['type', 'message', 'stack', 'cause']);
    expect(clean).toMatchObject({ type: 'Error', message: 'outer' });
    expect(clean.cause).toMatchObject({
      type: 'TypeError',
      code: 'ECONNREFUSED',
      message: 'inner',
    });
    expect(Object.keys(clean.cause)).toEqual(['type', 'code', 'message', 'stack']);
  });

  it('of an error does not follow causes for ever', () => {
    const error = new Error('loop');
    error.cause = error;
    delete (error as { stack?: string }).stack;
    expect(JSON.stringify(cleanData(error)).match(/loop/g)).toHaveLength(4);
    expect(cleanData(new Error('x', { cause: { password: 'x' } }))).toMatchObject({
      cause: '{...}',
    });
    expect(cleanData([new Error('in a list')])).toMatchObject([{ message: 'in a list' }]);
  });
});

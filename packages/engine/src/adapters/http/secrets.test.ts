import { describe, expect, it } from 'vitest';
import {
  type Credentials,
  findSecret,
  pattern,
  type Secret,
  secretFault,
  type Secrets,
} from './secrets.ts';

const origin = 'https://api.example.com';

/** A secret without where it may go. */
type Bare = WithoutOrigins<Secret>;
type WithoutOrigins<One> = One extends unknown ? Omit<One, 'origins'> : never;

async function credentials(bare: Bare): Promise<Credentials> {
  const secret = { ...bare, origins: [origin] } as Secret;
  const found = await findSecret({ name: secret }, 'name', origin);
  if (!('credentials' in found)) throw new Error(found.failure.message);
  return found.credentials;
}

async function failureOf(secrets: Secrets | undefined, name = 'name') {
  const found = await findSecret(secrets, name, origin);
  return 'failure' in found ? found.failure : undefined;
}

describe('a secret', () => {
  it.each<[Bare, [string, string][]]>([
    [{ authorization: 'Token abc' }, [['authorization', 'Token abc']]],
    [{ bearer: 'abc' }, [['authorization', 'Bearer abc']]],
    [
      { basic: { user: 'me', password: 'pässword' } },
      [['authorization', 'Basic bWU6cMOkc3N3b3Jk']],
    ],
    [
      { headers: { 'x-key': 'a', 'x-id': 'b' } },
      [
        ['x-key', 'a'],
        ['x-id', 'b'],
      ],
    ],
  ])('becomes headers', async (secret, headers) => {
    expect((await credentials(secret)).headers).toEqual(headers);
  });

  it('is found by a function, which is told where it goes', async () => {
    const asked: string[] = [];
    const found = await findSecret(
      (...question) => {
        asked.push(...question);
        return Promise.resolve({ bearer: 'abc', origins: [origin] });
      },
      'billing',
      origin,
    );
    expect(asked).toEqual(['billing', origin]);
    expect(found).toMatchObject({ credentials: { headers: [['authorization', 'Bearer abc']] } });
  });

  it('that is not known may be known later, and consumes no attempt', async () => {
    const expected = {
      class: 'transient',
      code: 'UNKNOWN_SECRET',
      counted: false,
      notExecuted: true,
    };
    expect(await failureOf(undefined)).toMatchObject(expected);
    expect(await failureOf({})).toMatchObject(expected);
    expect(await failureOf({}, 'constructor')).toMatchObject(expected);
    expect(await failureOf({}, '__proto__')).toMatchObject(expected);
    expect(await failureOf(() => undefined)).toMatchObject(expected);
  });

  it('that cannot be read may be readable later, and the error is not repeated', async () => {
    const error = Object.assign(new Error('token hunter2 has expired'), { code: 'EVAULT' });
    const failure = await failureOf(() => Promise.reject(error));
    expect(failure).toMatchObject({
      class: 'transient',
      code: 'SECRET_UNAVAILABLE',
      counted: false,
    });
    expect(failure?.message).toBe("The secret 'name' could not be read (EVAULT).");
    const odd = Object.assign(new Error('x'), { code: 'hunter2 is the code' });
    expect(
      (
        await failureOf(() => {
          throw odd;
        })
      )?.message,
    ).toBe("The secret 'name' could not be read.");
  });

  it('is sent to its own origins only', async () => {
    const secret: Secret = { bearer: 'abc', origins: ['https://other.example.com'] };
    expect(await failureOf({ name: secret })).toMatchObject({
      class: 'technical',
      code: 'SECRET_REFUSED',
    });
    expect(await failureOf({ name: { ...secret, origins: [origin] } })).toBeUndefined();
  });

  it.each([undefined, []])(
    'is not sent anywhere without a list of origins: %j',
    async (origins) => {
      const secret = { bearer: 'hunter2', ...(origins ? { origins } : {}) } as unknown as Secret;
      expect(secretFault(secret)).toContain('has no `origins`');
      for (const secrets of [{ name: secret }, () => secret]) {
        expect(await failureOf(secrets)).toMatchObject({ code: 'INVALID_SECRET' });
      }
    },
  );

  it.each([
    null,
    'hunter2',
    {},
    { bearer: '', origins: [origin] },
    { bearer: 7, origins: [origin] },
    { bearer: 'a\r\nx: hunter2', origins: [origin] },
    { authorization: undefined, origins: [origin] },
    { basic: { user: 'a' }, origins: [origin] },
    { basic: { user: 'a', password: '' }, origins: [origin] },
    { basic: 'hunter2', origins: [origin] },
    { headers: {}, origins: [origin] },
    { headers: { 'x y': 'hunter2' }, origins: [origin] },
    { headers: { host: 'hunter2' }, origins: [origin] },
    { headers: { 'x-a': 'hunter2\n' }, origins: [origin] },
    { bearer: 'hunter2', origins: 'https://a' },
    { bearer: 'hunter2', origins: ['https://a/path'] },
  ])('cannot be %j', async (secret) => {
    const fault = secretFault(secret);
    expect(fault).toBeDefined();
    expect(fault).not.toContain('hunter2');
    const failure = await failureOf(() => secret as unknown as Secret);
    expect(failure?.code).toBe(secret === null ? 'UNKNOWN_SECRET' : 'INVALID_SECRET');
    expect(failure?.message).not.toContain('hunter2');
  });
});

describe('the pattern of what must not be seen', () => {
  async function hide(secret: Bare, text: string): Promise<string> {
    const found = pattern((await credentials(secret)).texts);
    return text.replaceAll(found!, '*');
  }

  it('finds a token with and without its scheme', async () => {
    expect(await hide({ bearer: 'abc' }, '{"auth":"Bearer abc","t":"abc"}')).toBe(
      '{"auth":"*","t":"*"}',
    );
  });

  it('finds a password, and what Basic makes of it', async () => {
    const secret: Bare = { basic: { user: 'me', password: 'pass' } };
    expect(await hide(secret, 'me pass bWU6cGFzcw== Basic bWU6cGFzcw==')).toBe('me * * *');
  });

  it('finds it as JSON and as a part of a URL', async () => {
    const secret: Bare = { headers: { 'x-key': 'a"b&c' } };
    expect(await hide(secret, `a"b&c {"k":"a\\"b&c"} ?k=a%22b%26c`)).toBe('* {"k":"*"} ?k=*');
  });

  it('takes no character for a sign of its own', async () => {
    expect(await hide({ headers: { k: 'a.*(b)|[c]{2}^$\\/-' } }, 'axxb a.*(b)|[c]{2}^$\\/-')).toBe(
      'axxb *',
    );
  });

  it.each([
    ['in JSON as some write it', String.raw`a\/b'&\"c`],
    ['on a page', 'a/b&#39;&amp;&quot;c'],
    ['in base64', Buffer.from(`a/b'&"c`).toString('base64')],
  ])('is found %s', (_, echoed) => {
    expect(pattern([`a/b'&"c`])!.test(`x${echoed}y`)).toBe(true);
  });

  it('is absent where there is nothing to hide', () => {
    expect(pattern([])).toBeUndefined();
    expect(pattern([''])).toBeUndefined();
  });

  it('copes with texts that are not well-formed', () => {
    expect(pattern(['a\uD800'])!.test('xa\uD800')).toBe(true);
  });
});

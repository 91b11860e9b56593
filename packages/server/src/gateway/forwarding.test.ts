import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Token } from '../settings/settings.ts';
import { json, provider, raw, rawProvider, stage } from './stage.test.ts';

const tokenOf = (name: string, role: Token['role'], token: string): Token => ({
  name,
  role,
  sha256: createHash('sha256').update(token).digest('hex'),
});

describe('a request', () => {
  it('reaches the provider with its method, path, headers and body', async () => {
    const one = await provider(json({}));
    const { ask } = await stage({ providers: { one: { url: `${one.url}/base/` } } });
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const body = method === 'POST' ? Buffer.from([0, 255, 10, 13]) : undefined;
      const path = '/gateway/llm/v1/a%20b/c%2Fd;x=1?q=%2e%2e/&r=//y';
      const headers = { 'content-type': 'application/x-thing', 'x-own': ['a', 'b'], accept: 'x/y' };
      const reply = await ask({ method, path, headers, ...(body ? { body } : {}) });
      expect(reply.status, method).toBe(200);
      const got = one.got.at(-1)!;
      expect(got).toMatchObject({ method, url: '/base/v1/a%20b/c%2Fd;x=1?q=%2e%2e/&r=//y' });
      expect(got.headers).toMatchObject({
        'content-type': 'application/x-thing',
        'x-own': 'a, b',
        accept: 'x/y',
      });
      expect(got.headers['host']).toBe(new URL(one.url).host);
      expect(got.body).toEqual(body ?? Buffer.alloc(0));
    }
  });

  it('goes to the base path itself where nothing follows the policy', async () => {
    const one = await provider(json({}));
    const { ask } = await stage({ providers: { one: { url: `${one.url}/base` } } });
    await ask({ path: '/gateway/llm' });
    await ask({ path: '/gateway/llm?x=1' });
    await ask({ path: '/gateway/llm/' });
    expect(one.got.map(({ url }) => url)).toEqual(['/base', '/base?x=1', '/base/']);
  });

  it('loses the headers of its connection, those that connection names, keys and cookies', async () => {
    const one = await provider(json({}));
    const { ask } = await stage({ providers: { one } });
    await ask({
      body: 'x',
      headers: {
        connection: 'close, X-Secret-Hop, content-length',
        'x-secret-hop': '1',
        'keep-alive': 'timeout=5',
        'proxy-authorization': 'Basic x',
        te: 'trailers',
        cookie: 'a=b',
        authorization: 'Bearer sk-1',
        'x-api-key': 'sk-2',
        'api-key': 'sk-3',
        'x-goog-api-key': 'sk-4',
        'x-redrive-session': 's',
        'x-kept': '1',
      },
    });
    const { headers, body } = one.got[0]!;
    const names = Object.keys(headers).toSorted();
    expect(names).toEqual(['connection', 'content-length', 'host', 'x-kept']);
    expect(headers['connection']).toBe('keep-alive');
    expect(body.toString()).toBe('x');
  });

  it('is continued where it expects that, and the provider hears nothing of it', async () => {
    const one = await provider(json({}));
    const { port } = await stage({ providers: { one } });
    const answer = await raw(
      port,
      'POST /gateway/llm/a HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
    expect(one.got[0]?.headers['expect']).toBeUndefined();
    expect(one.got[0]?.body.toString()).toBe('hi');
  });

  it('gets the provider’s own headers instead of its own', async () => {
    const one = await provider(json({}));
    const fields = { one: { headers: { Authorization: 'Bearer ${KEY}', 'X-Version': '7' } } };
    const { ask } = await stage({ providers: { one }, fields, env: { KEY: 'sk-real' } });
    await ask({ headers: { authorization: 'Bearer mine', 'x-version': '1' } });
    expect(one.got[0]?.headers).toMatchObject({
      authorization: 'Bearer sk-real',
      'x-version': '7',
    });
  });

  it('of unknown length reaches the provider with one, or as it comes where it is large', async () => {
    const one = await provider(json({}));
    const { ask } = await stage({ providers: { one }, maxKeptBytes: 1000 });
    await ask({ body: 'x'.repeat(1000), chunked: true });
    await ask({ body: 'y'.repeat(100_000), chunked: true });
    await ask({ body: 'z'.repeat(100_000) });
    expect(one.got.map(({ headers }) => headers['content-length'])).toEqual([
      '1000',
      undefined,
      '100000',
    ]);
    expect(one.got.map(({ body }) => body.length)).toEqual([1000, 100_000, 100_000]);
    expect(one.got[1]?.body.equals(Buffer.alloc(100_000, 'y'))).toBe(true);
  });

  it('with override_params reaches the provider with other fields', async () => {
    const one = await provider(json({}));
    const fields = { one: { override_params: { model: 'small', n: 1 } } };
    const { ask } = await stage({ providers: { one }, fields });
    const headers = { 'content-type': 'application/json' };
    await ask({ body: '{"model":"big","text":"é"}', headers });
    await ask({ body: '{"model":', headers });
    await ask({ body: '{"model":"big"}', headers: { 'content-type': 'text/plain' } });
    expect(one.got.map(({ body }) => body.toString())).toEqual([
      '{"model":"small","text":"é","n":1}',
      '{"model":',
      '{"model":"big"}',
    ]);
  });
});

describe('a path', () => {
  it.each([
    '/gateway/llm//evil.example/x',
    '/gateway/llm/../admin',
    '/gateway/llm/a/%2e%2E/admin',
    '/gateway/llm/a/.%2e/admin',
    '/gateway/llm/./a',
    '/gateway/llm/a/..',
    '/gateway/llm/..;/admin',
    '/gateway/llm/a%2f..%2fadmin',
    '/gateway/llm/a%5c..%5cadmin',
    '/gateway/llm/a\\..\\admin',
    '/gateway/%6c/a',
    '/gateway//a',
    '/gateway/llm/a#b',
  ])('such as %s is refused', async (path) => {
    const one = await provider(json({}));
    const { port } = await stage({ providers: { one } });
    const answer = await raw(
      port,
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*UNSAFE_PATH/);
    expect(one.got).toEqual([]);
  });

  it('of a policy that is not there is told so', async () => {
    const one = await provider(json({}));
    const { ask } = await stage({ providers: { one } });
    const { status, text } = await ask({ path: '/gateway/lmm/v1' });
    expect(status).toBe(404);
    expect(JSON.parse(text)).toMatchObject({
      code: 'ROUTE_POLICY_UNKNOWN',
      error: { code: 'ROUTE_POLICY_UNKNOWN' },
    });
  });
});

describe('smuggling', () => {
  it.each([
    ['both lengths', 'Content-Length: 4\r\nTransfer-Encoding: chunked'],
    ['two lengths', 'Content-Length: 4\r\nContent-Length: 5'],
    ['a strange encoding', 'Transfer-Encoding: xchunked'],
    ['two hosts', 'Host: 127.0.0.2\r\nContent-Length: 0'],
  ])('with %s gets 400', async (_, headers) => {
    const one = await provider(json({}));
    const { port } = await stage({ providers: { one } });
    const text = `POST /gateway/llm/a HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${headers}\r\n\r\n0\r\n\r\n`;
    expect(await raw(port, text)).toMatch(/^HTTP\/1\.1 400 /);
    expect(one.got).toEqual([]);
  });
});

describe('an answer', () => {
  it('comes back with its status, headers and bytes, and what was decided', async () => {
    const one = await provider((_, response) => {
      response.writeHead(201, [
        'Content-Type',
        'text/x',
        'X-Many',
        '1',
        'X-Many',
        '2',
        'Connection',
        'keep-alive, x-hop',
        'X-Hop',
        '1',
        'Set-Cookie',
        'a=b',
        'Alt-Svc',
        'h3=":443"',
        'Strict-Transport-Security',
        'max-age=1',
        'X-Redrive-Provider',
        'liar',
        'X-Request-Id',
        'r-7',
      ]);
      response.end(Buffer.from([1, 2, 255]));
    });
    const { ask } = await stage({ providers: { one } });
    const { status, headers, rawHeaders, body } = await ask();
    expect(status).toBe(201);
    expect(body).toEqual(Buffer.from([1, 2, 255]));
    expect(headers).toMatchObject({
      'content-type': 'text/x',
      'x-many': '1, 2',
      'x-request-id': 'r-7',
      'x-redrive-provider': 'one',
      'x-redrive-attempts': '1',
      'x-redrive-explanation':
        'one ok; weighted: 2. Applied weighted distribution: 1 providers, total weight: 100',
    });
    const names = rawHeaders.filter((__, i) => i % 2 === 0).map((name) => name.toLowerCase());
    for (const name of [
      'x-hop',
      'set-cookie',
      'alt-svc',
      'strict-transport-security',
      'x-should-retry',
    ]) {
      expect(names).not.toContain(name);
    }
  });

  it('that is compressed is passed on as it is', async () => {
    const packed = gzipSync('hello '.repeat(100));
    const one = await provider((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length });
      response.end(packed);
    });
    const { ask } = await stage({ providers: { one } });
    const { body, headers } = await ask({ headers: { 'accept-encoding': 'gzip, br' } });
    expect(one.got[0]?.headers['accept-encoding']).toBe('gzip, br');
    expect(headers['content-encoding']).toBe('gzip');
    expect(body.equals(packed)).toBe(true);
    expect(gunzipSync(body).toString()).toContain('hello');
  });

  it('without a body has none: HEAD, 204, 304', async () => {
    const one = await provider(
      (_, response) => response.writeHead(200, { 'content-length': 1234 }).end(),
      (_, response) => response.writeHead(204).end(),
      (_, response) => response.writeHead(304, { etag: '"x"' }).end(),
    );
    const { ask } = await stage({ providers: { one } });
    expect(await ask({ method: 'HEAD' })).toMatchObject({
      status: 200,
      headers: { 'content-length': '1234' },
      text: '',
      isWhole: true,
    });
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 204, text: '', isWhole: true });
    expect(await ask({ method: 'GET' })).toMatchObject({
      status: 304,
      headers: { etag: '"x"' },
      isWhole: true,
    });
  });

  it('that is a redirect is passed on, not followed', async () => {
    const one = await provider((_, response) =>
      response.writeHead(307, { location: 'http://169.254.169.254/' }).end(),
    );
    const { ask } = await stage({ providers: { one } });
    expect(await ask()).toMatchObject({
      status: 307,
      headers: { location: 'http://169.254.169.254/' },
    });
    expect(one.got).toHaveLength(1);
  });

  it('comes after any number of informational ones', async () => {
    const one = await rawProvider(
      'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    );
    const { ask } = await stage({ providers: { one } });
    expect(await ask()).toMatchObject({
      status: 200,
      text: 'ok',
      headers: { 'x-redrive-attempts': '1' },
    });
  });

  it('that ends with its connection is whole', async () => {
    const one = await rawProvider('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it');
    const { ask, finished } = await stage({ providers: { one } });
    expect(await ask()).toMatchObject({ status: 200, text: 'all of it', isWhole: true });
    expect(finished).toMatchObject([{ outcome: 'answered' }]);
  });
});

describe('access', () => {
  const tokens = [
    tokenOf('chat', 'gateway', 'good'),
    tokenOf('ops', 'operator', 'ops'),
    tokenOf('root', 'admin', 'root'),
  ];

  it.each([
    ['authorization', 'Bearer good', 200],
    ['authorization', 'bearer  good', 200],
    ['x-api-key', 'good', 200],
    ['api-key', 'good', 200],
    ['x-goog-api-key', 'good', 200],
    ['authorization', 'Bearer root', 200],
    ['authorization', 'Bearer ops', 403],
    ['authorization', 'Bearer bad', 401],
    ['authorization', 'Basic good', 401],
    ['x-other', 'good', 401],
    ['x-api-key', `${'g'.repeat(600)}`, 401],
  ])('by %s: %s is %i', async (name, value, status) => {
    const one = await provider(json({}));
    const { ask } = await stage({ providers: { one }, tokens });
    const reply = await ask({ headers: { [name]: value } });
    expect(reply.status).toBe(status);
    expect(one.got).toHaveLength(status === 200 ? 1 : 0);
    expect(JSON.stringify(one.got)).not.toContain('good');
  });

  it.each([
    [{ 'x-api-key': 'bad' }, 401, 'This token is not known'],
    [{}, 401, 'Send a token'],
    // Longer than any token is: it is not looked at.
    [{ 'x-api-key': 'g'.repeat(600) }, 401, 'Send a token'],
    // A client that has a key of its own beside the token.
    [{ authorization: 'Bearer good', 'x-api-key': 'sk-other' }, 200, ''],
  ])('says what is wrong with %o', async (headers, status, text) => {
    const one = await provider(json({}));
    const { ask } = await stage({ providers: { one }, tokens });
    const reply = await ask({ headers });
    expect(reply.status).toBe(status);
    expect(reply.text).toContain(text);
  });

  it('without tokens is for this machine, not for web pages', async () => {
    const one = await provider(json({}));
    const { ask } = await stage({ providers: { one } });
    expect((await ask({ headers: { host: 'evil.example' } })).status).toBe(403);
    expect((await ask({ headers: { origin: 'https://evil.example' } })).status).toBe(403);
    expect((await ask({ headers: { authorization: 'Bearer anything' } })).status).toBe(200);
  });
});

it('refuses an upgrade, but not the offer of HTTP/2', async () => {
  const one = await provider(json({}));
  const { ask } = await stage({ providers: { one } });
  const upgraded = await ask({
    method: 'GET',
    headers: { connection: 'upgrade', upgrade: 'websocket' },
  });
  expect(upgraded.status).toBe(501);
  expect(upgraded.text).toContain('UPGRADE_NOT_SUPPORTED');
  const offered = await ask({
    method: 'GET',
    headers: { connection: 'upgrade, http2-settings', upgrade: 'h2c', 'http2-settings': 'x' },
  });
  expect(offered.status).toBe(200);
  expect(one.got[0]?.headers['upgrade']).toBeUndefined();
});

it('writes no secret and no body into the log', async () => {
  const one = await provider(json({ answer: 'answer-body' }, 500, { 'x-echo': 'answer-header' }));
  const fields = { one: { headers: { authorization: 'Bearer ${KEY}' } } };
  const { ask, logged, ended } = await stage({
    providers: { one },
    fields,
    env: { KEY: 'sk-provider' },
    tokens: [tokenOf('chat', 'gateway', 'token-of-client')],
  });
  await ask({
    path: '/gateway/llm/v1?key=in-query',
    body: 'request-body',
    headers: { 'x-api-key': 'token-of-client', 'x-more': 'header-of-client' },
  });
  await ended(1);
  const text = logged.join('');
  expect(text).toContain('"path":"/v1"');
  expect(text).toContain('"by":"chat"');
  for (const secret of [
    'sk-provider',
    'token-of-client',
    'in-query',
    'request-body',
    'answer-body',
    'header-of-client',
    'answer-header',
  ]) {
    expect(text).not.toContain(secret);
  }
});

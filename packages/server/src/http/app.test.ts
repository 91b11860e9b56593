import { connect } from 'node:net';
import { EngineError } from '@redrive/engine';
import { describe, expect, it, vi } from 'vitest';
import { at, id, send, settings, stage, textAt } from './harness.test.ts';

const url = '/api/v1/retries';
const json = { 'content-type': 'application/json' };

describe('bodies', () => {
  it.each([
    ['{"destination":"queue:a",}', 25, 1, 26],
    ['{\n  "a": tru\n}', 9, 2, 8],
    ['{"a":"b', 7, 1, 8],
    ['[', 1, 1, 2],
  ])('that are not JSON are told where: %j', async (text, position, line, column) => {
    const { ask } = await stage();
    const answer = await ask({ method: 'POST', url, text, headers: json });
    expect(answer).toMatchObject({
      status: 400,
      headers: { 'content-type': 'application/problem+json; charset=utf-8' },
      body: { code: 'INVALID_JSON', position, line, column },
    });
    expect(textAt(answer.body, 'detail')).toContain(`position ${position}`);
  });

  it.each([
    ['brackets that never end', '['.repeat(600)],
    ['brackets that end', '['.repeat(600) + ']'.repeat(600)],
    // Such a number makes the parser recurse, which once ended in a wrong word about the end of the body.
    ['a long number inside', `${'['.repeat(10_000)}12345678901234567890${']'.repeat(10_000)}`],
    ['objects', '{"a":'.repeat(600)],
  ])('that are nested too deep are refused as that: %s', async (_, text) => {
    const { ask } = await stage();
    const position = text.startsWith('[') ? 512 : 512 * 5;
    expect(await ask({ method: 'POST', url, text, headers: json })).toMatchObject({
      status: 400,
      body: {
        code: 'JSON_TOO_DEEP',
        position,
        detail: expect.stringContaining('more than 512 levels deep'),
      },
    });
  });

  it('may be nested as deep as the limit, and brackets in texts do not count', async () => {
    const { ask } = await stage();
    const texts = JSON.stringify('[{"\\'.repeat(1000));
    const payload = `${'['.repeat(511)}${texts},1${']'.repeat(511)}`;
    const text = `{"destination":"queue:a","payload":${payload}}`;
    const answer = await ask({ method: 'POST', url, text, headers: json });
    expect(answer).toMatchObject({ status: 202 });
    const shown = await ask({ url: `${url}/${textAt(answer.body, 'message_id')}` });
    expect(JSON.stringify(at(shown.body, 'payload'))).toBe(payload);
  });

  it('that are not UTF-8 are refused, not mended', async () => {
    const { ask } = await stage();
    const text = Buffer.from([...Buffer.from('{"destination":"queue:'), 0xff, 0x22, 0x7d]);
    expect(await ask({ method: 'POST', url, text, headers: json })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_JSON', detail: expect.stringContaining('UTF-8') },
    });
  });

  it('that are compressed are not read', async () => {
    const { ask } = await stage();
    const headers = { ...json, 'content-encoding': 'gzip' };
    expect(await ask({ method: 'POST', url, text: 'x', headers })).toMatchObject({
      status: 415,
      body: { code: 'UNSUPPORTED_MEDIA_TYPE', detail: expect.stringContaining('gzip') },
    });
  });

  it('may have a charset, and may be absent where nothing is needed', async () => {
    const { ask, engine } = await stage();
    await engine.submit({ kind: 'queue', address: 'a' }, 1, { id: id(1) });
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    const path = `${url}/${id(1)}/expedite`;
    expect((await ask({ method: 'POST', url: path, text: '', headers })).status).toBe(200);
    expect((await ask({ method: 'POST', url: path, text: '{}', headers })).status).toBe(200);
  });

  it('over the limit are 413', async () => {
    const { ask } = await stage({ maxRequestBytes: 1024 });
    const text = JSON.stringify({ destination: 'queue:a', payload: 'x'.repeat(1024) });
    expect(await ask({ method: 'POST', url, text, headers: json })).toMatchObject({
      status: 413,
      body: { code: 'BODY_TOO_LARGE' },
    });
  });
});

describe('what is not there', () => {
  it.each(['/nowhere', '/api/v1', '/api/v2/retries', '//', '/openapi_json'])(
    'is 404: %s',
    async (path) => {
      const { get } = await stage();
      expect(await get(path)).toMatchObject({
        status: 404,
        headers: { 'content-type': 'application/problem+json; charset=utf-8' },
        body: { type: 'about:blank', title: 'Not Found', status: 404, code: 'NOT_FOUND' },
      });
    },
  );

  it.each([
    ['PUT', url, 'GET, POST'],
    ['PATCH', `${url}/${id(1)}`, 'DELETE, GET'],
    ['OPTIONS', url, 'GET, POST'],
    ['HEAD', url, 'GET, POST'],
    ['POST', '/health/live', 'GET, HEAD'],
    ['GET', `${url}/${id(1)}/expedite`, 'POST'],
    ['GET', '/api/v1/review/bulk/preview', 'POST'],
    ['DELETE', '/api/v1/review/bulk/preview', 'POST'],
  ] as const)('is 405 where another method is: %s %s', async (method, path, allow) => {
    const { app } = await stage();
    const answer = await send(app, {
      method,
      url: path,
      ...(method === 'PUT' ? { body: {} } : {}),
    });
    expect(answer).toMatchObject({ status: 405, headers: { allow } });
    // An answer to HEAD has no body.
    expect([undefined, 'METHOD_NOT_ALLOWED']).toContain(at(answer.body, 'code'));
  });

  it('is a path that cannot be read', async () => {
    const { app } = await stage();
    expect(await send(app, { url: `${url}/%zz` })).toMatchObject({
      status: 400,
      headers: { 'content-type': 'application/problem+json; charset=utf-8' },
      body: { code: 'MALFORMED_REQUEST' },
    });
  });
});

describe('limits', () => {
  it('count requests by client and second, but not of those who watch', async () => {
    const { get, ask, engine } = await stage({ rateLimit: 2 });
    await get('/');
    await get('/');
    const answer = await get('/api/v1/retries');
    expect(answer).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1' },
      body: { code: 'RATE_LIMITED' },
    });
    expect(await get('/nowhere')).toMatchObject({ status: 429 });
    expect((await get('/health/live')).status).toBe(200);
    expect(await ask({ method: 'POST', url, body: {} })).toMatchObject({ status: 429 });
    expect(await engine.list({ limit: 1 })).toEqual([]);
  });

  it.each([
    ['two addresses of one /64 network', '2001:db8:1:2::1', '2001:db8:1:2:ffff::9', 429],
    ['two networks', '2001:db8:1:2::1', '2001:db8:1:3::1', 200],
    ['two IPv4 clients of a socket for both', '::ffff:192.0.2.1', '::ffff:192.0.2.2', 200],
    ['one IPv4 client in both spellings', '192.0.2.1', '::ffff:192.0.2.1', 429],
    ['two IPv4 clients', '192.0.2.1', '192.0.2.2', 200],
  ])('are shared by whoever is one client: %s', async (_, first, second, status) => {
    const { app } = await stage({ rateLimit: 2 });
    const ask = async (remoteAddress: string) => {
      const headers = { host: 'localhost' };
      return (await app.inject({ url: '/', remoteAddress, headers })).statusCode;
    };
    expect(await ask(first)).toBe(200);
    expect(await ask(first)).toBe(200);
    expect(await ask(second)).toBe(status);
  });

  it('end what takes too long', async () => {
    const made = await stage({ requestTimeoutMs: 20 });
    const free = Promise.withResolvers<never[]>();
    made.engine.list = () => free.promise;
    expect(await made.get(url)).toMatchObject({
      status: 503,
      body: { code: 'TOO_SLOW', detail: expect.stringContaining('message_id') },
    });
    free.resolve([]);
  });

  it('are those of the server', async () => {
    const { app } = await stage();
    expect(app.server).toMatchObject({
      maxConnections: 2100,
      requestTimeout: settings.requestTimeoutMs,
      headersTimeout: 10_000,
      timeout: settings.requestTimeoutMs * 2,
    });
  });
});

describe('answers', () => {
  it('may not be kept, framed, sniffed or passed on', async () => {
    const { get } = await stage();
    for (const path of ['/', '/nowhere', '/health/live', '/metrics']) {
      const { headers } = await get(path);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      });
      expect(headers['strict-transport-security']).toBeUndefined();
      expect(headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  it('say nothing of what nobody foresaw, but the log does', async () => {
    const { get, engine, logged } = await stage();
    engine.list = () => Promise.reject(new Error('password=hunter2'));
    const answer = await get(url);
    expect(answer).toMatchObject({ status: 500, body: { code: 'INTERNAL' } });
    expect(answer.text).not.toContain('hunter2');
    expect(logged.join('')).toContain('hunter2');
    expect(logged.join('')).toContain('"route":"/api/v1/retries"');
  });

  it('say when the store is full, without its path', async () => {
    const { get, engine } = await stage();
    engine.list = () =>
      Promise.reject(new EngineError('STORE_FULL', 'No room is left for data/tasks.db.'));
    const answer = await get(url);
    expect(answer).toMatchObject({ status: 503, body: { code: 'STORE_FULL' } });
    expect(answer.text).not.toContain('tasks.db');
  });
});

describe('the end', () => {
  it('answers what still comes as a problem', async () => {
    const { app, engine, logged } = await stage();
    const free = Promise.withResolvers<never[]>();
    const asked = Promise.withResolvers<void>();
    engine.list = () => {
      asked.resolve();
      return free.promise;
    };
    const address = await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = new URL(address);
    // Two requests on one connection: the second comes when it is stopping.
    const socket = connect(Number(port), '127.0.0.1');
    const request = `GET ${url} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
    socket.write(request);
    await asked.promise;
    const closed = app.close();
    socket.write(request);
    await vi.waitFor(() => expect(logged.join('')).toContain('STOPPING'), { timeout: 20_000 });
    free.resolve([]);
    const text = await textOf(socket);
    await closed;
    expect(text).toContain('HTTP/1.1 200 OK');
    expect(text).toContain('"code":"STOPPING"');
  });
});

describe('what is not HTTP', () => {
  it.each([
    ['noise', 'hello\r\n\r\n', 'HTTP/1.1 400', 'MALFORMED_REQUEST'],
    [
      'endless headers',
      `GET / HTTP/1.1\r\nHost: localhost\r\nx-a: ${'x'.repeat(20_000)}\r\n\r\n`,
      'HTTP/1.1 431',
      'REQUEST_HEADERS_TOO_LARGE',
    ],
  ])('is answered on the bare connection: %s', async (_, request, status, code) => {
    const { app } = await stage();
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(request);
    const text = await textOf(socket);
    expect(text).toContain(status);
    expect(text).toContain('content-type: application/problem+json');
    expect(text).toContain(`"code":"${code}"`);
  });
});

describe('what Node would answer by itself', () => {
  it.each([
    [
      'a tunnel',
      'CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example:443\r\n\r\n',
      405,
      'METHOD_NOT_ALLOWED',
    ],
    ['no Host', 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    [
      'an expectation, which is not honoured',
      'GET /nowhere HTTP/1.1\r\nhost: localhost\r\nexpect: wonders\r\nconnection: close\r\n\r\n',
      404,
      'NOT_FOUND',
    ],
  ])('is a problem like any other: %s', async (_, request, status, code) => {
    const { app } = await stage();
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(request);
    const text = await textOf(socket);
    expect(text).toContain(`HTTP/1.1 ${status}`);
    expect(text).toContain('content-type: application/problem+json');
    expect(text).toContain(`"code":"${code}"`);
  });
});

async function textOf(socket: AsyncIterable<unknown>): Promise<string> {
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}

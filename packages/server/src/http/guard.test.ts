import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Role, Token } from '../settings/settings.ts';
import { at, type Document, id, send, stage } from './harness.test.ts';
import { documentOf } from './openapi.ts';

const secrets: Record<Role, string> = {
  gateway: 'rd_gate-0123456789',
  reader: 'rd_read-0123456789',
  operator: 'rd_work-0123456789',
  admin: 'rd_rule-0123456789',
};

const tokens: Token[] = (['gateway', 'reader', 'operator', 'admin'] as const).map((role) => ({
  name: `${role}-1`,
  role,
  sha256: createHash('sha256').update(secrets[role]).digest('hex'),
}));

const bearer = (token: string) => ({ authorization: `Bearer ${token}`, host: 'redrive.example' });

/** Every route that there is, with what a request for it looks like. */
function operationsOf(document: Document) {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase() as 'GET',
      url: path
        .replace('{message_id}', id(1))
        .replace('{id}', '1')
        .replace('{lane}', 'queue:a')
        .replace('{fingerprint}', 'x'),
      role: operation['x-role'],
      takesBody: operation.requestBody?.required === true,
      security: operation.security,
    })),
  );
}

describe('roles', () => {
  const allowed: Record<string, readonly (Role | 'nobody')[]> = {
    open: ['nobody', 'gateway', 'reader', 'operator', 'admin'],
    reader: ['reader', 'operator', 'admin'],
    operator: ['operator', 'admin'],
    admin: ['admin'],
  };

  it('are held to by every route', async () => {
    const { app } = await stage({ tokens });
    const operations = operationsOf(documentOf(app) as Document);
    expect(operations.length).toBeGreaterThan(30);
    for (const { method, url, role, takesBody } of operations) {
      // It would never end.
      if (url.endsWith('/events')) continue;
      for (const who of ['nobody', 'gateway', 'reader', 'operator', 'admin'] as const) {
        const headers = who === 'nobody' ? { host: 'redrive.example' } : bearer(secrets[who]);
        const { status } = await send(app, {
          method,
          url,
          headers,
          ...(takesBody ? { body: {} } : {}),
        });
        const refused = who === 'nobody' ? 401 : 403;
        const isAllowed = allowed[String(role)]?.includes(who);
        const verdict = status === 401 || status === 403 ? status : 'allowed';
        expect(verdict, `${who}: ${method} ${url}`).toBe(isAllowed ? 'allowed' : refused);
      }
    }
  });

  it('let readers look, operators act, and admins erase', async () => {
    const { app } = await stage({ tokens });
    const of = (wanted: string) =>
      operationsOf(documentOf(app) as Document)
        .filter(({ role }) => role === wanted)
        .map(({ method, url }) => `${method} ${url}`);
    expect(of('open')).toEqual(['GET /', 'GET /health/live', 'GET /health/ready']);
    expect(of('admin')).toEqual(['POST /api/v1/review/1/erase']);
    expect(of('reader').filter((one) => !one.startsWith('GET '))).toEqual([
      'POST /api/v1/review/bulk/preview',
      'POST /api/v1/policies/simulate',
      'POST /api/v1/criteria/{name}',
      'POST /api/v1/route/decide',
    ]);
    expect(of('operator').filter((one) => one.startsWith('GET '))).toEqual([]);
  });

  it('stand in the document', async () => {
    const withTokens = await stage({ tokens });
    const document = documentOf(withTokens.app) as Document & { security: unknown };
    expect(document.security).toEqual([{ token: [] }]);
    const open = operationsOf(document).filter(({ role }) => role === 'open');
    expect(open.every(({ security }) => JSON.stringify(security) === '[]')).toBe(true);
    const without = await stage();
    expect(documentOf(without.app)).toMatchObject({ security: [] });
  });
});

describe('tokens', () => {
  it.each([
    ['none', {}],
    ['another scheme', { authorization: `Basic ${secrets.reader}` }],
    ['nothing after the scheme', { authorization: 'Bearer ' }],
    ['an unknown one', { authorization: 'Bearer rd_no' }],
    ['a hash', { authorization: `Bearer ${tokens[0]!.sha256}` }],
    ['two', { authorization: `Bearer ${secrets.reader} ${secrets.admin}` }],
    ['a very long one', { authorization: `Bearer ${'x'.repeat(2000)}` }],
    ['one in another header', { 'x-redrive-token': secrets.admin }],
  ])('are needed: %s', async (_, headers) => {
    const { ask } = await stage({ tokens });
    const answer = await ask({ url: '/api/v1/retries', headers });
    expect(answer).toMatchObject({ status: 401, body: { code: 'UNAUTHENTICATED' } });
    expect(answer.headers['www-authenticate']).toContain('Bearer');
  });

  it.each([
    ['nobody', {}, false],
    ['an unknown token', bearer('rd_no'), false],
    ['a reader', bearer(secrets.reader), true],
    ['an admin', bearer(secrets.admin), true],
  ])('are needed to see hosts and paths in the readiness: %s', async (_, headers, isShown) => {
    const { ask, readiness } = await stage({ tokens });
    const checks = [
      { name: 'store', ok: false, detail: 'connect ECONNREFUSED 10.1.2.3:5432' },
      { name: 'inbox', ok: true, detail: 'It is filling up.' },
    ];
    const names = checks.map(({ name, ok }) => ({ name, ok }));
    // Also while it is ready: warnings have details too.
    for (const ready of [false, true]) {
      Object.assign(readiness, { ready, checks });
      const { status, body } = await ask({ url: '/health/ready', headers });
      expect(status).toBe(ready ? 200 : 503);
      expect(body).toEqual({ ready, checks: isShown ? checks : names });
    }
  });

  it('cannot be guessed faster at a health check than elsewhere', async () => {
    const { ask } = await stage({ tokens, rateLimit: 2 });
    const url = '/health/ready';
    const headers = bearer('rd_no');
    for (const status of [200, 200, 429]) {
      expect((await ask({ url, headers })).status).toBe(status);
    }
    expect((await ask({ url })).status).toBe(200);
  });

  it('are needed to learn what there is not', async () => {
    const { ask } = await stage({ tokens });
    expect(await ask({ url: '/nowhere' })).toMatchObject({ status: 401 });
    expect(await ask({ url: '/nowhere', headers: bearer(secrets.reader) })).toMatchObject({
      status: 404,
    });
  });

  it('say who did it, whatever else the request says', async () => {
    const { ask, engine, audited } = await stage({ tokens });
    await engine.submit({ kind: 'queue', address: 'a' }, 1, { id: id(1) });
    const answer = await ask({
      method: 'DELETE',
      url: `/api/v1/retries/${id(1)}`,
      headers: { ...bearer(secrets.operator), 'x-redrive-operator': 'somebody else' },
    });
    expect(answer.status).toBe(200);
    await audited({ by: 'operator-1', action: 'cancel' });
  });

  it('say in the refusal what is missing', async () => {
    const { ask } = await stage({ tokens });
    const headers = bearer(secrets.operator);
    const answer = await ask({ method: 'POST', url: '/api/v1/review/1/erase', headers });
    expect(answer).toMatchObject({
      status: 403,
      body: { code: 'FORBIDDEN', detail: "'operator-1' is an operator; this needs an admin." },
    });
  });

  it('let any name and any origin ask', async () => {
    const { ask } = await stage({ tokens });
    const headers = { ...bearer(secrets.reader), origin: 'https://console.example' };
    expect((await ask({ url: '/api/v1/retries', headers })).status).toBe(200);
  });
});

describe('without tokens', () => {
  it.each(['localhost', 'LOCALHOST:8086', '127.0.0.1', '127.9.9.9:1', '[::1]', '[::1]:8086'])(
    'this machine may ask: %s',
    async (host) => {
      const { ask } = await stage();
      expect((await ask({ url: '/', headers: { host } })).status).toBe(200);
    },
  );

  it.each([
    'evil.example',
    'evil.example:8086',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '128.0.0.1',
    '0.0.0.0',
    '127.1',
    '2130706433',
    '[::2]',
    '[::1',
    'localhost:x',
    'localhost:80:80',
  ])('a name that was bound to this machine may not: %j', async (host) => {
    const { ask } = await stage();
    for (const url of ['/', '/health/ready', '/nowhere', '/metrics']) {
      expect(await ask({ url, headers: { host } })).toMatchObject({
        status: 403,
        body: { code: 'HOST_NOT_ALLOWED' },
      });
    }
  });

  it('nobody may ask who does not say whom', async () => {
    const { app } = await stage();
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const socket = connect(Number(port), '127.0.0.1');
    socket.write('GET / HTTP/1.0\r\n\r\n');
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    expect(text).toContain('HOST_NOT_ALLOWED');
  });

  it.each([
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'http://localhost:3000' }, 403],
    [{ origin: 'https://127.0.0.1:8086' }, 403],
    [{ origin: 'http://127.0.0.1:8086' }, 202],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate' }, 403],
    [{ 'sec-fetch-site': 'same-origin' }, 202],
    [{ 'sec-fetch-site': 'none' }, 202],
  ])('a page posts here only if it came from here: %j', async (headers, status) => {
    const { ask, engine } = await stage();
    const body = { destination: 'queue:a', payload: 1 };
    const answer = await ask({ method: 'POST', url: '/api/v1/retries', body, headers });
    expect(answer.status).toBe(status);
    expect(await engine.list({ limit: 1 })).toHaveLength(status === 202 ? 1 : 0);
  });

  it('a link from elsewhere may lead here', async () => {
    const { ask } = await stage();
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect((await ask({ url: '/', headers })).status).toBe(200);
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json5',
    'text/plain; application/json',
    'nonsense',
    undefined,
  ])('a form posts nothing: %s', async (type) => {
    const { ask, engine } = await stage();
    const headers = type === undefined ? {} : { 'content-type': type };
    const text = '{"destination":"queue:a","payload":1}';
    expect(await ask({ method: 'POST', url: '/api/v1/retries', text, headers })).toMatchObject({
      status: 415,
      body: { code: 'UNSUPPORTED_MEDIA_TYPE' },
    });
    expect(await engine.list({ limit: 1 })).toEqual([]);
  });

  it('an empty form does nothing either', async () => {
    const { ask, engine } = await stage();
    await engine.submit({ kind: 'queue', address: 'a' }, 1, { id: id(1) });
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' };
    const url = `/api/v1/retries/${id(1)}/expedite`;
    expect(await ask({ method: 'POST', url, headers })).toMatchObject({ status: 415 });
  });

  it.each([
    ['ada', 'ada'],
    ['  ada  ', 'ada'],
    [Buffer.from('Zoë').toString('latin1'), 'Zoë'],
    ['a\tb\u0007', 'ab'],
    ['x'.repeat(80), 'x'.repeat(64)],
    ['', 'local'],
    ['   ', 'local'],
    [undefined, 'local'],
  ])('the operator is whom the request names: %j', async (given, by) => {
    const { ask, audited } = await stage();
    const headers = given === undefined ? {} : { 'x-redrive-operator': given };
    const answer = await ask({ method: 'POST', url: '/api/v1/lanes/queue:a/pause', headers });
    expect(at(answer.body, 'paused')).toBe(true);
    await audited({ action: 'pause', by });
  });
});

/** Where the gateway connects to: the address that was checked, and only after the certificate was. */
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { certificate } from '@redrive/services';
import { describe, expect, it } from 'vitest';
import { json, listen, provider, stage } from './stage.test.ts';

const named = (url: string) => url.replace('127.0.0.1', 'provider.test');
const backoff = { strategy: 'fixed', base_ms: 1, jitter: false } as const;

describe('a provider with a name', () => {
  it('is connected to at the address that was checked, whatever its name leads to by then', async () => {
    const one = await provider(json({ fine: true }));
    // What an attacker's name server says: first something harmless, then something inside.
    const answers = [['127.0.0.1'], ['10.0.0.9']];
    let asked = 0;
    const resolve = () => Promise.resolve(answers[Math.min(asked++, 1)]!);
    const { ask } = await stage({
      providers: { one: { url: named(one.url) } },
      http: { resolve },
    });
    expect(await ask({ body: 'x' })).toMatchObject({ status: 200 });
    expect(await ask({ body: 'x' })).toMatchObject({ status: 200 });
    // One lookup for the connection, which the second request has used too.
    expect(asked).toBe(1);
    expect(one.got[0]?.headers.host).toBe(new URL(named(one.url)).host);

    const again = new Promise((done) => {
      one.server.once('connection', done);
    });
    one.server.closeAllConnections();
    const reply = await ask({ body: 'x', headers: { 'idempotency-key': 'k' } });
    expect(reply).toMatchObject({ status: 502 });
    expect(reply.text).toContain('one: connection_error');
    expect(reply.text).not.toContain('10.0.0.9');
    expect(asked).toBe(2);
    expect(one.got).toHaveLength(2);
    // Nobody has connected again.
    await expect(Promise.race([again, Promise.resolve('none')])).resolves.toBe('none');
  });

  it('is not connected to at those of its addresses that are not allowed', async () => {
    const one = await provider(json({ fine: true }));
    const { port } = one.server.address() as AddressInfo;
    let trapped = 0;
    const trap = createTcpServer((socket) => {
      trapped += 1;
      socket.destroy();
    });
    await listen(trap, port, '127.0.0.2');
    const { ask } = await stage({
      providers: { one: { url: named(one.url) } },
      http: {
        allow: ['127.0.0.1'],
        resolve: () => Promise.resolve(['127.0.0.2', '127.0.0.1']),
      },
    });
    expect(await ask({ body: 'x' })).toMatchObject({ status: 200 });
    expect(trapped).toBe(0);
  });
});

describe('a provider with TLS', () => {
  const HOUR_MS = 3_600_000;

  async function secureProvider(host: string) {
    const now = Date.now();
    const { key, cert } = certificate(host, now - HOUR_MS, now + HOUR_MS);
    let asked = 0;
    let connections = 0;
    const server = createHttpsServer({ key, cert }, (request, response) => {
      asked += 1;
      request.resume().on('end', () => {
        response.setHeader('content-type', 'text/event-stream');
        response.end(`data: {"host":"${request.headers.host}"}\n\n`);
      });
    });
    server.on('secureConnection', () => (connections += 1));
    await listen(server);
    const { port } = server.address() as AddressInfo;
    return {
      url: `https://provider.test:${port}`,
      port,
      cert,
      asked: () => asked,
      connections: () => connections,
    };
  }

  const resolve = () => Promise.resolve(['127.0.0.1']);

  it('is asked over one connection, by its name', async () => {
    const one = await secureProvider('provider.test');
    const { ask } = await stage({ providers: { one }, http: { resolve, tls: { ca: one.cert } } });
    for (let i = 0; i < 3; i++) {
      const reply = await ask({ body: 'x' });
      expect(reply).toMatchObject({ status: 200, isWhole: true });
      expect(reply.text).toBe(`data: {"host":"provider.test:${one.port}"}\n\n`);
    }
    expect(one.connections()).toBe(1);
  });

  it.each([
    ['nobody vouches for', 'provider.test', false],
    ['has another name', 'other.test', true],
  ])('that %s gets nothing, and the next provider is asked', async (_, host, isTrusted) => {
    const one = await secureProvider(host);
    const two = await provider(json({ two: true }));
    const { ask, ended } = await stage({
      providers: { one, two },
      policy: {
        fallbacks: [{ when: { status: 'connection_error' }, to: 'two', retry: 1, backoff }],
      },
      http: { resolve, tls: isTrusted ? { ca: one.cert } : {} },
    });
    // A POST: nothing of it has been sent, so it may be repeated.
    expect(await ask({ body: 'secret' })).toMatchObject({ status: 200, text: '{"two":true}' });
    const [finished] = await ended(1);
    expect(finished?.attempts.map(({ provider: name, status }) => `${name} ${status}`)).toEqual([
      'one connection_error',
      'one connection_error',
      'two ok',
    ]);
    expect(one.asked()).toBe(0);
  });
});

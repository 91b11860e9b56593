/** Clients and providers that are slow, cut off or dishonest where it hurts: nothing is repeated, lost, leaked or held for good. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { cut, hang, json, provider, raw, rawProvider, stage } from './stage.test.ts';

const GET = 'GET /gateway/llm/x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n';
const post = (headers: string, body: string) =>
  `POST /gateway/llm/x HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}\r\n\r\n${body}`;

function client(port: number, text: string): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(text);
  return socket;
}

describe('a client', () => {
  it('waits for a provider that thinks longer than a client may be idle', async () => {
    const one = await provider((_, response) => setTimeout(() => response.end('late'), 400));
    const { ask } = await stage({ providers: { one }, idleMs: 100 });
    expect(await ask({ body: 'x' })).toMatchObject({ status: 200, text: 'late' });
  });

  it('that sends an empty idempotency key is not protected, so nothing is repeated', async () => {
    const one = await provider(cut);
    const two = await provider(json({}));
    const { ask } = await stage({ providers: { one, two } });
    for (const key of ['', '  ']) {
      const reply = await ask({ body: 'x', headers: { 'idempotency-key': key } });
      expect(reply.status).toBe(502);
    }
    expect(two.got).toEqual([]);
  });

  it('that stops in the middle of its body gives everything back', async () => {
    const one = await provider(json({}));
    const { port, gateway } = await stage({ providers: { one }, idleMs: 100 });
    const reply = await raw(port, post('content-length: 1000', 'x'));
    expect(reply).toMatch(/^HTTP\/1\.1 408 /);
    await vi.waitFor(() => expect(gateway).toMatchObject({ running: 0, keptBytes: 0 }), {
      timeout: 20_000,
    });
  });

  it.each([
    { limit: 'the time of the attempt', idleMs: 10_000, timeout_ms: 150 },
    { limit: 'the idle time', idleMs: 150, timeout_ms: 10_000 },
  ])('that stops in a streamed body opens no breaker: $limit', async ({ idleMs, timeout_ms }) => {
    const one = await provider(json({}));
    const { port, gateway, router } = await stage({
      providers: { one },
      maxKeptBytes: 10,
      idleMs,
      policy: { timeout_ms, circuit_breaker: { enabled: true, failure_threshold: 1 } },
    });
    const reply = await raw(port, post('content-length: 1000', 'x'));
    expect(reply).toMatch(/^HTTP\/1\.1 408 /);
    await vi.waitFor(() => expect(gateway.running).toBe(0), { timeout: 20_000 });
    expect(router.health()['one']).toMatchObject({ state: 'closed', inFlight: 0 });
  });

  it('that takes nothing of an answer is cut off', async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024);
    const one = await provider((_, response) => response.end(bytes));
    const { port, gateway } = await stage({ providers: { one }, idleMs: 100 });
    const socket = client(port, GET).pause();
    await one.arrived(1);
    await vi.waitFor(() => expect(gateway.running).toBe(0), { timeout: 5000 });
    socket.resume();
    await once(socket, 'close');
  });

  it('that pipelines and goes away leaves nothing behind', async () => {
    const bytes = Buffer.alloc(4 * 1024 * 1024);
    const one = await provider((request, response) => {
      if (request.url === '/x') hang(request, response, one.got[0]!);
      else response.end(bytes);
    });
    const { port, gateway } = await stage({ providers: { one }, policy: { timeout_ms: 60_000 } });
    const socket = client(port, GET + GET.replace('/x', '/big'));
    await one.arrived(2);
    socket.destroy();
    await vi.waitFor(() => expect(gateway.running).toBe(0), { timeout: 5000 });
  });

  it('that leaves before a retry frees the answer that was refused', async () => {
    let closed = 0;
    const endless = Buffer.alloc(256 * 1024);
    const one = await provider(
      (_, response) => {
        response.on('close', () => closed++).writeHead(503);
        response.write(endless);
      },
      (_, response) => {
        response
          .on('close', () => closed++)
          .writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('event: error\ndata: {"type":"error"}\n\n');
      },
    );
    const { port, gateway, router } = await stage({
      providers: { one, two: await provider(json({})) },
      policy: {
        fallbacks: [
          {
            when: { status: '5xx' },
            to: 'two',
            retry: 3,
            backoff: { base_ms: 10_000, max_ms: 10_000 },
          },
        ],
      },
    });
    for (const count of [1, 2]) {
      const socket = client(port, GET);
      await vi.waitFor(() => expect(router.health()['one']?.failures).toBe(count), {
        timeout: 20_000,
      });
      socket.destroy();
      await vi.waitFor(() => expect([gateway.running, closed]).toEqual([0, count]), {
        timeout: 5000,
      });
    }
  });

  it.each(['by leaving', 'by timeout'])(
    'ends a call on a used connection without sending it again: %s',
    async (how) => {
      let closed = 0;
      const one = await provider(json({}), ({ socket }) => socket.on('close', () => closed++));
      const timeout_ms = how === 'by leaving' ? 60_000 : 150;
      const { ask, port, ended, gateway } = await stage({
        providers: { one },
        policy: { timeout_ms },
      });
      await ask({ method: 'GET' });
      const socket = client(port, GET);
      await one.arrived(2);
      if (how === 'by leaving') socket.destroy();
      await ended(2);
      await vi.waitFor(() => expect([gateway.running, closed]).toEqual([0, 1]), {
        timeout: 20_000,
      });
      // A request of the next call shows that none was on its way before it.
      void ask({ method: 'GET', path: '/gateway/llm/next' }).catch(() => undefined);
      await one.arrived(3);
      expect(one.got.map(({ url }) => url)).toEqual(['/v1/chat', '/x', '/next']);
    },
  );

  it('cannot send a body in a coding that would be lost on the way', async () => {
    const one = await provider(json({}));
    const { port } = await stage({ providers: { one } });
    const reply = await raw(port, post('transfer-encoding: gzip, chunked', '1\r\nx\r\n0\r\n\r\n'));
    expect(reply).toMatch(/^HTTP\/1\.1 400 [^]*MALFORMED_REQUEST/);
    expect(one.got).toEqual([]);
  });
});

describe('an answer', () => {
  it.each([
    ['without a length that is reset', 'data: 1\n\n', (socket: Socket) => socket.resetAndDestroy()],
    [
      'with a broken chunk',
      'Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n',
      (socket: Socket) => socket.write('zz\r\n'),
    ],
  ])('%s is not taken for the whole', async (_, rest, breakOff) => {
    const sockets: Socket[] = [];
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n';
    const text = head + (rest.startsWith('data') ? `\r\n${rest}` : rest);
    const one = await rawProvider(text, (socket) => sockets.push(socket));
    const { port, ended, router } = await stage({ providers: { one } });
    const socket = client(port, GET);
    let got = '';
    socket.on('data', (chunk) => {
      got += chunk.toString();
      if (got.includes('data: 1')) breakOff(sockets[0]!);
    });
    await once(socket, 'close');
    expect(got).toMatch(/data: 1\n\n\r\n$/);
    expect(await ended(1)).toMatchObject([{ outcome: 'cut', status: 200 }]);
    expect(router.health()['one']).toMatchObject({ failures: 1, inFlight: 0 });
  });

  it.each(['gzip, chunked', 'gzip', 'chunked\r\ntransfer-encoding: identity'])(
    'with the transfer-encoding %j is a failure',
    async (coding) => {
      const text = `HTTP/1.1 200 OK\r\ntransfer-encoding: ${coding}\r\n\r\n1\r\nx\r\n0\r\n\r\n`;
      const { ask } = await stage({ providers: { one: await rawProvider(text) } });
      expect(await ask({ method: 'GET' })).toMatchObject({ status: 502 });
    },
  );

  it('that breaks before anything went out is a failure, and another provider is asked', async () => {
    const text = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\nno\r\n';
    const providers = { one: await rawProvider(text), two: await provider(json({ fine: true })) };
    const { ask } = await stage({ providers });
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 200, text: '{"fine":true}' });
  });
});

import { request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { cut, hang, json, nowhere, provider, raw, rawProvider, stage } from './stage.test.ts';

const fine = json({ fine: true });
const unsafe = { retry_unsafe: true };
const key = { 'idempotency-key': 'k-1' };

describe('a provider that fails', () => {
  it('is followed by the next one, which gets the same request', async () => {
    const one = await provider(json({ error: 1 }, 503));
    const two = await provider(json({ fine: true }));
    const { ask } = await stage({ providers: { one, two } });
    const reply = await ask({
      body: '{"a":1}',
      headers: { ...key, 'content-type': 'application/json' },
    });
    expect(reply).toMatchObject({ status: 200, text: '{"fine":true}' });
    expect(reply.headers).toMatchObject({
      'x-redrive-provider': 'two',
      'x-redrive-attempts': '2',
      'x-redrive-explanation':
        'one 503, two ok; fallback: 3. Applied fallback rule after 0/0 retry attempts exhausted',
    });
    for (const { got } of [one, two]) {
      expect(got).toMatchObject([
        { method: 'POST', url: '/v1/chat', headers: { 'idempotency-key': 'k-1' } },
      ]);
      expect(got[0]?.body.toString()).toBe('{"a":1}');
    }
  });

  it('by a cut before the first byte is followed by the next one', async () => {
    const one = await provider(cut);
    const two = await provider(fine);
    const { ask } = await stage({ providers: { one, two } });
    const reply = await ask({ method: 'GET' });
    expect(reply.headers['x-redrive-explanation']).toContain('one connection_error, two ok');
  });

  it('by a cut after half of its headers is followed by the next one', async () => {
    const one = await rawProvider('HTTP/1.1 200 OK\r\nContent-Le', (socket) => socket.destroy());
    const two = await provider(fine);
    const { ask } = await stage({ providers: { one, two } });
    expect(await ask({ method: 'GET' })).toMatchObject({
      headers: { 'x-redrive-provider': 'two' },
    });
  });

  it('by hanging is left after timeout_ms, and its connection closed', async () => {
    const closed = vi.fn();
    const one = await provider(({ socket }) => socket.on('close', closed));
    const two = await provider(fine);
    const { ask } = await stage({ providers: { one, two }, policy: { timeout_ms: 50 } });
    const reply = await ask({ method: 'GET' });
    expect(reply.headers['x-redrive-explanation']).toContain('one timeout, two ok');
    await vi.waitFor(() => expect(closed).toHaveBeenCalled(), { timeout: 20_000 });
  });

  it.each([
    ['no HTTP at all', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['a status that is none', 'HTTP/1.1 999 Strange\r\nContent-Length: 0\r\n\r\n'],
    ['a header that is none', 'HTTP/1.1 200 OK\r\nBad Header\u0000: x\r\n\r\n'],
    ['headers without end', `HTTP/1.1 200 OK\r\n${'X-A: b\r\n'.repeat(20_000)}`],
    [
      'another protocol',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    ],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx'],
  ])('by answering %s is followed by the next one', async (_, text) => {
    const one = await rawProvider(Buffer.from(text, 'latin1'));
    const two = await provider(fine);
    const { ask } = await stage({ providers: { one, two } });
    const reply = await ask({ method: 'GET' });
    expect(reply.headers['x-redrive-explanation']).toContain('one connection_error, two ok');
  });

  it('is asked again by the policy, and no earlier than it wants', async () => {
    const times: number[] = [];
    const limited = json({}, 429, { 'retry-after-ms': '120' });
    const one = await provider(
      (...args) => (times.push(performance.now()), limited(...args)),
      (...args) => (times.push(performance.now()), fine(...args)),
    );
    const { ask } = await stage({
      providers: { one },
      policy: {
        fallbacks: [
          { when: { status: 'rate_limit' }, to: 'one', retry: 1, backoff: { base_ms: 1 } },
        ],
      },
    });
    expect(await ask({ body: 'x' })).toMatchObject({
      status: 200,
      headers: { 'x-redrive-attempts': '2' },
    });
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(119);
  });

  it('has its breaker opened by timeouts, cuts and 5xx', async () => {
    const one = await provider(cut, json({}, 500), fine);
    const two = await provider(fine);
    const { ask, router } = await stage({
      providers: { one, two },
      policy: { circuit_breaker: { enabled: true, failure_threshold: 2 } },
    });
    for (let i = 0; i < 3; i++) await ask({ method: 'GET' });
    expect(router.health()['one']).toMatchObject({ state: 'open', failures: 2 });
    expect(one.got).toHaveLength(2);
  });
});

it('does not read the endless body of an answer that it does not use', async () => {
  let written = 0;
  const closed = Promise.withResolvers<void>();
  const one = await provider((_, response) => {
    response.writeHead(503, { 'retry-after': '1' });
    response.on('close', () => closed.resolve());
    const more = () => {
      do written += 16 * 1024;
      while (!response.destroyed && response.write(Buffer.alloc(16 * 1024)));
    };
    response.on('drain', more);
    more();
  });
  const two = await provider(fine);
  const { ask, gateway } = await stage({ providers: { one, two } });
  expect(await ask({ body: 'x' })).toMatchObject({ status: 200 });
  await closed.promise;
  expect(written).toBeLessThan(16 * 1024 * 1024);
  await vi.waitFor(() => expect(gateway.running).toBe(0), { timeout: 20_000 });
  expect(gateway.keptBytes).toBe(0);
});

it('closes the connection of a client whose body is not wanted any more', async () => {
  const one = await rawProvider('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno');
  const { port } = await stage({ providers: { one }, maxKeptBytes: 10 });
  const head = 'POST /gateway/llm/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n';
  expect(await raw(port, `${head}beginning`)).toMatch(/^HTTP\/1\.1 413 [^]*connection: close/i);
});

describe('exhausted', () => {
  it('passes on the last answer and tells SDKs not to retry', async () => {
    const one = await provider(json({}, 500));
    const two = await provider(
      json({ error: { message: 'slow down' } }, 429, {
        'retry-after': '7',
        'x-should-retry': 'true',
      }),
    );
    const { ask, ended } = await stage({ providers: { one, two } });
    const reply = await ask({ method: 'GET' });
    expect(reply).toMatchObject({ status: 429, text: '{"error":{"message":"slow down"}}' });
    expect(reply.headers).toMatchObject({
      'retry-after': '7',
      'x-should-retry': 'false',
      'x-redrive-provider': 'two',
    });
    expect(await ended(1)).toMatchObject([{ outcome: 'failed', status: 429 }]);
  });

  it('passes on what the client did wrong, and does not ask others', async () => {
    const one = await provider(json({ error: 'no' }, 400));
    const two = await provider(fine);
    const { ask } = await stage({ providers: { one, two } });
    expect(await ask({ method: 'GET' })).toMatchObject({
      status: 400,
      text: '{"error":"no"}',
      headers: { 'x-redrive-attempts': '1' },
    });
    expect(two.got).toEqual([]);
  });

  it.each([
    ['PROVIDER_FAILED', 502, nowhere],
    ['PROVIDER_TIMEOUT', 504, () => provider(hang)],
  ])('without an answer is %s, %i', async (code, status, make) => {
    const one = await make();
    const { ask } = await stage({ providers: { one }, policy: { timeout_ms: 50 } });
    const reply = await ask({ method: 'GET' });
    expect(reply).toMatchObject({
      status,
      headers: { 'x-should-retry': 'false', 'x-redrive-attempts': '1' },
    });
    expect(reply.headers['content-type']).toContain('application/problem+json');
    expect(JSON.parse(reply.text)).toMatchObject({
      code,
      status,
      attempts: [{ provider: 'one' }],
      error: { code },
    });
  });

  it('with all breakers open is 503 with Retry-After', async () => {
    const one = await provider(cut);
    const { ask } = await stage({
      providers: { one },
      policy: { circuit_breaker: { enabled: true, failure_threshold: 1, timeout_ms: 30_000 } },
    });
    await ask({ method: 'GET' });
    const reply = await ask({ method: 'GET' });
    expect(reply).toMatchObject({
      status: 503,
      headers: { 'retry-after': '30', 'x-should-retry': 'false' },
    });
    expect(reply.text).toContain('NO_PROVIDER_AVAILABLE');
  });

  it('of a HEAD has no body', async () => {
    const { ask } = await stage({ providers: { one: await nowhere() } });
    expect(await ask({ method: 'HEAD' })).toMatchObject({ status: 502, text: '', isWhole: true });
  });
});

describe('a request that may have been executed', () => {
  it.each([
    ['POST', {}, cut, false],
    ['PATCH', {}, cut, false],
    ['POST', {}, json({}, 500), false],
    ['POST', {}, json({}, 503), false],
    ['POST', {}, hang, false],
    ['POST', {}, json({}, 429), true],
    ['POST', {}, json({}, 503, { 'retry-after': '1' }), true],
    ['POST', key, cut, true],
    ['POST', key, json({}, 500), true],
    ['PUT', {}, cut, true],
    ['DELETE', {}, json({}, 500), true],
  ] as const)(
    '%s %o is repeated only where that is safe',
    async (method, headers, fails, isRepeated) => {
      const one = await provider(fails);
      const two = await provider(fine);
      const { ask } = await stage({ providers: { one, two }, policy: { timeout_ms: 300 } });
      const reply = await ask({ method, headers, body: 'x' });
      expect(two.got).toHaveLength(isRepeated ? 1 : 0);
      expect(reply.status === 200).toBe(isRepeated);
      expect(reply.headers['x-should-retry']).toBe(isRepeated ? undefined : 'false');
    },
  );

  it('is repeated where the provider file says so', async () => {
    const one = await provider(cut, json({}, 500));
    const two = await provider(fine);
    const { ask } = await stage({ providers: { one, two }, fields: { one: unsafe } });
    expect((await ask({ body: 'x' })).status).toBe(200);
    expect((await ask({ body: 'x' })).status).toBe(200);
  });

  it('was not executed where nobody listened', async () => {
    const two = await provider(fine);
    const { ask } = await stage({ providers: { one: await nowhere(), two } });
    expect((await ask({ body: 'x' })).status).toBe(200);
  });

  it('says why it was not repeated', async () => {
    const one = await provider(cut);
    const { ask } = await stage({ providers: { one, two: await provider(fine) } });
    const { text } = await ask({ body: 'x' });
    expect(JSON.parse(text)).toMatchObject({ code: 'PROVIDER_FAILED', reason: 'NOT_REPEATED' });
    expect(text).toContain('idempotency-key');
  });

  it('over the limit of kept bodies gets one attempt', async () => {
    const one = await provider(json({}, 503));
    const two = await provider(fine);
    const { ask } = await stage({
      providers: { one, two },
      fields: { one: unsafe },
      maxKeptBytes: 10,
    });
    expect((await ask({ body: 'x'.repeat(11), headers: key })).status).toBe(503);
    expect((await ask({ body: 'x'.repeat(11), headers: key, chunked: true })).status).toBe(503);
    expect(two.got).toHaveLength(0);
    expect((await ask({ body: 'x'.repeat(10), headers: key })).status).toBe(200);
  });
});

describe('a cut in the middle of an answer', () => {
  it.each([
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbeginning'],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nbeginning\r\n'],
  ])('%s destroys the client’s connection and counts against the provider', async (_, text) => {
    const one = await rawProvider(text);
    const two = await provider(fine);
    const { ask, router, ended } = await stage({
      providers: { one, two },
      policy: { circuit_breaker: { enabled: true, failure_threshold: 1 } },
    });
    const reply = await ask({ method: 'GET' });
    expect(reply).toMatchObject({ status: 200, text: 'beginning', isWhole: false });
    expect(two.got).toEqual([]);
    expect(router.health()['one']).toMatchObject({ state: 'open', failures: 1 });
    expect(await ended(1)).toMatchObject([{ outcome: 'cut', status: 200 }]);
  });

  it('by silence is noticed after the idle limit', async () => {
    const one = await rawProvider(
      'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbeginning',
      () => undefined,
    );
    const { ask, router } = await stage({
      providers: { one },
      fields: { one: { idle_timeout_ms: 100 } },
    });
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 200, isWhole: false });
    expect(router.health()['one']).toMatchObject({ failures: 1 });
  });
});

describe('a client', () => {
  it('that goes away before the answer ends the provider’s request, and nothing is counted', async () => {
    const closed = Promise.withResolvers<void>();
    const one = await provider(({ socket }) => socket.on('close', () => closed.resolve()));
    const two = await provider(fine);
    const { port, router, ended, logged } = await stage({
      providers: { one, two },
      policy: { circuit_breaker: { enabled: true, failure_threshold: 1 } },
    });
    const sent = request({ port, host: '127.0.0.1', method: 'GET', path: '/gateway/llm/a' });
    sent.on('error', () => undefined);
    sent.end();
    await one.arrived(1);
    sent.destroy();
    await closed.promise;
    expect(await ended(1)).toMatchObject([{ outcome: 'client_gone', status: 0 }]);
    expect(router.health()['one']).toMatchObject({ state: 'closed', calls: 0, inFlight: 0 });
    expect(two.got).toEqual([]);
    expect(logged.join('')).not.toContain('"level":50');
  });

  it('that goes away in the middle of the answer ends the provider’s request, and nothing is counted', async () => {
    const closed = Promise.withResolvers<void>();
    const one = await rawProvider(
      'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbeginning',
      (socket) => socket.on('close', () => closed.resolve()),
    );
    const { port, router, ended } = await stage({ providers: { one } });
    const sent = request({ port, host: '127.0.0.1', method: 'GET', path: '/gateway/llm/a' });
    sent.on('error', () => undefined);
    sent.on('response', (response) => {
      response.on('error', () => undefined);
      response.once('data', () => sent.destroy());
    });
    sent.end();
    await closed.promise;
    expect(await ended(1)).toMatchObject([{ outcome: 'client_gone' }]);
    expect(router.health()['one']).toMatchObject({ calls: 0, failures: 0, inFlight: 0 });
  });

  it('that goes away while it sends its body leaves nothing behind', async () => {
    const one = await provider(fine);
    const { port, ended, gateway } = await stage({ providers: { one } });
    const socket = connect(port, '127.0.0.1');
    socket.write(
      'POST /gateway/llm/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf',
      () => socket.destroy(),
    );
    expect(await ended(1)).toMatchObject([{ outcome: 'client_gone' }]);
    expect(one.got).toEqual([]);
    await vi.waitFor(() => expect(gateway.running).toBe(0), { timeout: 20_000 });
  });

  it('that stops sending its body gets 408', async () => {
    const one = await provider(fine);
    const { port } = await stage({ providers: { one }, idleMs: 60 });
    const answer = await raw(
      port,
      'POST /gateway/llm/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 408 [^]*REQUEST_TIMEOUT/);
    expect(one.got).toEqual([]);
  });

  it('that does not read keeps the provider waiting, not the memory growing', async () => {
    let written = 0;
    const one = await provider((_, response) => {
      const chunk = Buffer.alloc(64 * 1024, 'x');
      const more = () => {
        do written += chunk.length;
        while (response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    const { port, ended, router } = await stage({ providers: { one }, idleMs: 1000 });
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('GET /gateway/llm/a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    socket.pause();
    expect(await ended(1)).toMatchObject([{ outcome: 'client_gone' }]);
    // Buffers of two sockets in the kernel, and a little here.
    expect(written).toBeLessThan(32 * 1024 * 1024);
    expect(router.health()['one']).toMatchObject({ failures: 0, inFlight: 0 });
    socket.destroy();
  });
});

describe('limits', () => {
  it('refuse more requests at once than are allowed', async () => {
    const one = await provider(hang);
    const { ask, port } = await stage({ providers: { one }, concurrency: 1 });
    const sent = request({ port, host: '127.0.0.1', method: 'GET', path: '/gateway/llm/a' });
    sent.on('error', () => undefined);
    sent.end();
    await one.arrived(1);
    expect(await ask({ method: 'GET' })).toMatchObject({
      status: 503,
      headers: { 'retry-after': '5' },
    });
    sent.destroy();
  });

  it('are known to the stop in whatever order they end', async () => {
    const answering: (() => void)[] = [];
    const one = await provider((_, response) => answering.push(() => response.end('fine')));
    const { ask, gateway } = await stage({ providers: { one } });
    const asked: Promise<unknown>[] = [];
    for (let i = 1; i <= 4; i++) {
      asked.push(ask({ method: 'GET' }).catch((error: unknown) => error));
      await one.arrived(i);
    }
    let left = 4;
    for (const index of [0, 3, 1]) {
      answering[index]?.();
      expect(await asked[index]).toMatchObject({ status: 200, text: 'fine' });
      await vi.waitFor(() => expect(gateway.running).toBe(left - 1), { timeout: 20_000 });
      left -= 1;
    }
    await gateway.stop(1);
    expect(await asked[2]).toMatchObject({ code: 'ECONNRESET' });
  });

  it('let a stop wait for what runs, refuse what comes, and cut what does not end', async () => {
    const answering: (() => void)[] = [];
    const one = await provider((_, response) => answering.push(() => response.end('late')), hang);
    const { ask, gateway } = await stage({ providers: { one } });
    const first = ask({ method: 'GET' });
    await one.arrived(1);
    const second = ask({ method: 'GET' }).catch((error: unknown) => error);
    await one.arrived(2);
    const stopped = gateway.stop(200);
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 503 });
    answering[0]?.();
    expect(await first).toMatchObject({ status: 200, text: 'late' });
    await stopped;
    expect(await second).toMatchObject({ code: 'ECONNRESET' });
    await vi.waitFor(() => expect(gateway.running).toBe(0), { timeout: 20_000 });
  });
});

it('uses a connection again, and a new one where the idle one was closed just then', async () => {
  const sockets = new Set<unknown>();
  const one = await provider(
    (req, res) => (sockets.add(req.socket), res.end('1')),
    (req, res) => (sockets.add(req.socket), res.end('2')),
    cut,
    (_, res) => res.end('4'),
  );
  const { ask, router } = await stage({ providers: { one } });
  expect((await ask({ method: 'GET' })).text).toBe('1');
  expect((await ask({ method: 'GET' })).text).toBe('2');
  expect(sockets.size).toBe(1);
  expect(await ask({ method: 'GET' })).toMatchObject({
    text: '4',
    headers: { 'x-redrive-attempts': '1' },
  });
  expect(router.health()['one']).toMatchObject({ failures: 0 });
});

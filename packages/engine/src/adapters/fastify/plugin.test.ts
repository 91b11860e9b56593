import { once } from 'node:events';
import { connect } from 'node:http2';
import { PassThrough, Readable } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type AuditEntry, type IdempotencyStore, memoryIdempotency } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { fastifyIdempotency, type FastifyIdempotencyOptions } from './index.ts';

/** A second, which is the default, may be too short on a busy machine. */
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 20_000 });

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

interface Post {
  key?: string | string[] | null;
  user?: string;
  url?: string;
  body?: string;
  type?: string;
  method?: 'POST' | 'PATCH' | 'PUT' | 'GET' | 'DELETE';
}

type Respond = (n: number, request: FastifyRequest, reply: FastifyReply) => unknown;

/** A shop: each order that is made is an effect. */
async function shop(
  options: Partial<FastifyIdempotencyOptions> = {},
  respond?: Respond,
  prepare?: (app: FastifyInstance) => unknown,
) {
  const clock = virtualClock();
  const store = memoryIdempotency({ clock });
  const events: AuditEntry[] = [];
  const orders: unknown[] = [];
  const app = fastify();
  apps.push(app);
  app.addHook('onRequest', async (request, reply) => {
    if (request.headers['x-user'] === 'nobody') return reply.code(401).send('who are you?');
    return undefined;
  });
  await app.register(fastifyIdempotency, {
    store,
    clock,
    principal: (request) => String(request.headers['x-user']),
    audit: (event) => void events.push(event),
    ...options,
  });
  await prepare?.(app);
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    orders.push(request.body);
    const n = orders.length;
    const own = await respond?.(n, request, reply);
    return own ?? reply.code(201).header('location', `/orders/${n}`).send({ order: n });
  };
  app.route({ method: ['POST', 'PATCH', 'PUT', 'GET', 'DELETE'], url: '/orders', handler });
  app.post('/orders/:id/pay', handler);
  app.post('/free', { config: { idempotency: false } }, handler);
  app.post('/strict', { config: { idempotency: { required: true } } }, handler);
  await app.ready();
  const post = async (given: Post = {}) => {
    const { key = 'k-1', user = 'ada', url = '/orders', body = '{"n":1}', ...rest } = given;
    const { type = 'application/json', method = 'POST' } = rest;
    const hasBody = method !== 'GET' && body !== '';
    const answer = await app.inject({
      method,
      url,
      headers: {
        'x-user': user,
        ...(key === null ? {} : { 'idempotency-key': key as string }),
        ...(hasBody ? { 'content-type': type } : {}),
      },
      ...(hasBody ? { payload: body } : {}),
    });
    const { statusCode: status, headers } = answer;
    const isJson = String(headers['content-type']).includes('json');
    const said: unknown = isJson && answer.body !== '' ? JSON.parse(answer.body) : answer.body;
    return { status, headers, body: said, raw: answer.rawPayload };
  };
  return { app, post, orders, clock, store, events, actions: () => events.map((e) => e['action']) };
}

describe('the Fastify plugin', () => {
  it('has the work done once, and sends the same response to each retry', async () => {
    const { post, orders, events } = await shop();
    const first = await post();
    const second = await post({ key: '"k-1"' });
    expect(first).toMatchObject({ status: 201, body: { order: 1 } });
    expect(first.headers).not.toHaveProperty('idempotency-replayed');
    expect(second).toMatchObject({
      status: 201,
      body: { order: 1 },
      headers: {
        location: '/orders/1',
        'content-type': 'application/json; charset=utf-8',
        'content-length': '11',
        'idempotency-replayed': 'true',
      },
    });
    expect(orders).toEqual([{ n: 1 }]);
    expect(events.map(({ action, operation }) => [action, operation])).toEqual([
      ['record', 'POST /orders'],
      ['hit', 'POST /orders'],
    ]);
  });

  it('has the work done once for 20 requests at the same time', async () => {
    const refused = Promise.withResolvers<void>();
    const { post, orders } = await shop({}, () => refused.promise);
    const answers: Awaited<ReturnType<typeof post>>[] = [];
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const answer = await post();
        answers.push(answer);
        if (answers.length === 19) refused.resolve();
      }),
    );
    expect(orders).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    for (const answer of answers.slice(0, 19)) {
      expect(answer).toMatchObject({
        status: 409,
        body: { code: 'IDEMPOTENCY_CONFLICT' },
        headers: {
          'retry-after': '5',
          'content-type': 'application/problem+json; charset=utf-8',
        },
      });
    }
  });

  it.each<[string, Post]>([
    ['body', { body: '{"n":2}' }],
    ['spacing in the body', { body: '{"n": 1}' }],
    ['query', { url: '/orders?dry=1' }],
  ])('answers 422 where the key comes with another %s', async (_, change) => {
    const { post, orders } = await shop();
    await post();
    expect(await post(change)).toMatchObject({
      status: 422,
      body: { code: 'IDEMPOTENCY_MISMATCH' },
    });
    expect(orders).toHaveLength(1);
  });

  it('answers 422 where the key of one order comes with another order', async () => {
    const { post, orders } = await shop();
    await post({ url: '/orders/1/pay' });
    expect((await post({ url: '/orders/2/pay' })).status).toBe(422);
    expect((await post({ url: '/orders/1/pay' })).headers).toHaveProperty('idempotency-replayed');
    expect(orders).toHaveLength(1);
  });

  it.each<[string, Post]>([
    ['principal', { user: 'bob' }],
    ['route', { url: '/orders/1/pay' }],
    ['method', { method: 'PATCH' }],
    ['key', { key: 'k-2' }],
  ])('does not replay the response to another %s', async (_, change) => {
    const { post, orders } = await shop();
    await post();
    expect((await post(change)).headers).not.toHaveProperty('idempotency-replayed');
    expect(orders).toHaveLength(2);
  });

  it('leaves other methods, other routes and requests without a key alone', async () => {
    const { post, orders } = await shop();
    for (const change of [
      { method: 'GET' },
      { method: 'PUT' },
      { method: 'DELETE' },
      { url: '/free' },
      { key: null },
    ] as Post[]) {
      orders.length = 0;
      await post(change);
      expect((await post(change)).status).toBe(201);
      expect(orders).toHaveLength(2);
    }
  });

  it('takes requests without a body', async () => {
    const { post, orders } = await shop();
    for (let i = 0; i < 2; i++) expect((await post({ body: '' })).status).toBe(201);
    expect(orders).toEqual([undefined]);
    expect((await post()).status).toBe(422);
  });

  it('refuses a key that cannot be read, and a missing one where it is required', async () => {
    const { post, orders } = await shop({ describedBy: 'https://docs.example/keys' });
    for (const key of ['', 'a, b', 'x'.repeat(256)]) {
      expect(await post({ key })).toMatchObject({
        status: 400,
        body: { code: 'IDEMPOTENCY_KEY_INVALID' },
      });
    }
    expect(await post({ url: '/strict', key: null })).toMatchObject({
      status: 400,
      body: { code: 'IDEMPOTENCY_KEY_MISSING', type: 'https://docs.example/keys' },
      headers: { link: '<https://docs.example/keys>; rel="describedby"; type="text/html"' },
    });
    const strict = await shop({ required: true });
    expect((await strict.post({ key: null })).status).toBe(400);
    expect((await strict.post({ key: null, method: 'GET' })).status).toBe(201);
    expect((await strict.post({ key: null, url: '/free' })).status).toBe(201);
    expect(orders).toHaveLength(0);
  });

  it('takes two headers for no key', async () => {
    const { app } = await shop();
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const headers = new Headers({ 'x-user': 'ada' });
    headers.append('idempotency-key', 'a');
    headers.append('idempotency-key', 'b');
    const answer = await fetch(`${url}/orders`, { method: 'POST', headers });
    expect(await answer.json()).toMatchObject({ code: 'IDEMPOTENCY_KEY_INVALID' });
  });

  it('throws refusals to the error handler of the app where that was asked for', async () => {
    class Own extends Error {}
    const { post } = await shop({ refuse: ({ code }) => new Own(code) }, undefined, (app) =>
      app.setErrorHandler((error, _, reply) =>
        reply.code(418).send({ own: error instanceof Own, said: (error as Error).message }),
      ),
    );
    await post();
    expect(await post({ body: '{}' })).toMatchObject({
      status: 418,
      body: { own: true, said: 'IDEMPOTENCY_MISMATCH' },
    });
  });
});

describe('authentication', () => {
  it('comes before any replay, in a hook of the app', async () => {
    const { post, orders } = await shop({ principal: () => 'everybody' });
    await post();
    expect((await post({ user: 'nobody' })).status).toBe(401);
    expect((await post()).headers).toHaveProperty('idempotency-replayed');
    expect(orders).toHaveLength(1);
  });

  it('comes before any replay, in a preHandler of the route', async () => {
    let isRevoked = false;
    const { post } = await shop({}, undefined, (app) => {
      const preHandler = async (_: FastifyRequest, reply: FastifyReply) =>
        isRevoked ? reply.code(403).send('revoked') : undefined;
      app.post('/guarded', { preHandler }, async () => 'secret');
      app.post('/twice', { preHandler: [async () => undefined, preHandler] }, async () => 'secret');
    });
    for (const url of ['/guarded', '/twice']) {
      isRevoked = false;
      expect((await post({ url })).body).toBe('secret');
      expect((await post({ url })).headers).toHaveProperty('idempotency-replayed');
      // The same client with the same key, which may not ask any more.
      isRevoked = true;
      expect(await post({ url })).toMatchObject({ status: 403, body: 'revoked' });
    }
  });

  it('must have named somebody', async () => {
    const { post, orders } = await shop({ principal: () => '' });
    expect(await post()).toMatchObject({ status: 500, body: { code: 'INVALID_CONFIG' } });
    expect((await post({ key: null })).status).toBe(201);
    expect(orders).toHaveLength(1);
  });

  it('may take its time to name somebody', async () => {
    const { post, orders } = await shop({
      principal: async ({ headers }) => String(headers['x-user']),
    });
    await post();
    await post();
    expect(orders).toHaveLength(1);
  });
});

describe('the key', () => {
  it.each([500, 503, 408, 425, 429])('is free after %i', async (status) => {
    const { post, orders } = await shop({}, (n, _, reply) =>
      n === 1 ? reply.code(status).send({ no: 'not now' }) : undefined,
    );
    expect(await post()).toMatchObject({ status, body: { no: 'not now' } });
    expect((await post()).status).toBe(201);
    expect(orders).toHaveLength(2);
  });

  it('is free after a handler that throws, at once or later', async () => {
    for (const respond of [
      (n: number) => {
        if (n === 1) throw new Error('out of stock');
      },
      async (n: number) => {
        await Promise.resolve();
        if (n === 1) throw new Error('out of stock');
      },
    ]) {
      const { post, orders } = await shop({}, respond);
      expect((await post()).status).toBe(500);
      expect((await post()).status).toBe(201);
      expect(orders).toHaveLength(2);
    }
  });

  it('is used after a refusal of the handler', async () => {
    const { post, orders } = await shop({}, (_, __, reply) => reply.code(404).send('no such cart'));
    await post();
    expect(await post()).toMatchObject({ status: 404, body: 'no such cart' });
    expect(orders).toHaveLength(1);
  });

  it('is refused where the store cannot be asked', async () => {
    const store = {
      ...memoryIdempotency(),
      claim: () => {
        throw new Error('db.internal is away');
      },
    };
    const { post, orders } = await shop({ store, clock: undefined });
    const answer = await post();
    expect(answer).toMatchObject({
      status: 503,
      body: { code: 'IDEMPOTENCY_STORE_FAILED' },
      headers: { 'retry-after': '5' },
    });
    expect(JSON.stringify(answer)).not.toContain('db.internal');
    expect(orders).toHaveLength(0);
  });

  it('gives the handler its claim, and nothing without a key', async () => {
    const claims: FastifyRequest['idempotency'][] = [];
    const { post } = await shop({}, (_, request) => void claims.push(request.idempotency));
    await post();
    await post({ key: null });
    expect(claims).toHaveLength(2);
    expect(claims[0]?.signal).toBeInstanceOf(AbortSignal);
    expect(claims[0]?.fencingToken).toBe(1);
    expect(claims[1]).toBeNull();
  });
});

describe('a handler that is overtaken', () => {
  /** A timeout answers in place of the handler, which goes on. */
  async function overtaken(end: (reply: FastifyReply) => unknown) {
    const release = Promise.withResolvers<void>();
    const s = await shop({}, async (n, _, reply) => {
      if (n > 1) return undefined;
      setImmediate(() => void reply.code(503).send({ code: 'TOO_SLOW' }));
      await release.promise;
      return end(reply);
    });
    expect((await s.post()).status).toBe(503);
    expect((await s.post()).status).toBe(409);
    release.resolve();
    return s;
  }

  it('keeps its key, and is not run again once its work is done', async () => {
    const { post, orders } = await overtaken(() => ({ order: 1 }));
    await until(async () =>
      expect(await post()).toMatchObject({
        status: 410,
        body: { code: 'RESULT_NOT_STORED', reason: 'the handler ended after its request' },
      }),
    );
    expect(orders).toHaveLength(1);
  });

  it('frees its key once it fails', async () => {
    const { post, orders } = await overtaken(() => {
      throw new Error('out of stock');
    });
    await until(async () => expect((await post()).status).toBe(201));
    expect(orders).toHaveLength(2);
  });
});

describe('HTTP/2', () => {
  it('has bodies without a length, which are compared too', async () => {
    const app = fastify({ http2: true });
    apps.push(app as unknown as FastifyInstance);
    let effects = 0;
    await app.register(fastifyIdempotency, {
      store: memoryIdempotency(),
      principal: () => 'ada',
    });
    app.post('/orders', async () => (effects += 1));
    const client = connect(await app.listen({ port: 0, host: '127.0.0.1' }));
    const post = async (body: string) => {
      const request = client.request({
        ':method': 'POST',
        ':path': '/orders',
        'content-type': 'application/json',
        'idempotency-key': 'k-1',
      });
      request.end(body);
      const [headers] = (await once(request, 'response')) as [{ ':status': number }];
      request.resume();
      return headers[':status'];
    };
    expect([await post('{"n":1}'), await post('{"n":1}')]).toEqual([200, 200]);
    expect(await post('{"n":2}')).toBe(422);
    expect(effects).toBe(1);
    client.close();
  });
});

describe('a response that is overtaken while its stream is read', () => {
  it('is recorded, since its handler is done', async () => {
    const stream = new PassThrough();
    const replies: FastifyReply[] = [];
    const { post, orders } = await shop({}, (_, __, reply) => {
      replies.push(reply);
      return reply.code(201).type('text/plain').send(stream);
    });
    const first = post();
    await until(() => expect(stream.listenerCount('readable')).toBeGreaterThan(0));
    void replies[0]?.code(503).send('too slow');
    expect((await first).status).toBe(503);
    stream.end('done');
    await until(async () => expect(await post()).toMatchObject({ status: 201, body: 'done' }));
    expect(orders).toHaveLength(1);
  });
});

describe('payloads', () => {
  const bytes = Buffer.from(Uint8Array.from({ length: 1000 }, (_, i) => 255 - (i % 256)));

  it.each<[string, () => unknown, Buffer]>([
    ['a text', () => 'grüße', Buffer.from('grüße')],
    ['bytes', () => bytes, bytes],
    ['a typed array', () => new Uint8Array(bytes), bytes],
    ['a stream', () => Readable.from([bytes.subarray(0, 7), bytes.subarray(7)]), bytes],
    ['a stream of texts', () => Readable.from(['a', 'b']), Buffer.from('ab')],
    ['a web stream', () => new Blob([bytes]).stream(), bytes],
    ['a Response', () => new Response(bytes, { headers: { 'x-kind': 'web' } }), bytes],
    ['an empty Response', () => new Response(null, { status: 204 }), Buffer.alloc(0)],
  ])('may be %s', async (_, payload, expected) => {
    const { post, orders } = await shop({}, payload);
    const first = await post();
    const second = await post();
    expect(first.raw).toEqual(expected);
    expect(second.raw).toEqual(expected);
    expect(second.status).toBe(first.status);
    expect(second.headers['content-type']).toBe(first.headers['content-type']);
    expect(second.headers['x-kind']).toBe(first.headers['x-kind']);
    expect(second.headers['idempotency-replayed']).toBe('true');
    expect(orders).toHaveLength(1);
  });

  it('may be none', async () => {
    const { post } = await shop({}, (_, __, reply) => reply.code(204).send());
    for (let i = 0; i < 2; i++) {
      const { status, raw, headers } = await post();
      expect([status, raw.length, headers['content-type']]).toEqual([204, 0, undefined]);
    }
  });

  it.each<[string, () => unknown]>([
    ['a text', () => 'x'.repeat(100)],
    ['a stream', () => Readable.from(Array.from({ length: 100 }, () => 'x'))],
    ['a web stream', () => new Blob(['x'.repeat(100)]).stream()],
  ])('over the limit are sent whole, and a retry is told: %s', async (_, payload) => {
    const { post, orders } = await shop({ maxResponseBytes: 99 }, (__, ___, reply) =>
      reply.code(201).header('location', '/orders/1').send(payload()),
    );
    expect((await post()).raw.toString()).toBe('x'.repeat(100));
    expect(await post()).toMatchObject({
      status: 410,
      headers: { location: '/orders/1' },
      body: {
        code: 'RESULT_NOT_STORED',
        original_status: 201,
        reason: 'its body is over the limit of 99 bytes',
      },
    });
    expect(orders).toHaveLength(1);
  });

  it('at the limit are kept', async () => {
    const { post } = await shop({ maxResponseBytes: 99 }, () => 'x'.repeat(99));
    await post();
    expect((await post()).status).toBe(200);
  });

  it('that are streams of events are sent as they come', async () => {
    const stream = new PassThrough();
    const { app, post, orders } = await shop({}, (_, __, reply) =>
      reply.type('text/event-stream').send(stream),
    );
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const headers = {
      'x-user': 'ada',
      'idempotency-key': 'k-1',
      'content-type': 'application/json',
    };
    stream.write('data: 1\n\n');
    const answer = await fetch(`${url}/orders`, { method: 'POST', headers, body: '{"n":1}' });
    const reader = answer.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('data: 1\n\n');
    expect(await post()).toMatchObject({
      status: 410,
      body: { reason: 'it is a stream of events' },
    });
    stream.end();
    await reader?.cancel();
    expect(orders).toHaveLength(1);
  });

  it('that break while they are read free the key', async () => {
    const { post, orders } = await shop({}, (n) =>
      n > 1
        ? undefined
        : new Readable({
            read() {
              this.destroy(new Error('the disk is gone'));
            },
          }),
    );
    expect((await post()).status).toBe(500);
    expect((await post()).status).toBe(201);
    expect(orders).toHaveLength(2);
  });

  it('that Fastify cannot send are an error, as without a key', async () => {
    const { post } = await shop({}, (_, __, reply) => reply.serializer(() => 7 as never).send({}));
    expect((await post()).status).toBe(500);
  });

  it('of requests over the limit of Fastify are refused by Fastify', async () => {
    const { post, orders } = await shop();
    const { status } = await post({ body: JSON.stringify('x'.repeat(1024 * 1024)) });
    expect(status).toBe(413);
    expect(orders).toHaveLength(0);
  });

  it('of requests that no parser reads are refused', async () => {
    const { post, orders } = await shop({}, undefined, (app) =>
      app.addContentTypeParser('multipart/form-data', (_, __, done) => done(null)),
    );
    const type = 'multipart/form-data';
    expect(await post({ type })).toMatchObject({
      status: 500,
      body: { code: 'IDEMPOTENCY_BODY_UNAVAILABLE' },
    });
    expect((await post({ type, key: null })).status).toBe(201);
    expect(orders).toHaveLength(1);
  });

  it('of requests may be changed by hooks before: the parsed bytes are compared', async () => {
    const { post } = await shop({}, undefined, (app) => {
      app.addHook('preParsing', (_, __, payload, done) => {
        const upper = new PassThrough();
        payload.on('data', (piece: Buffer) => upper.write(piece.toString().toUpperCase()));
        payload.on('end', () => upper.end());
        done(null, Object.assign(upper, { receivedEncodedLength: 7 }));
      });
    });
    await post({ body: '{"n":1}' });
    expect((await post({ body: '{"N":1}' })).headers).toHaveProperty('idempotency-replayed');
  });
});

describe('headers of responses', () => {
  it('are replayed but for cookies, and those of other plugins are the present ones', async () => {
    let request = 0;
    const { post } = await shop(
      {},
      (_, __, reply) =>
        reply
          .header('set-cookie', 'session=1')
          .header('link', ['<a>', '<b>'])
          .type('text/csv')
          .send('a,b'),
      (app) =>
        app.addHook('onRequest', async (_, reply) => {
          void reply.header('x-request', String((request += 1))).type('text/html');
        }),
    );
    expect((await post()).headers).toMatchObject({ 'set-cookie': 'session=1', 'x-request': '1' });
    const { headers, body } = await post();
    expect(headers).not.toHaveProperty('set-cookie');
    expect(headers).toMatchObject({ link: ['<a>', '<b>'], 'x-request': '2' });
    expect(headers['content-type']).toContain('text/csv');
    expect(body).toBe('a,b');
  });

  it('from the store cannot add headers of their own', async () => {
    const memory = memoryIdempotency();
    const text = JSON.stringify({
      status: 200,
      headers: [
        ['x-note', 'a\r\nset-cookie: session=1'],
        ['set-cookie', 'session=1'],
        ['__proto__', 'polluted'],
        ['x-good', 'yes'],
      ],
      text: 'stored',
    });
    const store: IdempotencyStore = {
      ...memory,
      record: (key, owner, record) =>
        memory.record(key, owner, { ...record, outcome: { kind: 'value', text } }),
    };
    const { post } = await shop({ store, clock: undefined });
    await post();
    const { status, headers, body } = await post();
    expect({ status, body }).toEqual({ status: 200, body: 'stored' });
    expect(headers).toMatchObject({ 'x-good': 'yes' });
    expect(headers).not.toHaveProperty('set-cookie');
    expect(headers).not.toHaveProperty('x-note');
  });
});

describe('a client that goes away', () => {
  /** Sends a request, goes away while the handler runs, and lets it end. */
  async function leaving(respond: (reply: FastifyReply) => unknown) {
    // Not the reply itself, which is a promise.
    const arrived = Promise.withResolvers<FastifyReply['raw']>();
    const release = Promise.withResolvers<void>();
    const s = await shop({}, async (n, _, reply) => {
      if (n > 1) return undefined;
      arrived.resolve(reply.raw);
      await release.promise;
      return respond(reply);
    });
    const url = await s.app.listen({ port: 0, host: '127.0.0.1' });
    const client = new AbortController();
    const headers = {
      'x-user': 'ada',
      'idempotency-key': 'k-1',
      'content-type': 'application/json',
    };
    const sending = fetch(`${url}/orders`, {
      method: 'POST',
      headers,
      body: '{"n":1}',
      signal: client.signal,
    });
    sending.catch(() => undefined);
    const raw = await arrived.promise;
    const closed = once(raw, 'close');
    client.abort();
    await closed;
    release.resolve();
    await until(() => expect(s.actions()).toEqual(['record']));
    return s;
  }

  it.each<[string, (reply: FastifyReply) => unknown]>([
    ['returns', () => ({ order: 1 })],
    ['sends', (reply) => reply.send({ order: 1 })],
  ])('finds its response when it comes back, where the handler %s it', async (_, respond) => {
    const { post, orders } = await leaving(respond);
    expect(await post()).toMatchObject({
      status: 200,
      body: { order: 1 },
      headers: { 'idempotency-replayed': 'true' },
    });
    expect(orders).toHaveLength(1);
  });

  it('does not leave a key that is never free, where the handler gives nothing', async () => {
    // Not the reply itself, which is a promise.
    const arrived = Promise.withResolvers<FastifyReply['raw']>();
    const release = Promise.withResolvers<void>();
    const { app, post, actions, orders } = await shop({}, undefined, (scope) =>
      scope.post('/silent', async (_, reply) => {
        arrived.resolve(reply.raw);
        await release.promise;
      }),
    );
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const client = new AbortController();
    const headers = { 'x-user': 'ada', 'idempotency-key': 'k-1' };
    const sending = fetch(`${url}/silent`, { method: 'POST', headers, signal: client.signal });
    sending.catch(() => undefined);
    const raw = await arrived.promise;
    const closed = once(raw, 'close');
    client.abort();
    await closed;
    release.resolve();
    await until(() => expect(actions()).toEqual(['record']));
    expect(await post({ url: '/silent', body: '' })).toMatchObject({
      status: 410,
      body: { reason: 'its client had gone' },
    });
    expect(orders).toHaveLength(0);
  });

  it('is not waited for where the handler wrote the response by itself', async () => {
    const { app, post, actions } = await shop({}, undefined, (scope) =>
      scope.post('/raw', (_, reply) => {
        void reply.hijack();
        reply.raw.writeHead(202).end('raw');
      }),
    );
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const headers = { 'x-user': 'ada', 'idempotency-key': 'k-1' };
    const answer = await fetch(`${url}/raw`, { method: 'POST', headers });
    expect(await answer.text()).toBe('raw');
    await until(() => expect(actions()).toEqual(['record']));
    expect(await post({ url: '/raw', body: '' })).toMatchObject({
      status: 410,
      body: { original_status: 202, reason: 'the handler wrote it by itself' },
    });
  });
});

describe('the options', () => {
  it.each<[object, string]>([
    [{ principal: 7 }, 'NOT_A_FUNCTION'],
    [{ store: {} }, 'INVALID_CONFIG'],
    [{ maxRequestBytes: 7 }, 'INVALID_CONFIG'],
    [{ methods: ['GET'] }, 'INVALID_CONFIG'],
  ])('are checked when the plugin is registered: %o', async (change, code) => {
    await expect(shop(change)).rejects.toMatchObject({ code });
    for (const app of apps.splice(0)) await app.close().catch(() => undefined);
  });
});

import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import type { AuditEntry } from '../../audit/audit-events.ts';
import { virtualClock } from '../../virtual-clock.ts';
import { memoryIdempotency } from '../memory.ts';
import type { IdempotencyStore } from '../store.ts';
import { idempotencyClaim, idempotentHandler, type IdempotentHandlerOptions } from './handler.ts';

/** A second, which is the default, may be too short on a busy machine. */
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 20_000 });

interface Post {
  key?: string;
  user?: string;
  url?: string;
  body?: BodyInit;
  method?: string;
  headers?: Record<string, string>;
}

function post({
  key = 'k-1',
  user = 'ada',
  url = '/orders',
  body = '{"n":1}',
  ...rest
}: Post = {}) {
  const { method = 'POST', headers } = rest;
  return new Request(`https://shop.example${url}`, {
    method,
    headers: { 'x-user': user, ...(key === '' ? {} : { 'idempotency-key': key }), ...headers },
    ...(method === 'GET' || method === 'HEAD' ? {} : { body }),
  });
}

type Options = Partial<IdempotentHandlerOptions<Request, []>>;

/** A shop: each order that is made is an effect. */
function shop(options: Options = {}, respond?: (n: number, request: Request) => unknown) {
  const orders: string[] = [];
  const clock = virtualClock();
  const store = memoryIdempotency({ clock });
  const events: AuditEntry[] = [];
  const handler = idempotentHandler(
    async (request: Request) => {
      orders.push(await request.text());
      const n = orders.length;
      const own = (await respond?.(n, request)) as Response | undefined;
      return (
        own ?? Response.json({ order: n }, { status: 201, headers: { location: `/orders/${n}` } })
      );
    },
    {
      store,
      clock,
      principal: (request) => request.headers.get('x-user') ?? '',
      audit: (event) => void events.push(event),
      ...options,
    },
  );
  return {
    handler,
    orders,
    clock,
    store,
    actions: () => events.map(({ action }) => action),
    events,
  };
}

async function shown(response: Response) {
  const { status, headers } = response;
  const type = headers.get('content-type') ?? '';
  const text = await response.text();
  return { status, headers, body: (type.includes('json') ? JSON.parse(text) : text) as unknown };
}

function withResolvers<T = void>() {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((settle, fail) => {
    resolve = settle;
    reject = fail;
  });
  return { promise, resolve, reject };
}

describe('a handler with idempotency keys', () => {
  it('does its work once, and sends the same response to each retry', async () => {
    const { handler, orders, actions, events } = shop();
    const first = await shown(await handler(post()));
    const second = await shown(await handler(post()));
    expect(first).toMatchObject({ status: 201, body: { order: 1 } });
    expect(second).toMatchObject({ status: 201, body: { order: 1 } });
    expect(second.headers.get('location')).toBe('/orders/1');
    expect(second.headers.get('content-type')).toBe('application/json');
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect(orders).toEqual(['{"n":1}']);
    expect(actions()).toEqual(['record', 'hit']);
    expect(events[0]).toMatchObject({
      retry_category: 'API_REQUEST',
      operation: 'POST /orders',
    });
  });

  it('does its work once for 20 requests at the same time', async () => {
    const refused = withResolvers();
    const { handler, orders } = shop({}, () => refused.promise);
    const statuses: number[] = [];
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        statuses.push((await handler(post())).status);
        if (statuses.length === 19) refused.resolve();
      }),
    );
    expect(orders).toHaveLength(1);
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(19);
  });

  it('gives all of them the response where they may wait', async () => {
    const release = withResolvers();
    const s = shop({ whileRunning: 'wait' }, () => release.promise);
    const all = Promise.all(
      Array.from({ length: 20 }, async () => (await shown(await s.handler(post()))).body),
    );
    await until(() => expect(s.actions()).toHaveLength(19));
    release.resolve();
    await s.clock.advance(10_000);
    expect(new Set((await all).map((body) => JSON.stringify(body)))).toEqual(
      new Set(['{"order":1}']),
    );
    expect(s.orders).toHaveLength(1);
  });

  it('takes "abc" and abc for one key', async () => {
    const { handler, orders } = shop();
    await handler(post({ key: 'abc' }));
    await handler(post({ key: '"abc"' }));
    expect(orders).toHaveLength(1);
  });

  it('answers 409 with Retry-After while the first request is processed', async () => {
    const release = withResolvers();
    const { handler, orders } = shop({}, () => release.promise);
    const first = handler(post());
    await until(() => expect(orders).toHaveLength(1));
    const second = await shown(await handler(post()));
    expect(second).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_CONFLICT' } });
    expect(second.headers.get('retry-after')).toBe('5');
    expect(second.headers.get('content-type')).toBe('application/problem+json');
    release.resolve();
    expect((await first).status).toBe(201);
    expect((await handler(post())).headers.get('idempotency-replayed')).toBe('true');
  });

  it.each<[string, Post]>([
    ['body', { body: '{"n":2}' }],
    ['spacing in the body', { body: '{"n": 1}' }],
    ['query', { url: '/orders?dry=1' }],
  ])('answers 422 where the key comes with another %s', async (_, change) => {
    const { handler, orders } = shop();
    await handler(post());
    const answer = await shown(await handler(post(change)));
    expect(answer).toMatchObject({
      status: 422,
      body: { code: 'IDEMPOTENCY_MISMATCH', status: 422, title: 'Unprocessable Content' },
    });
    expect(orders).toHaveLength(1);
  });

  it.each<[string, Post]>([
    ['principal', { user: 'bob' }],
    ['path', { url: '/invoices' }],
    ['method', { method: 'PATCH' }],
    ['key', { key: 'k-2' }],
    ['key by case', { key: 'K-1' }],
  ])('does not replay the response to another %s', async (_, change) => {
    const { handler, orders } = shop();
    await handler(post());
    const answer = await handler(post(change));
    expect(answer.status).toBe(201);
    expect(answer.headers.get('idempotency-replayed')).toBeNull();
    expect(orders).toHaveLength(2);
  });

  it('keeps principals apart whose parts read the same when joined', async () => {
    const { handler, orders } = shop();
    await handler(post({ user: 'ada', key: 'b:c' }));
    await handler(post({ user: 'ada:b', key: 'c' }));
    expect(orders).toHaveLength(2);
  });

  it('does not show the key or the principal to the store', async () => {
    const keys: string[] = [];
    const memory = memoryIdempotency();
    const store: IdempotencyStore = {
      ...memory,
      claim(request) {
        keys.push(request.key);
        return memory.claim(request);
      },
    };
    await shop({ store, clock: undefined }).handler(post());
    expect(keys).toEqual([expect.stringMatching(/^[\da-f]{64}$/)]);
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'takes %s for a key and a principal like any other',
    async (name) => {
      const { handler, orders } = shop();
      await handler(post({ key: name, user: name }));
      const again = await handler(post({ key: name, user: name }));
      expect(again.headers.get('idempotency-replayed')).toBe('true');
      expect(orders).toHaveLength(1);
    },
  );
});

describe('the header', () => {
  it('may be left out unless it is required', async () => {
    const free = shop();
    await free.handler(post({ key: '' }));
    expect((await free.handler(post({ key: '' }))).status).toBe(201);
    expect(free.orders).toHaveLength(2);

    const strict = shop({ required: true, describedBy: 'https://docs.example/keys' });
    const answer = await shown(await strict.handler(post({ key: '' })));
    expect(answer).toMatchObject({
      status: 400,
      body: {
        type: 'https://docs.example/keys',
        title: 'Bad Request',
        status: 400,
        code: 'IDEMPOTENCY_KEY_MISSING',
      },
    });
    expect(answer.headers.get('link')).toBe(
      '<https://docs.example/keys>; rel="describedby"; type="text/html"',
    );
    expect(strict.orders).toHaveLength(0);
  });

  it.each(['', 'a, b', 'ö', 'x'.repeat(256)])('is refused where it is %j', async (header) => {
    const { handler, orders } = shop();
    const request = post({ key: '' });
    // A server hands it over as it came; `Headers` would trim it.
    Object.defineProperty(request, 'headers', {
      value: { get: (name: string) => (name === 'idempotency-key' ? header : 'ada') },
    });
    const answer = await shown(await handler(request));
    expect(answer).toMatchObject({ status: 400, body: { code: 'IDEMPOTENCY_KEY_INVALID' } });
    expect(orders).toHaveLength(0);
  });

  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'])('means nothing to %s', async (method) => {
    const { handler, orders } = shop({ required: true });
    for (let i = 0; i < 2; i++) expect((await handler(post({ method }))).status).toBe(201);
    expect(orders).toHaveLength(2);
  });

  it('is looked at for the methods that are named', async () => {
    const { handler, orders } = shop({ methods: ['PUT'] });
    for (let i = 0; i < 2; i++) await handler(post({ method: 'PUT' }));
    expect(orders).toHaveLength(1);
    for (let i = 0; i < 2; i++) await handler(post());
    expect(orders).toHaveLength(3);
  });
});

describe('the principal', () => {
  it('is asked before anything is replayed or refused', async () => {
    const refusal = () => new Response('who are you?', { status: 401 });
    let isKnown = true;
    const { handler, orders } = shop({
      required: true,
      principal: async (request) => (isKnown ? (request.headers.get('x-user') ?? '') : refusal()),
    });
    await handler(post());
    isKnown = false;
    for (const key of ['k-1', '', 'a, b']) {
      expect((await handler(post({ key }))).status).toBe(401);
    }
    expect(orders).toHaveLength(1);
  });

  it.each([
    ['nothing', undefined],
    ['an empty text', ''],
    ['a number', 7],
    ['an object', {}],
    ['a long text', 'x'.repeat(1025)],
  ])('must be a name, and not %s', async (_, principal) => {
    const { handler, orders } = shop({ principal: () => principal as string });
    await expect(handler(post())).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining('principal'),
    });
    expect(orders).toHaveLength(0);
  });
});

describe('the key', () => {
  it.each([500, 502, 503, 599, 408, 425, 429])('is free after %i', async (status) => {
    const { handler, orders, actions } = shop({}, (n) =>
      n === 1 ? new Response('not now', { status }) : undefined,
    );
    const failed = await shown(await handler(post()));
    expect(failed).toMatchObject({ status, body: 'not now' });
    expect((await handler(post())).status).toBe(201);
    expect(orders).toHaveLength(2);
    expect(actions()).toEqual(['record']);
  });

  it.each([200, 202, 302, 400, 404, 409, 422])('is used after %i', async (status) => {
    const { handler, orders } = shop({}, () => new Response('so it is', { status }));
    await handler(post());
    const again = await shown(await handler(post()));
    expect(again).toMatchObject({ status, body: 'so it is' });
    expect(orders).toHaveLength(1);
  });

  it.each([204, 205, 304])('is used after %i, which has no body', async (status) => {
    const { handler, orders } = shop({}, () => new Response(null, { status }));
    await handler(post());
    const again = await handler(post());
    expect([again.status, again.body]).toEqual([status, null]);
    expect(orders).toHaveLength(1);
  });

  it('is free after a handler that throws, whose error is thrown on', async () => {
    const crash = new Error('out of stock');
    const { handler, orders } = shop({}, (n) => {
      if (n === 1) throw crash;
    });
    await expect(handler(post())).rejects.toBe(crash);
    expect((await handler(post())).status).toBe(201);
    expect(orders).toHaveLength(2);
  });

  it('is free after a handler that gives no response', async () => {
    const { handler } = shop({}, (n) => (n === 1 ? {} : undefined));
    await expect(handler(post())).rejects.toThrow(TypeError);
    expect((await handler(post())).status).toBe(201);
  });

  it('is forgotten after a day, or after expiresIn', async () => {
    for (const [options, hours] of [
      [{}, 24],
      [{ expiresIn: '1h' }, 1],
    ] as const) {
      const { handler, orders, clock } = shop(options);
      await handler(post());
      await clock.advance(hours * 3_600_000 - 1);
      await handler(post());
      expect(orders).toHaveLength(1);
      await clock.advance(1);
      await handler(post());
      expect(orders).toHaveLength(2);
    }
  });

  it('is refused where the store cannot be asked, in words that say nothing of the store', async () => {
    let asked = 0;
    const down = () => {
      asked += 1;
      throw new Error('connect ECONNREFUSED db.internal:5432');
    };
    const store = { ...memoryIdempotency(), claim: down };
    const { handler, orders, clock } = shop({ store });
    const answering = handler(post());
    await until(() => expect(asked).toBeGreaterThan(0));
    await clock.advance(60_000);
    const answer = await shown(await answering);
    expect(answer).toMatchObject({ status: 503, body: { code: 'IDEMPOTENCY_STORE_FAILED' } });
    expect(answer.headers.get('retry-after')).toBe('5');
    expect(JSON.stringify(answer.body)).not.toContain('db.internal');
    expect(orders).toHaveLength(0);

    const open = shop({ store, whenStoreFails: 'run' });
    const unprotected = open.handler(post());
    await until(() => expect(asked).toBeGreaterThan(3));
    await open.clock.advance(60_000);
    expect((await unprotected).status).toBe(201);
  });

  it('is refused with 409 after a crash, where that was asked for', async () => {
    const { handler, clock, store } = shop({ afterCrash: 'conflict', lease: '1s' });
    const seen: string[] = [];
    const claim = store.claim;
    store.claim = (request) => {
      seen.push(request.key);
      return claim(request);
    };
    await handler(post());
    const key = seen[0] as string;
    await store.release(key);
    const crashed = { key, owner: 'x', fingerprint: '', leaseMs: 1000, takeOver: false };
    await store.claim(crashed);
    await clock.advance(1000);
    const answer = await shown(await handler(post()));
    expect(answer).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_ABANDONED' } });
    expect(answer.headers.get('retry-after')).toBeNull();
  });

  it.each([
    ['something else', { kind: 'value', text: '"text"' }],
    ['a failure', { kind: 'failure', text: '{"name":"Error","message":"x"}' }],
  ] as const)('is refused with 500 where %s was recorded under it', async (_, outcome) => {
    const memory = memoryIdempotency();
    const store = {
      ...memory,
      record: (key: string, owner: string) => memory.record(key, owner, { outcome }),
    };
    const { handler, orders } = shop({ store, clock: undefined });
    await handler(post());
    const answer = await shown(await handler(post()));
    expect(answer).toMatchObject({ status: 500, body: { code: 'IDEMPOTENCY_RECORD_INVALID' } });
    expect(orders).toHaveLength(1);
  });

  it('is refused where it was recorded as done without a value', async () => {
    const memory = memoryIdempotency();
    const outcome = { kind: 'unstored', text: 'too large' } as const;
    const store = {
      ...memory,
      record: (key: string, owner: string) => memory.record(key, owner, { outcome }),
    };
    const { handler } = shop({ store, clock: undefined });
    await handler(post());
    expect(await shown(await handler(post()))).toMatchObject({
      status: 410,
      body: { code: 'RESULT_NOT_STORED' },
    });
  });
});

describe('a claim that was lost', () => {
  /** Runs a request whose claim is cleared by an operator meanwhile. */
  async function lost(respond: () => unknown) {
    const release = withResolvers();
    const s = shop({ lease: '3s' }, async () => {
      await release.promise;
      return respond();
    });
    const keys: string[] = [];
    const claim = s.store.claim;
    s.store.claim = (request) => {
      keys.push(request.key);
      return claim(request);
    };
    const request = post();
    const answering = s.handler(request);
    answering.catch(() => undefined);
    await until(() => expect(s.orders).toHaveLength(1));
    await s.store.release(keys[0] as string);
    await s.clock.advance(2000);
    release.resolve();
    return { answering, request, ...s };
  }

  it('aborts the signal of the request, whose response is still sent', async () => {
    const { answering, request, actions } = await lost(() => undefined);
    expect((await answering).status).toBe(201);
    expect(idempotencyClaim(request)?.signal.aborted).toBe(true);
    expect(idempotencyClaim(request)?.fencingToken).toBe(1);
    expect(actions()).toEqual(['lost']);
  });

  it('does not hide a response that frees the key, nor an error', async () => {
    const busy = await lost(() => new Response(null, { status: 503 }));
    expect((await busy.answering).status).toBe(503);
    const crash = new Error('out of stock');
    const failed = await lost(() => {
      throw crash;
    });
    await expect(failed.answering).rejects.toBe(crash);
  });
});

describe('bodies', () => {
  it('get 413 where a request is over the limit, with a length or without', async () => {
    const { handler, orders } = shop({ maxRequestBytes: 7 });
    expect((await handler(post())).status).toBe(201);
    const sized = post({ key: 'k-2', body: '12345678', headers: { 'content-length': '8' } });
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(4)),
    });
    const endless = new Request('https://shop.example/orders', {
      method: 'POST',
      headers: { 'x-user': 'ada', 'idempotency-key': 'k-3' },
      body: stream,
      duplex: 'half',
    } as RequestInit);
    for (const request of [sized, post({ key: 'k-2', body: '12345678' }), endless]) {
      expect(await shown(await handler(request))).toMatchObject({
        status: 413,
        body: { code: 'IDEMPOTENCY_BODY_TOO_LARGE', limit_bytes: 7 },
      });
    }
    expect(orders).toHaveLength(1);
  });

  it('may be empty', async () => {
    const { handler, orders } = shop();
    for (let i = 0; i < 2; i++) await handler(post({ body: '' }));
    expect(orders).toEqual(['']);
  });

  it('must not be read before', async () => {
    const { handler } = shop();
    const request = post();
    await request.text();
    await expect(handler(request)).rejects.toMatchObject({ code: 'IDEMPOTENCY_BODY_UNAVAILABLE' });
  });

  it('of responses may be any bytes, in any pieces', async () => {
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => 255 - (i % 256));
    const { handler } = shop({}, () => {
      const pieces = [bytes.slice(0, 1), bytes.slice(1, 600), bytes.slice(600)];
      return new Response(new Blob(pieces).stream(), { headers: { 'x-kind': 'bytes' } });
    });
    for (let i = 0; i < 2; i++) {
      const answer = await handler(post());
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(bytes);
      expect(answer.headers.get('x-kind')).toBe('bytes');
    }
  });

  it('of responses over the limit are sent whole, and a retry is told that the work was done', async () => {
    const text = 'x'.repeat(100);
    const { handler, orders } = shop(
      { maxResponseBytes: 99 },
      () => new Response(text, { status: 201, headers: { location: '/orders/1' } }),
    );
    expect(await shown(await handler(post()))).toMatchObject({ status: 201, body: text });
    const again = await shown(await handler(post()));
    expect(again).toMatchObject({
      status: 410,
      body: {
        code: 'RESULT_NOT_STORED',
        original_status: 201,
        reason: 'its body is over the limit of 99 bytes',
      },
    });
    expect(again.headers.get('location')).toBe('/orders/1');
    expect(orders).toHaveLength(1);
  });

  it('of responses at the limit are kept', async () => {
    const { handler } = shop({ maxResponseBytes: 99 }, () => new Response('x'.repeat(99)));
    for (let i = 0; i < 2; i++) expect((await handler(post())).status).toBe(200);
  });

  it('that never end are sent as they come, and recorded as done at once', async () => {
    const { handler, orders } = shop({ maxResponseBytes: 10 }, () => {
      const body = new ReadableStream({
        pull: (controller) => controller.enqueue(new TextEncoder().encode('data: 1\n\n')),
      });
      return new Response(body, {
        headers: { 'content-type': 'Text/Event-Stream; charset=utf-8' },
      });
    });
    const reader = (await handler(post())).body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('data: 1\n\n');
    await reader?.cancel();
    expect(await shown(await handler(post()))).toMatchObject({
      status: 410,
      body: { reason: 'it is a stream of events' },
    });
    expect(orders).toHaveLength(1);
  });

  it('of endless responses without such a type are sent from the limit on', async () => {
    const { handler } = shop({ maxResponseBytes: 10 }, () => {
      const body = new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(8)),
      });
      return new Response(body);
    });
    const reader = (await handler(post())).body?.getReader();
    expect((await reader?.read())?.value).toHaveLength(8);
    await reader?.cancel();
    expect((await handler(post())).status).toBe(410);
  });

  it('that break while they are read free the key', async () => {
    const { handler } = shop({}, (n) => {
      if (n > 1) return undefined;
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(new Uint8Array(8));
          controller.error(new Error('the disk is gone'));
        },
      });
      return new Response(body);
    });
    await expect(handler(post())).rejects.toThrow('the disk is gone');
    expect((await handler(post())).status).toBe(201);
  });

  it('that the handler read itself are not kept', async () => {
    const { handler } = shop({}, async () => {
      const response = new Response('read');
      await response.text();
      return response;
    });
    await handler(post());
    expect(await shown(await handler(post()))).toMatchObject({
      status: 410,
      body: { reason: 'its body was read before' },
    });
  });
});

describe('headers of responses', () => {
  it('are replayed but for cookies, and the first client gets its cookies', async () => {
    const { handler } = shop({}, () => {
      const response = new Response('', { headers: { etag: '"7"', 'keep-alive': 'timeout=5' } });
      response.headers.append('set-cookie', 'session=1');
      response.headers.append('link', '<a>');
      response.headers.append('link', '<b>');
      return response;
    });
    expect((await handler(post())).headers.getSetCookie()).toEqual(['session=1']);
    const again = await handler(post());
    expect([...again.headers].filter(([name]) => name !== 'content-type')).toEqual([
      ['etag', '"7"'],
      ['idempotency-replayed', 'true'],
      ['link', '<a>, <b>'],
    ]);
  });
});

describe('a client that goes away', () => {
  it('finds its response when it comes back', async () => {
    const release = withResolvers();
    const { handler, orders } = shop({}, () => release.promise);
    const leaving = new AbortController();
    const request = new Request(post(), { signal: leaving.signal });
    const answering = handler(request);
    await until(() => expect(orders).toHaveLength(1));
    leaving.abort();
    release.resolve();
    await answering;
    expect((await handler(post())).headers.get('idempotency-replayed')).toBe('true');
    expect(orders).toHaveLength(1);
  });
});

describe('the options', () => {
  const good = { store: memoryIdempotency(), principal: () => 'ada' };

  it('are checked at once, all of them', () => {
    const bad = {
      ...good,
      store: {},
      required: 'yes',
      methods: ['GET'],
      maxResponseBytes: 9 * 1024 * 1024,
      maxRequestBytes: -1,
      describedBy: 'javascript:alert(1)',
      maxResultBytes: 3,
    } as never;
    expect(() => idempotentHandler(() => new Response(), bad)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        faults: expect.arrayContaining(
          [
            'store',
            'required',
            'methods',
            'maxResponseBytes',
            'maxRequestBytes',
            'describedBy',
            'maxResultBytes',
          ].map((path): unknown => expect.objectContaining({ path })),
        ),
      }),
    );
  });

  it.each([{ lease: '1ms' }, { whileRunning: 'later' }, { methods: 'POST' }, { audit: 7 }])(
    'are refused: %o',
    (change) => {
      const options = { ...good, ...change } as never;
      expect(() => idempotentHandler(() => new Response(), options)).toThrow(
        expect.objectContaining({ code: 'INVALID_CONFIG' }),
      );
    },
  );

  it('need functions', () => {
    const code = { code: 'NOT_A_FUNCTION' };
    expect(() => idempotentHandler(7 as never, good)).toThrow(expect.objectContaining(code));
    expect(() => idempotentHandler(() => new Response(), { store: good.store } as never)).toThrow(
      expect.objectContaining(code),
    );
  });

  it('keep the types of the handler', async () => {
    class OwnRequest extends Request {
      readonly user = 'ada';
    }
    const handler = idempotentHandler(
      (request: OwnRequest, context: { params: { id: string } }) =>
        Response.json([request.user, context.params.id]),
      { ...good, principal: (request) => request.user },
    );
    expectTypeOf(handler).parameters.toEqualTypeOf<[OwnRequest, { params: { id: string } }]>();
    const request = new OwnRequest(post());
    const answer = await handler(request, { params: { id: '7' } });
    expect(await answer.json()).toEqual(['ada', '7']);
  });
});

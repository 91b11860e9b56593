import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBreaker } from '../circuit/breaker.ts';
import type { RetryError } from '../errors.ts';
import type { Policy } from '../policy/policy-fields.ts';
import type { RetryEvent } from '../run/runtime.ts';
import { virtualClock } from '../virtual-clock.ts';
import type { ResponseError } from './response-error.ts';
import { retryFetch, type RetryFetchOptions } from './retry-fetch.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

const quick: Policy = { maxAttempts: 3, base: 0 };

/** What the server does with each request, one after the other; the last goes on. */
let script: Answer[] = [];
let received: { method: string; body: string; headers: IncomingMessage['headers'] }[] = [];
let url = '';
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += String(chunk)));
  request.on('end', () => {
    received.push({ method: request.method ?? '', body, headers: request.headers });
    const answer = script[Math.min(received.length, script.length) - 1];
    void answer?.(request, response);
  });
  request.on('error', () => {});
});

beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  received = [];
  script = [];
});

const status =
  (code: number, headers: Record<string, string> = {}, body = `status ${code}`): Answer =>
  (_, response) =>
    response.writeHead(code, headers).end(body);
const cutOff: Answer = (request) => request.socket.resetAndDestroy();

async function thrownBy(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable('it worked'),
    (error: unknown) => error,
  );
}

describe('retryFetch', () => {
  it('refuses a policy in the place of init, and shows the right one', async () => {
    const error = await thrownBy(retryFetch(url, { maxAttempts: 2, deadline: '1s' } as object));
    expect(error).toMatchObject({
      code: 'INVALID_CONFIG',
      faults: [{ path: 'init.maxAttempts' }, { path: 'init.deadline' }],
    });
    expect(String(error)).toContain(
      'init.maxAttempts: is a field of the policy, the third argument: retryFetch(input, {}, { maxAttempts: ... }).',
    );
    expect(received).toEqual([]);
  });

  it.each([408, 425, 429, 500, 502, 503, 504, 599])('tries again after a %i', async (code) => {
    script = [status(code), status(200)];
    const response = await retryFetch(url, undefined, quick);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('status 200');
    expect(received).toHaveLength(2);
  });

  it.each([200, 204, 304, 400, 401, 404, 409, 422])('returns a %i at once', async (code) => {
    script = [status(code, {}, '')];
    const events: string[] = [];
    const on = (event: RetryEvent) => events.push(event.type);
    for (const lastResponse of ['return', 'throw'] as const) {
      received = [];
      const response = await retryFetch(url, {}, quick, { lastResponse, on });
      expect(response.status).toBe(code);
      expect(received).toHaveLength(1);
    }
    expect(events).toEqual(['attempt', 'success', 'attempt', 'success']);
  });

  it('tries again after a network error', async () => {
    script = [cutOff, status(200)];
    expect((await retryFetch(url, undefined, quick)).status).toBe(200);
    expect(received).toHaveLength(2);
  });

  it('throws the last network error in a RetryError', async () => {
    script = [cutOff];
    const error = (await thrownBy(retryFetch(url, undefined, quick))) as RetryError;
    expect(error).toMatchObject({ name: 'RetryError', code: 'EXHAUSTED', attempts: 3 });
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  it('throws a mistake in the request as it is', async () => {
    await expect(retryFetch('http://')).rejects.toThrow(TypeError);
    await expect(retryFetch(url, { body: 'x' })).rejects.toThrow(/GET/);
  });

  it('takes a URL, a text or a Request', async () => {
    script = [status(200)];
    for (const input of [url, new URL(url), new Request(url)]) {
      expect((await retryFetch(input)).status).toBe(200);
    }
  });
});

describe('the last response', () => {
  it('is returned where it is still a failure, with its body', async () => {
    script = [status(503, {}, 'first'), status(503, {}, 'second'), status(500, {}, 'third')];
    const response = await retryFetch(url, undefined, quick);
    expect(response.status).toBe(500);
    expect(await response.text()).toBe('third');
  });

  it('is thrown instead where that is asked for', async () => {
    script = [status(503, {}, 'sorry')];
    const call = retryFetch(`${url}?token=secret`, {}, quick, { lastResponse: 'throw' });
    const error = (await thrownBy(call)) as RetryError;
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 3 });
    expect(error.message).toBe(
      `Gave up after 3 attempts (EXHAUSTED): GET ${url} answered 503 Service Unavailable.`,
    );
    const cause = error.cause as ResponseError;
    expect(cause).toMatchObject({ name: 'ResponseError', code: 'HTTP_503', status: 503 });
    expect(await cause.response.text()).toBe('sorry');
  });

  it('is returned or thrown as it is where the policy does not retry it', async () => {
    script = [status(503)];
    const policy: Policy = { ...quick, neverOn: ['503'] };
    expect((await retryFetch(url, {}, policy)).status).toBe(503);
    const error = await thrownBy(retryFetch(url, {}, policy, { lastResponse: 'throw' }));
    expect(error).toMatchObject({ name: 'ResponseError', status: 503 });
    expect(received).toHaveLength(2);
  });

  it('is not returned once its body was cancelled', async () => {
    const breaker = createBreaker({ failures: 1 });
    script = [status(503)];
    const policy: Policy = { ...quick, maxUncounted: 0 };
    const error = (await thrownBy(retryFetch(url, {}, policy, { breaker }))) as RetryError;
    expect(error).toMatchObject({ code: 'CIRCUIT_OPEN', attempts: 1 });
    expect((error.cause as ResponseError).isReleased).toBe(true);
  });

  it('has no more than host and path in the message', async () => {
    script = [status(500)];
    const fetch = () => Promise.resolve(new Response('', { status: 500 }));
    for (const [given, shown] of [
      ['https://me:pw@example.com/a?key=1#x', 'https://example.com/a'],
      ['/relative?key=1', '/relative'],
    ] as const) {
      const options: RetryFetchOptions = { fetch, lastResponse: 'throw' };
      const error = await thrownBy(retryFetch(given, {}, { maxAttempts: 1 }, options));
      expect((error as RetryError).message).toContain(`GET ${shown} answered 500.`);
    }
  });
});

describe('what a policy says of statuses', () => {
  it('holds: another status that it names is retried', async () => {
    script = [status(404), status(200)];
    expect((await retryFetch(url, {}, { ...quick, retryOn: ['404'] })).status).toBe(200);
    received = [];
    script = [status(409), status(200)];
    expect((await retryFetch(url, {}, { ...quick, retryOn: ['any'] })).status).toBe(200);
  });

  it('holds: overrides are found by status', async () => {
    script = [status(429)];
    const overrides = { 429: { maxAttempts: 5 } };
    expect((await retryFetch(url, {}, { ...quick, overrides })).status).toBe(429);
    expect(received).toHaveLength(5);
  });

  it('holds: a Retry-After is a floor, and one that is too long ends the call', async () => {
    const clock = virtualClock();
    const waits: number[] = [];
    const on = { wait: ({ delayMs }: { delayMs: number }) => waits.push(delayMs) };
    const answers = [
      new Response('', { status: 503, headers: { 'retry-after': '7' } }),
      new Response('', { status: 429, headers: { 'retry-after': '3600' } }),
    ];
    const fetch = () => Promise.resolve(answers.shift() ?? new Response());
    const call = retryFetch(url, {}, {}, { clock, fetch, on, random: () => 0 });
    const [response] = await Promise.all([call, clock.run()]);
    expect(response.status).toBe(429);
    expect(waits).toEqual([7000]);
  });
});

describe('a body that nobody will read', () => {
  it('is cancelled before the next attempt', async () => {
    const cancelled: number[] = [];
    let calls = 0;
    const fetch = () => {
      const call = ++calls;
      const body = new ReadableStream({ cancel: () => void cancelled.push(call) });
      return Promise.resolve(new Response(body, { status: call < 3 ? 503 : 200 }));
    };
    const response = await retryFetch(url, {}, quick, { fetch });
    expect(cancelled).toEqual([1, 2]);
    expect(response.body?.locked).toBe(false);
  });

  it('is cancelled where the caller aborts while the failure is looked at', async () => {
    const cancel = vi.fn();
    const controller = new AbortController();
    const fetch = () =>
      Promise.resolve(new Response(new ReadableStream({ cancel }), { status: 503 }));
    const retryIf = async () => {
      controller.abort(new Error('stop'));
      return true;
    };
    const call = retryFetch(url, { signal: controller.signal }, quick, { fetch, retryIf });
    expect(await thrownBy(call)).toMatchObject({ code: 'ABORTED' });
    expect(cancel).toHaveBeenCalledTimes(1);
  });
});

describe('a request that may not be sent twice', () => {
  it.each(['POST', 'PATCH', 'post', 'LOCK'])(
    'is not sent again after a 503: %s',
    async (method) => {
      script = [status(503)];
      expect((await retryFetch(url, { method, body: 'x' }, quick)).status).toBe(503);
      expect((await retryFetch(new Request(url, { method }), {}, quick)).status).toBe(503);
      expect(received).toHaveLength(2);
    },
  );

  it('is sent again where it surely was not executed', async () => {
    script = [status(429), status(200)];
    expect((await retryFetch(url, { method: 'POST' }, quick)).status).toBe(200);
  });

  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'])('is none of %s', async (method) => {
    script = [status(503), status(200)];
    expect((await retryFetch(url, { method }, quick)).status).toBe(200);
  });

  it('may be sent twice with an Idempotency-Key', async () => {
    script = [status(503), status(200)];
    const headers = { 'Idempotency-Key': 'k1' };
    expect((await retryFetch(url, { method: 'POST', headers }, quick)).status).toBe(200);
    received = [];
    const request = new Request(url, { method: 'POST', headers });
    expect((await retryFetch(request, undefined, quick)).status).toBe(200);
    expect(received.map((each) => each.headers['idempotency-key'])).toEqual(['k1', 'k1']);
  });

  it('is what the caller says it is', async () => {
    script = [status(503), status(200)];
    const post = { method: 'POST' };
    expect((await retryFetch(url, post, quick, { idempotent: true })).status).toBe(200);
    received = [];
    expect((await retryFetch(url, {}, quick, { idempotent: false })).status).toBe(503);
    received = [];
    const never: Policy = { ...quick, idempotent: false };
    expect((await retryFetch(url, post, never, { idempotent: true })).status).toBe(503);
  });
});

describe('the body of a request', () => {
  const bytes = new TextEncoder().encode('bytes');
  it.each<[string, () => RequestInit['body'], string]>([
    ['a text', () => 'text', 'text'],
    ['bytes', () => bytes, 'bytes'],
    ['a blob', () => new Blob(['blob']), 'blob'],
    ['a form', () => new URLSearchParams({ a: '1' }), 'a=1'],
  ])('is sent whole each time: %s', async (_, body, sent) => {
    script = [status(503), cutOff, status(200)];
    expect((await retryFetch(url, { method: 'PUT', body: body() ?? null }, quick)).status).toBe(
      200,
    );
    expect(received.map((each) => each.body)).toEqual([sent, sent, sent]);
  });

  it('of a Request is sent whole each time, and used up at the end', async () => {
    script = [status(503), status(503), status(200)];
    const request = new Request(url, { method: 'PUT', body: 'mine' });
    expect((await retryFetch(request, undefined, quick)).status).toBe(200);
    expect(received.map((each) => each.body)).toEqual(['mine', 'mine', 'mine']);
    expect(request.bodyUsed).toBe(true);
  });

  it('of a Request that was read already is a mistake', async () => {
    const request = new Request(url, { method: 'PUT', body: 'mine' });
    await request.text();
    await expect(retryFetch(request, undefined, quick)).rejects.toThrow(TypeError);
  });

  it('in init replaces that of the Request, which is left alone', async () => {
    script = [status(503), status(200)];
    const request = new Request(url, { method: 'PUT', body: 'mine' });
    await retryFetch(request, { body: 'other' }, quick);
    expect(received.map((each) => each.body)).toEqual(['other', 'other']);
    expect(await request.text()).toBe('mine');
  });

  it.each<[string, () => BodyInit]>([
    ['a stream', () => new Blob(['once']).stream()],
    [
      'an async iterable',
      () =>
        (async function* () {
          yield new TextEncoder().encode('once');
        })() as unknown as BodyInit,
    ],
  ])('is sent once where it is %s', async (_, body) => {
    script = [status(503), status(200)];
    const init = { method: 'PUT', body: body(), duplex: 'half' } as RequestInit;
    const response = await retryFetch(url, init, quick, { retryIf: () => true });
    expect(response.status).toBe(503);
    expect(received.map((each) => each.body)).toEqual(['once']);
  });
});

describe('headers', () => {
  it('that can be read once are sent each time', async () => {
    script = [status(503), status(200)];
    const headers = new Map([['x-mine', '1']]).entries() as unknown as HeadersInit;
    await retryFetch(url, { headers }, quick);
    expect(received.map((each) => each.headers['x-mine'])).toEqual(['1', '1']);
  });
});

describe('an abort', () => {
  it('ends a wait at once', async () => {
    script = [status(503)];
    const controller = new AbortController();
    const on = { wait: () => controller.abort(new Error('enough')) };
    const call = retryFetch(url, { signal: controller.signal }, { base: '1h' }, { on });
    const error = (await thrownBy(call)) as RetryError;
    expect(error).toMatchObject({ code: 'ABORTED', attempts: 1 });
    expect(error.cause).toMatchObject({ message: 'enough' });
  });

  it.each<[string, (signal: AbortSignal) => Promise<Response>]>([
    ['init', (signal) => retryFetch(url, { signal }, quick)],
    ['a Request', (signal) => retryFetch(new Request(url, { signal }), {}, quick)],
    ['the options', (signal) => retryFetch(url, {}, quick, { signal })],
  ])('by the signal of %s ends an attempt under way', async (_, call) => {
    const controller = new AbortController();
    script = [() => controller.abort(new Error('enough'))];
    const error = await thrownBy(call(controller.signal));
    expect(error).toMatchObject({ code: 'ABORTED', cause: { message: 'enough' } });
    expect(received).toHaveLength(1);
  });

  it('reaches a body that is still being read', async () => {
    script = [(_, response) => response.writeHead(200).write('begun')];
    const controller = new AbortController();
    const response = await retryFetch(url, { signal: controller.signal }, quick);
    const text = response.text();
    controller.abort(new Error('enough'));
    await expect(text).rejects.toThrow('enough');
  });

  it('by a timeout of an attempt is a failure like others', async () => {
    script = [() => {}, status(200)];
    const policy: Policy = { ...quick, attemptTimeout: '200ms' };
    expect((await retryFetch(url, {}, policy)).status).toBe(200);
    expect(received).toHaveLength(2);
  });
});

describe('the options of retryFetch', () => {
  it.each([
    [{ lastResponse: 'throws' }, "lastResponse: 'throws' is not 'return' or 'throw'."],
    [{ idempotent: 'yes' }, "idempotent: 'yes' is not true or false."],
    [{ fetch: {} }, 'fetch: an object is not a function.'],
    [{ retryIf: 5 }, 'retryIf: 5 is not a function'],
    [{ shouldRetry: 5 }, "Did you mean 'retryIf'?"],
    [{ maxAttempts: 5 }, 'is a field of the policy'],
  ])('are checked: %j', async (options, message) => {
    const fetch = vi.fn();
    const call = retryFetch(url, {}, {}, { fetch, ...options } as unknown as RetryFetchOptions);
    const error = await thrownBy(call);
    expect(error).toMatchObject({ code: 'INVALID_CONFIG' });
    expect((error as Error).message).toContain(message);
    expect(fetch).not.toHaveBeenCalled();
  });

  it('tell the breaker about failures, and not about a 404', async () => {
    const breaker = createBreaker({ failures: 2 });
    script = [status(404), status(503), status(503)];
    await retryFetch(url, {}, { maxAttempts: 1 }, { breaker });
    expect(breaker.snapshot().failures).toBe(0);
    await retryFetch(url, { method: 'POST' }, quick, { breaker });
    expect(breaker.snapshot().failures).toBe(1);
  });

  it('let retryIf judge a response, as an error or as a result', async () => {
    script = [status(503), status(200, {}, 'pending'), status(200, {}, 'done')];
    const seen: unknown[] = [];
    const response = await retryFetch(
      url,
      {},
      { ...quick, maxAttempts: 5 },
      {
        retryIf: {
          error: (error) => void seen.push((error as ResponseError).status),
          result: async (result) => (await result.clone().text()) === 'pending',
        },
      },
    );
    expect(seen).toEqual([503]);
    expect(await response.text()).toBe('done');
  });
});

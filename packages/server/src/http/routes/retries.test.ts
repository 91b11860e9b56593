import { EngineError } from '@redrive/engine';
import { http } from '@redrive/engine/http';
import { createTestEngine } from '@redrive/engine/testing';
import { describe, expect, it } from 'vitest';
import { at, id, listAt, settings, stage, textAt } from '../harness.test.ts';

const url = '/api/v1/retries';
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe.each(['memory', 'sqlite'] as const)('taking in one message, on %s', (store) => {
  it('answers 202 after the commit, with an id of its own', async () => {
    const { post, get } = await stage({ store });
    const answer = await post(url, { destination: 'https://A.example.com/x', payload: { a: 1 } });
    expect(answer).toMatchObject({
      status: 202,
      body: {
        status_of_request: 'accepted',
        message_id: expect.stringMatching(uuid),
        destination: { kind: 'http', address: 'https://a.example.com/x' },
        lane: 'https://a.example.com',
        status: 'pending',
        retry_count: 0,
      },
    });
    const one = await get(`${url}/${textAt(answer.body, 'message_id')}`);
    expect(one).toMatchObject({
      status: 200,
      body: {
        status: 'pending',
        payload: { a: 1 },
        content_type: 'application/json',
        max_retries: 3,
        in_delivery: false,
        attempts: [],
      },
    });
  });

  it('keeps everything that was said', async () => {
    const { post, get } = await stage({ store });
    const item = {
      message_id: id(1).toUpperCase(),
      destination: { kind: 'queue', address: 'orders' },
      payload_base64: 'AP8=',
      headers: { 'x-a.b': 'c' },
      content_type: 'application/octet-stream',
      max_retries: 7,
      due_at: '2031-01-31T13:00:00+01:00',
      expires_at: '2032-01-01T00:00:00Z',
      ordering_key: 'customer-7',
      on_dead: 'release',
    };
    const answer = await post(url, item);
    expect(answer).toMatchObject({
      status: 202,
      body: { max_retries: 7, ordering_key: 'customer-7' },
    });
    expect(await get(`${url}/${id(1)}?queue=orders`)).toMatchObject({
      status: 200,
      body: {
        message_id: id(1),
        queue: 'orders',
        lane: 'queue:orders',
        payload_base64: 'AP8=',
        headers: { 'x-a.b': 'c' },
        content_type: 'application/octet-stream',
        retry_count: 0,
        max_retries: 7,
        due_at: '2031-01-31T12:00:00.000Z',
        expires_at: '2032-01-01T00:00:00.000Z',
        ordering_key: 'customer-7',
      },
    });
  });

  it('passes numbers on digit by digit', async () => {
    const { ask, get, engine } = await stage({ store });
    const text = `{"message_id":"${id(2)}","destination":"queue:a","payload":{"id":12345678901234567890}}`;
    const answer = await ask({
      method: 'POST',
      url,
      text,
      headers: { 'content-type': 'application/json' },
    });
    expect(answer.status).toBe(202);
    const task = await engine.get(id(2));
    expect(Buffer.from(task!.payload).toString()).toBe('{"id":12345678901234567890}');
    expect((await get(`${url}/${id(2)}`)).text).toContain('"payload":{"id":12345678901234567890}');
  });

  it('leaves a known message as it stands', async () => {
    const { post } = await stage({ store });
    const item = { message_id: id(3), destination: 'queue:orders', payload: 1 };
    expect((await post(url, item)).status).toBe(202);
    expect(await post(url, { ...item, payload: 2 })).toMatchObject({
      status: 200,
      body: { status_of_request: 'duplicate', message_id: id(3), status: 'pending', generation: 0 },
    });
  });

  it('makes the id of an Idempotency-Key and the destination', async () => {
    const { ask, engine } = await stage({ store });
    const send = (destination: string, payload: unknown, more: object = {}) =>
      ask({
        method: 'POST',
        url,
        body: { destination, payload, ...more },
        headers: { 'idempotency-key': 'order-7' },
      });
    const first = await send('queue:orders', { a: 1 });
    const again = await send('queue:orders', { a: 1 });
    expect([first.status, again.status]).toEqual([202, 200]);
    expect(textAt(again.body, 'message_id')).toBe(textAt(first.body, 'message_id'));
    const elsewhere = await send('queue:other', { a: 1 });
    expect(textAt(elsewhere.body, 'message_id')).not.toBe(textAt(first.body, 'message_id'));
    expect(await send('queue:orders', { a: 2 })).toMatchObject({
      status: 422,
      body: { code: 'IDEMPOTENCY_MISMATCH' },
    });
    const kept = await send('queue:orders', { a: 2 }, { on_conflict: 'duplicate' });
    expect(kept).toMatchObject({ status: 200, body: { status_of_request: 'duplicate' } });
    // An id of its own wins over the key.
    expect((await send('queue:orders', { a: 2 }, { message_id: id(4) })).status).toBe(202);
    expect((await send('queue:orders', { a: 3 }, { message_id: id(4) })).status).toBe(200);
    const failed = await send('queue:third', { a: 1 }, { retry_count: 0 });
    expect((await send('queue:third', { a: 1 }, { retry_count: 0 })).status).toBe(200);
    expect((await send('queue:third', { a: 2 }, { retry_count: 0 })).status).toBe(422);
    // Also where the count is ahead of the message: that is no other message of the same key.
    const ahead = { retry_count: 1, max_retries: 9 };
    expect((await send('queue:third', { a: 2 }, ahead)).status).toBe(422);
    const more = { message_id: id(4), on_conflict: 'reject' };
    expect((await send('queue:orders', { a: 3 }, more)).status).toBe(422);
    expect(await engine.get(textAt(failed.body, 'message_id'))).toBeDefined();
  });

  it('compares no payload that an operator has changed or erased', async () => {
    const { ask, engine } = await stage({ store });
    const send = (key: string, payload: unknown, more: object = {}) =>
      ask({
        method: 'POST',
        url,
        body: { destination: 'queue:orders', payload, ...more },
        headers: { 'idempotency-key': key },
      });
    for (const key of ['order-8', 'order-9']) {
      const failed = await send(key, { a: 1 }, { retry_count: 0, classification: 'BUSINESS' });
      expect(failed).toMatchObject({ status: 202, body: { status_of_request: 'failed' } });
    }
    expect((await send('order-8', { a: 2 })).status).toBe(422);
    await engine.inbox.replay(1, { payload: { a: 2 } });
    await engine.inbox.erase(2);
    expect((await send('order-8', { a: 1 })).status).toBe(200);
    expect((await send('order-9', { a: 1 })).status).toBe(200);
  });
});

describe('an execution that failed', () => {
  const failure = (more: object) => ({ destination: 'queue:orders', payload: 1, ...more });

  it('waits as its policy says, and is delivered no earlier', async () => {
    const engine = createTestEngine({ policy: settings.policy, policies: settings.policies });
    const { post, get } = await stage({ engine });
    const item = failure({ message_id: id(1), retry_count: 1, error_reason: 'connection refused' });
    expect(await post(url, item)).toMatchObject({
      status: 202,
      body: { status_of_request: 'accepted', retry_count: 1, status: 'pending' },
    });
    expect(await get(`${url}/${id(1)}`)).toMatchObject({
      body: {
        retry_count: 1,
        max_retries: 3,
        // delay(2) of 2 s, doubled.
        due_at: '2025-01-01T00:00:04.000Z',
        error: { class: 'transient', message: 'connection refused' },
        attempts: [{ attempt: 2, generation: 0, error: { message: 'connection refused' } }],
      },
    });
  });

  it('is due when it says so itself', async () => {
    const { post, get } = await stage();
    await post(url, failure({ message_id: id(1), retry_count: 0, due_at: '2030-06-01T00:00:00Z' }));
    expect(await get(`${url}/${id(1)}`)).toMatchObject({
      body: { due_at: '2030-06-01T00:00:00.000Z' },
    });
  });

  it.each([
    ['exhausted', { retry_count: 3 }, 'EXHAUSTED'],
    ['exhausted by its own number', { retry_count: 0, max_retries: 0 }, 'EXHAUSTED'],
    ['of another class', { retry_count: 0, classification: 'BUSINESS' }, 'PERMANENT'],
    ['unknown', { retry_count: 0, classification: 'UNKNOWN' }, 'PERMANENT'],
  ])('goes straight to review when it is %s', async (_, more, reason) => {
    const { post, get } = await stage();
    const answer = await post(url, failure({ message_id: id(1), ...more }));
    expect(answer).toMatchObject({
      status: 202,
      body: { status_of_request: 'failed', status: 'failed' },
    });
    expect(await get('/api/v1/review')).toMatchObject({
      body: { items: [{ reason, message_id: id(1) }] },
    });
  });

  it('re-arms a known message with a count that is ahead of it only', async () => {
    const { post } = await stage();
    const again = (retry_count: number) =>
      post(url, failure({ message_id: id(1), retry_count, max_retries: 9 }));
    expect(await again(2)).toMatchObject({ status: 202 });
    expect(await again(1)).toMatchObject({
      status: 200,
      body: { status_of_request: 'duplicate', retry_count: 2 },
    });
    expect(await again(2)).toMatchObject({ status: 200 });
    expect(await again(3)).toMatchObject({ status: 202, body: { retry_count: 3 } });
  });

  it('by HTTP has the type of what it says', async () => {
    const { post, get } = await stage();
    const item = { message_id: id(1), destination: 'http://127.0.0.1:1/', retry_count: 0 };
    await post(url, { ...item, payload: {} });
    expect(await get(`${url}/${id(1)}`)).toMatchObject({
      body: { content_type: 'application/json' },
    });
  });

  it('is retried by a policy of its own', async () => {
    const { post, get } = await stage();
    const answer = (message_id: string, policy: unknown) =>
      post(
        url,
        failure({ message_id, policy, retry_count: 0, max_retries: 2, on_dead: 'release' }),
      );
    expect((await answer(id(1), 'patient')).status).toBe(202);
    expect((await answer(id(2), { maxAttempts: 5, base: '1h' })).status).toBe(202);
    expect(await get(`${url}/${id(1)}`)).toMatchObject({
      body: { policy: expect.any(String), max_retries: 2 },
    });
  });
});

describe('the policy of fresh work', () => {
  it.each([
    ['its name', 'patient', undefined, 8],
    ['itself', { maxAttempts: 6 }, undefined, 5],
    ['its name and its own number', 'patient', 2, 2],
    ['itself and its own number', { base: '1h' }, 3, 3],
    ['that of its lane and its own number', undefined, 6, 6],
  ])('is said by %s', async (_, policy, max_retries, expected) => {
    const { post, get } = await stage({ lane: { policy: { maxAttempts: 3 } } });
    const more = { ...(policy ? { policy } : {}), ...(max_retries ? { max_retries } : {}) };
    await post(url, { message_id: id(1), destination: 'queue:a', payload: 1, ...more });
    expect(await get(`${url}/${id(1)}`)).toMatchObject({ body: { max_retries: expected } });
  });
});

describe('a policy that leaves fields out', () => {
  /** The wait before its first retry. */
  async function waitOf(policy: object, more: object = {}) {
    const engine = createTestEngine({ policy: settings.policy });
    const { post, get } = await stage({ engine });
    const item = { message_id: id(1), destination: 'queue:a', payload: 1, policy, ...more };
    const answer = await post(url, item);
    const { due_at } = (await get(`${url}/${id(1)}`)).body as { due_at: string };
    return { answer, waitMs: Date.parse(due_at) - engine.clock.now() };
  }

  it('keeps the delays of the service', async () => {
    const { answer, waitMs } = await waitOf({ maxAttempts: 9 }, { retry_count: 0 });
    expect(answer.status).toBe(202);
    expect(waitMs).toBe(2000);
    expect((await waitOf({ base: '7s' }, { retry_count: 0 })).waitMs).toBe(7000);
  });

  it('is refused where what it writes does not fit the rest', async () => {
    const { post } = await stage({ lane: { policy: { jitter: 'decorrelated' } } });
    const item = { destination: 'queue:a', payload: 1, policy: { strategy: 'fixed' } };
    expect(await post(url, item)).toMatchObject({
      status: 400,
      body: {
        code: 'INVALID_REQUEST',
        errors: [
          {
            path: '/policy/jitter',
            message: expect.stringContaining(
              'strategy from the policy of this submit, jitter from the policy of all lanes',
            ),
          },
        ],
      },
    });
  });
});

describe('what travels with a message', () => {
  it('is a method, a secret, and the trace of the request', async () => {
    const { ask, engine } = await stage();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const answer = await ask({
      method: 'POST',
      url,
      headers: { traceparent },
      body: {
        message_id: id(1),
        destination: 'https://a.example/',
        payload: 1,
        method: 'PUT',
        secret: 'billing',
      },
    });
    expect(answer.status).toBe(202);
    expect((await engine.get(id(1)))?.context).toEqual({
      method: 'PUT',
      secret: 'billing',
      traceparent,
      contentType: 'application/json',
    });
  });
});

describe('faults of one message', () => {
  it('are all listed, each at its place', async () => {
    const { post } = await stage();
    const answer = await post(url, {
      message_id: 'x',
      destination: 7,
      headers: { a: 1 },
      retry_count: -1,
      max_retries: 1.5,
      due_at: 'tomorrow',
      ordering_key: '',
      classification: 'SOMETIMES',
      mesage_id: 'x',
      on_dead: 3,
    });
    expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST', status: 400 } });
    expect(listAt(answer.body, 'errors')).toEqual(
      expect.arrayContaining([
        fault('/message_id', 'INVALID_VALUE', 'A UUID is needed.'),
        fault('/destination', 'INVALID_VALUE', expect.stringContaining('queue:NAME')),
        fault('/headers/a', 'INVALID_VALUE', 'A text is needed.'),
        fault('/retry_count', 'INVALID_VALUE', 'It has to be at least 0.'),
        fault('/max_retries', 'INVALID_VALUE', 'A whole number is needed.'),
        fault('/due_at', 'INVALID_VALUE', expect.stringContaining('with its zone')),
        fault('/ordering_key', 'INVALID_VALUE', 'At least 1 character is needed.'),
        fault('/classification', 'INVALID_VALUE', expect.stringContaining('TRANSIENT')),
        fault('/mesage_id', 'UNKNOWN_FIELD', "There is no such field. Did you mean 'message_id'?"),
        fault('/on_dead', 'INVALID_VALUE', 'A text is needed.'),
      ]),
    );
    expect(listAt(answer.body, 'errors')).toHaveLength(11); // and that there is no payload
  });

  it.each([
    [{ payload: 1 }, '/destination', 'MISSING_FIELD'],
    [{ destination: 'queue:a' }, '/payload', 'MISSING_FIELD'],
    [{ destination: 'queue:a', payload: 1, payload_base64: '' }, '/payload', 'INVALID_VALUE'],
    [{ destination: 'queue:a', payload_base64: '?' }, '/payload_base64', 'INVALID_VALUE'],
    [{ destination: 'orders', payload: 1 }, '/destination', 'NO_DESTINATION'],
    [{ destination: { kind: 'queue' }, payload: 1 }, '/destination/address', 'MISSING_FIELD'],
    [{ destination: { kind: 'Q!', address: 'a' }, payload: 1 }, '/destination', 'NO_DESTINATION'],
    [{ destination: 'queue:a', payload: 1, error_reason: 'x' }, '/retry_count', 'MISSING_FIELD'],
    [{ destination: 'queue:a', payload: 1, policy: 'patent' }, '/policy', 'UNKNOWN_POLICY'],
    [{ destination: 'queue:a', payload: 1, policy: { bas: 1 } }, '/policy/bas', 'UNKNOWN_FIELD'],
    [
      { destination: 'queue:a', payload: 1, policy: 'patent', max_retries: 3 },
      '/policy',
      'UNKNOWN_POLICY',
    ],
    [
      { destination: 'queue:a', payload: 1, policy: 'patent', retry_count: 0 },
      '/policy',
      'UNKNOWN_POLICY',
    ],
    [
      { destination: 'queue:a', payload: 1, due_at: '9999-01-01T00:00:00Z' },
      '/due_at',
      'INVALID_TASK',
    ],
    [
      { destination: 'queue:a', payload: 1, retry_count: 0, due_at: '9999-01-01T00:00:00Z' },
      '/due_at',
      'INVALID_TASK',
    ],
    [
      { destination: 'queue:a', payload: 1, due_at: '2030-06-30T23:59:60Z' },
      '/due_at',
      'INVALID_TASK',
    ],
  ])('are found in %j', async (item, path, code) => {
    const { post } = await stage();
    const answer = await post(url, item);
    expect(answer.status).toBe(400);
    expect(listAt(answer.body, 'errors')).toEqual([
      { in: 'body', path, code, message: expect.any(String) },
    ]);
  });

  it.each([
    ['nothing', undefined],
    ['a text', 'x'],
    ['null', null],
  ])('are found when it is %s', async (_, body) => {
    const { post } = await stage();
    expect(await post(url, body)).toMatchObject({
      status: 400,
      body: { errors: [{ path: '', message: 'An object is needed.' }] },
    });
  });

  it('are a payload that is too large, fresh or failed', async () => {
    const { post } = await stage();
    const item = { destination: 'queue:a', payload: 'x'.repeat(settings.maxPayloadBytes) };
    expect(await post(url, item)).toMatchObject({
      status: 413,
      body: { code: 'PAYLOAD_TOO_LARGE', errors: [{ path: '/payload' }] },
    });
    expect(await post(url, { ...item, retry_count: 0 })).toMatchObject({
      status: 413,
      body: { code: 'PAYLOAD_TOO_LARGE', errors: [{ path: '/payload' }] },
    });
  });

  it.each([
    ['JSON', (bytes: number) => ({ payload: 'x'.repeat(bytes - 2) })],
    [
      'JSON that is longer on the wire',
      (bytes: number) => ({ payload: 'é'.repeat((bytes - 2) >> 1) + 'x'.repeat(bytes % 2) }),
    ],
    [
      'base64',
      (bytes: number) => ({ payload_base64: Buffer.alloc(bytes, 255).toString('base64') }),
    ],
  ])('are a payload of one byte over the limit in %s, and not one of the limit', async (_, of) => {
    const { ask, engine } = await stage();
    // As a client may write it that keeps to ASCII: up to three times as long.
    const post = (body: object) =>
      ask({
        method: 'POST',
        url,
        text: JSON.stringify(body).replaceAll('é', '\\u00e9'),
        headers: { 'content-type': 'application/json' },
      });
    const limit = settings.maxPayloadBytes;
    const fitting = { destination: 'queue:a', ...of(limit) };
    const over = { destination: 'queue:a', ...of(limit + 1) };
    const refused = { status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } };
    expect(await post(fitting)).toMatchObject({ status: 202 });
    expect(await post({ ...fitting, retry_count: 0 })).toMatchObject({ status: 202 });
    expect(await post(over)).toMatchObject(refused);
    expect(await post({ ...over, retry_count: 0 })).toMatchObject(refused);
    const items = [fitting, over, { ...fitting, retry_count: 0 }, { ...over, retry_count: 0 }];
    expect(await post({ items })).toMatchObject({
      status: 202,
      body: {
        accepted: [{ index: 0 }, { index: 2 }],
        rejected: [
          { index: 1, code: 'PAYLOAD_TOO_LARGE' },
          { index: 3, code: 'PAYLOAD_TOO_LARGE' },
        ],
      },
    });
    const tasks = await engine.list({ limit: 10 });
    expect(tasks.map(({ payload }) => payload.length)).toEqual([limit, limit, limit, limit]);
  });

  it('are a payload that nobody can write', async () => {
    const { ask } = await stage();
    const send = (more: string) =>
      ask({
        method: 'POST',
        url,
        text: `{"destination":"queue:a","payload":${'['.repeat(200_000)}${']'.repeat(200_000)}${more}}`,
        headers: { 'content-type': 'application/json' },
      });
    for (const more of ['', ',"retry_count":0']) {
      const answer = await send(more);
      expect(answer).toMatchObject({ status: 400, body: { code: 'JSON_TOO_DEEP' } });
      expect(answer.text).not.toContain('RangeError');
    }
  });

  it('are a key that is none', async () => {
    const { ask } = await stage();
    const answer = await ask({
      method: 'POST',
      url,
      body: { destination: 'queue:a', payload: 1 },
      headers: { 'idempotency-key': 'x'.repeat(256) },
    });
    expect(answer).toMatchObject({
      status: 400,
      body: { errors: [{ in: 'header', path: '/idempotency-key' }] },
    });
  });
});

describe('taking in many', () => {
  const item = (more: object = {}) => ({ destination: 'queue:orders', payload: 1, ...more });

  it.each(['memory', 'sqlite'] as const)('says what became of each, on %s', async (store) => {
    const { post, engine } = await stage({ store });
    const items = [
      item({ message_id: id(1) }),
      item({ message_id: 'x', retry_count: -1 }),
      item({ message_id: id(2), retry_count: 0 }),
      item({ message_id: id(1) }),
      item({ message_id: id(3), retry_count: 9 }),
      item({ message_id: id(4), policy: 'none' }),
      item({ message_id: id(5), retry_count: 0, payload: 'x'.repeat(settings.maxPayloadBytes) }),
    ];
    const answer = await post(url, { items });
    expect(answer).toMatchObject({
      status: 202,
      body: {
        accepted: [
          { index: 0, message_id: id(1), result: 'accepted' },
          { index: 2, message_id: id(2), result: 'accepted' },
          { index: 3, message_id: id(1), result: 'duplicate' },
          { index: 4, message_id: id(3), result: 'failed' },
        ],
        rejected: [
          { index: 1, code: 'INVALID_VALUE', path: '/message_id' },
          { index: 1, code: 'INVALID_VALUE', path: '/retry_count' },
          { index: 5, code: 'UNKNOWN_POLICY', path: '/policy' },
          { index: 6, code: 'PAYLOAD_TOO_LARGE', path: '/payload' },
        ],
      },
    });
    expect(await engine.list({ limit: 10 })).toHaveLength(3);
  });

  it('is 400 when all are rejected', async () => {
    const { post } = await stage();
    expect(await post(url, { items: [{ payload: 1 }, 7] })).toMatchObject({
      status: 400,
      body: {
        code: 'ALL_REJECTED',
        rejected: [
          { index: 0, code: 'MISSING_FIELD', path: '/destination' },
          { index: 1, code: 'INVALID_VALUE', path: '' },
        ],
      },
    });
  });

  it.each([
    [{ items: [] }, '/items'],
    [{ items: {} }, '/items'],
    [{ items: null }, '/items'],
    [{ items: Array.from({ length: 1001 }, () => 1) }, '/items'],
    [{ items: [1], more: 1 }, '/more'],
  ])('is 400 when the envelope is wrong', async (body, path) => {
    const { post } = await stage();
    expect(await post(url, body)).toMatchObject({
      status: 400,
      body: { code: 'INVALID_REQUEST', errors: [{ path }] },
    });
  });

  it('makes ids of an Idempotency-Key and the index', async () => {
    const { ask } = await stage();
    const send = (...payloads: unknown[]) =>
      ask({
        method: 'POST',
        url,
        body: { items: payloads.map((payload) => item({ payload })) },
        headers: { 'idempotency-key': 'batch-1' },
      });
    const first = await send(1, 2, 3);
    const again = await send(1, 'other', 3);
    const ids = listAt(first.body, 'accepted').map((one) => at(one, 'message_id'));
    expect(new Set(ids).size).toBe(3);
    expect(again).toMatchObject({
      status: 202,
      body: {
        accepted: [
          { index: 0, result: 'duplicate', message_id: ids[0] },
          { index: 2, result: 'duplicate', message_id: ids[2] },
        ],
        rejected: [
          {
            index: 1,
            code: 'IDEMPOTENCY_MISMATCH',
            path: '/payload',
            message: expect.stringContaining('This Idempotency-Key was used for another payload.'),
          },
        ],
      },
    });
  });

  it('does not tell what was committed as failed when the store goes away in between', async () => {
    const { post, engine } = await stage();
    const gone = new EngineError('STORE_UNAVAILABLE', 'The disk under tasks.db failed.');
    engine.report = () => Promise.reject(gone);
    const items = [item({ message_id: id(1) }), item({ message_id: id(2), retry_count: 0 })];
    expect(await post(url, { items })).toMatchObject({
      status: 202,
      body: {
        accepted: [{ index: 0, message_id: id(1) }],
        rejected: [{ index: 1, code: 'STORE_UNAVAILABLE', path: '' }],
      },
    });
    expect(await post(url, { items: items.slice(1) })).toMatchObject({ status: 503 });
  });
});

function fault(path: string, code: string, message: unknown) {
  return { in: 'body', path, code, message };
}

describe('a RetryMessage, as consumers publish it to the retry queue', () => {
  const message = {
    message_id: id(7),
    original_queue: 'orders',
    original_payload: 'eyJvcmRlciI6MTd9',
    error_reason: 'connect ECONNREFUSED 10.1.2.3:5432',
    retry_count: 0,
    max_retries: 3,
    classification: 'TRANSIENT',
  };

  it('is taken in as it is', async () => {
    const { post, get } = await stage();
    expect(await post(url, message)).toMatchObject({
      status: 202,
      body: { message_id: id(7), queue: 'orders', lane: 'queue:orders', max_retries: 3 },
    });
    expect(await get(`${url}/${id(7)}`)).toMatchObject({
      body: {
        payload: { order: 17 },
        status: 'pending',
        error: { class: 'transient', message: message.error_reason },
      },
    });
  });

  it('may have a Buffer, a number for its class, a time and nulls', async () => {
    const { post, get } = await stage();
    const items = [
      {
        ...message,
        original_payload: { type: 'Buffer', data: [0, 255] },
        classification: 1,
        error_reason: null,
      },
      {
        ...message,
        message_id: id(8),
        next_retry_at_ms: String(Date.parse('2031-01-01T00:00:00Z')),
      },
    ];
    expect(await post(url, { items })).toMatchObject({
      status: 202,
      body: { accepted: [{ result: 'failed' }, { result: 'accepted' }], rejected: [] },
    });
    expect(await get(`${url}/${id(7)}`)).toMatchObject({
      body: { payload_base64: 'AP8=', status: 'failed', error: { class: 'business' } },
    });
    expect(await get(`${url}/${id(8)}`)).toMatchObject({
      body: { due_at: '2031-01-01T00:00:00.000Z' },
    });
  });

  it('is told everything that is wrong with it at once', async () => {
    const { post } = await stage();
    const bad = {
      message_id: '7',
      original_queue: '',
      original_payload: 'not base64!',
      retry_count: -1,
      clasification: 'TRANSIENT',
    };
    const answer = await post(url, bad);
    expect(answer.status).toBe(400);
    expect(
      listAt(answer.body, 'errors')
        .map((one) => textAt(one, 'path'))
        .sort(),
    ).toEqual([
      '/clasification',
      '/message_id',
      '/original_payload',
      '/original_queue',
      '/retry_count',
    ]);
  });
});

it('a request with faults of several kinds is told all of them at once', async () => {
  const { post } = await stage();
  const policy = { maxAttemps: 3, base: '2 lightyears' };
  const answer = await post(url, {
    destination: 'ftp://x',
    due_at: 'soon',
    max_retries: -1,
    policy,
  });
  expect(answer.status).toBe(400);
  expect(
    listAt(answer.body, 'errors')
      .map((one) => textAt(one, 'path'))
      .sort(),
  ).toEqual([
    '/destination',
    '/due_at',
    '/max_retries',
    '/payload',
    '/policy/base',
    '/policy/maxAttemps',
  ]);
});

it('a message for a broker that this instance lacks is taken, with a warning', async () => {
  const { post, engine } = await stage();
  await engine.start();
  const answer = await post(url, { destination: 'queue:orders', payload: 1 });
  expect(answer).toMatchObject({
    status: 202,
    body: { warning: expect.stringContaining("cannot deliver to 'queue:orders'") as string },
  });
});

describe('Faults of the request and of the engine', () => {
  const staged = () =>
    stage({ engineOptions: { deliveries: [http({ public: false, allow: ['loopback'] })] } });
  const faultsIn = (body: unknown) =>
    listAt(body, 'errors')
      .map((one) => `${textAt(one, 'path')} ${textAt(one, 'code')}`)
      .toSorted();

  it('are told in one answer, and nothing is stored', async () => {
    const { post, engine } = await staged();
    const misspelt = {
      destination: 'https://api.example.com/orders',
      pyload: { a: 1 },
      policy: { maxAttemts: 3 },
    };
    const first = await post(url, misspelt);
    expect(faultsIn(first.body)).toEqual([
      '/destination ADDRESS_REFUSED',
      '/payload MISSING_FIELD',
      '/policy/maxAttemts UNKNOWN_FIELD',
      '/pyload UNKNOWN_FIELD',
    ]);
    const second = await post(url, {
      destination: 'http://127.0.0.1:9/',
      payload: { a: 1 },
      policy: 'nosuch',
      headers: { a: 1, authorization: 'x' },
    });
    expect(faultsIn(second.body)).toEqual([
      '/headers/a INVALID_VALUE',
      '/headers/authorization INVALID_TASK',
      '/policy UNKNOWN_POLICY',
    ]);
    const many = await post(url, { items: [{ destination: 'queue:a', payload: 1 }, misspelt] });
    expect(listAt(many.body, 'rejected').map((one) => textAt(one, 'path'))).toContain(
      '/destination',
    );
    expect(await engine.list({ limit: 10 })).toHaveLength(1);
  });

  it('name the fields and settings that the reader typed', async () => {
    const { post } = await staged();
    const { body } = await post(url, {
      destination: 'https://api.example.com/orders',
      payload: 1,
      policy: 'nosuch',
    });
    expect(body).toMatchObject({ code: 'ADDRESS_REFUSED', detail: 'The request has 2 faults.' });
    expect(listAt(body, 'errors').map((one) => textAt(one, 'message'))).toEqual([
      "The host 'api.example.com' is not allowed. If it should be, add it to REDRIVE_HTTP_ALLOW, such as REDRIVE_HTTP_ALLOW=api.example.com",
      "There is no policy 'nosuch'. Add it to `policies` of the config file.",
    ]);
  });
});

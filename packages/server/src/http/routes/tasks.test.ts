import { createTestBroker, createTestEngine } from '@redrive/engine/testing';
import { describe, expect, it } from 'vitest';
import { at, id, listAt, settings, stage, textAt } from '../harness.test.ts';

const url = '/api/v1/retries';

describe.each(['memory', 'sqlite'] as const)('lists of messages, on %s', (store) => {
  it('go on where the last page ended, each message once', async () => {
    const { get, engine } = await stage({ store });
    for (let i = 1; i <= 5; i++)
      await engine.submit({ kind: 'queue', address: 'a' }, i, { id: id(i) });
    const seen: unknown[] = [];
    let cursor = '';
    do {
      const page = await get(`${url}?limit=2${cursor}`);
      expect(page.status).toBe(200);
      seen.push(...listAt(page.body, 'items').map((one) => at(one, 'message_id')));
      cursor = at(page.body, 'next_cursor') ? `&cursor=${textAt(page.body, 'next_cursor')}` : '';
    } while (cursor);
    expect(seen).toEqual([5, 4, 3, 2, 1].map(id));
  });

  it('show what a filter lets through, and no payloads', async () => {
    const { get, post, engine } = await stage({ store });
    await engine.submit({ kind: 'queue', address: 'a' }, 'secret', { id: id(1) });
    await engine.submit({ kind: 'queue', address: 'b' }, 1, { id: id(2) });
    await engine.cancel(id(2));
    await post(url, { message_id: id(3), destination: 'https://a.example/x', payload: 1 });
    const ids = async (query: string) => {
      const answer = await get(`${url}?${query}`);
      expect(answer.text).not.toContain('secret');
      return listAt(answer.body, 'items').map((one) => at(one, 'message_id'));
    };
    expect(await ids('')).toEqual([id(3), id(2), id(1)]);
    expect(await ids('queue=a')).toEqual([id(1)]);
    expect(await ids('lane=queue:b')).toEqual([id(2)]);
    expect(await ids(`lane=${encodeURIComponent('https://a.example')}`)).toEqual([id(3)]);
    expect(await ids('status=cancelled')).toEqual([id(2)]);
    expect(await ids(`message_id=${id(1).toUpperCase()}`)).toEqual([id(1)]);
    expect(await ids('status=failed')).toEqual([]);
  });
});

describe('a list of messages', () => {
  it.each([
    ['limit=0', '/limit', 'INVALID_VALUE'],
    ['limit=101', '/limit', 'INVALID_VALUE'],
    ['limit=1.5', '/limit', 'INVALID_VALUE'],
    ['limit=', '/limit', 'INVALID_VALUE'],
    ['limit=1&limit=2', '/limit', 'INVALID_VALUE'],
    ['status=lost', '/status', 'INVALID_VALUE'],
    ['message_id=7', '/message_id', 'INVALID_VALUE'],
    ['stauts=failed', '/stauts', 'UNKNOWN_FIELD'],
    ['queue=a&lane=queue:a', '/queue', 'INVALID_VALUE'],
    ['cursor=x', '/cursor', 'INVALID_CURSOR'],
    ['queue=a%00', '/queue', 'INVALID_VALUE'],
    ['lane=%00', '/lane', 'INVALID_VALUE'],
  ])('refuses ?%s', async (query, path, code) => {
    const { get } = await stage();
    const answer = await get(`${url}?${query}`);
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ in: 'query', path, code }] } });
  });
});

describe('one message', () => {
  it('is found by its id, and by its destination where there are several', async () => {
    const { get, engine } = await stage();
    await engine.submit({ kind: 'queue', address: 'a' }, 1, { id: id(1) });
    await engine.submit({ kind: 'queue', address: 'b' }, 2, { id: id(1) });
    await engine.submit('https://a.example/x', 3, { id: id(1) });
    expect(await get(`${url}/${id(1)}`)).toMatchObject({
      status: 409,
      body: {
        code: 'AMBIGUOUS',
        matches: [
          { destination: { kind: 'http' }, status: 'pending', lane: 'https://a.example' },
          { queue: 'b' },
          { queue: 'a' },
        ],
      },
    });
    const payload = async (query: string) =>
      at((await get(`${url}/${id(1)}?${query}`)).body, 'payload');
    expect(await payload('queue=a')).toBe(1);
    expect(await payload('destination=queue:b')).toBe(2);
    expect(await payload(`destination=${encodeURIComponent('https://A.example/x')}`)).toBe(3);
  });

  it.each([
    ['', 404, 'TASK_UNKNOWN'],
    ['?queue=a', 404, 'TASK_UNKNOWN'],
    ['?destination=orders', 400, 'INVALID_REQUEST'],
    ['?destination=queue:a&queue=a', 400, 'INVALID_REQUEST'],
    ['?destination=Q:a', 400, 'INVALID_REQUEST'],
  ])('that is not there: %s', async (query, status, code) => {
    const { ask } = await stage();
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/expedite'],
      ['POST', '/succeeded'],
    ] as const) {
      const answer = await ask({ method, url: `${url}/${id(9)}${path}${query}` });
      expect(answer).toMatchObject({ status, body: { code } });
    }
  });

  it('has an id that is a UUID', async () => {
    const { get } = await stage();
    expect(await get(`${url}/7`)).toMatchObject({
      status: 400,
      body: { errors: [{ in: 'path', path: '/message_id', message: 'A UUID is needed.' }] },
    });
  });

  it('shows bytes as bytes, and hostile texts as texts', async () => {
    const { get, engine } = await stage();
    const hostile = '<script>alert("\u2028")</script>';
    await engine.submit({ kind: 'queue', address: hostile }, Uint8Array.of(255), { id: id(1) });
    await engine.submit({ kind: 'queue', address: 'b' }, { hostile }, { id: id(2) });
    const bytes = await get(`${url}/${id(1)}`);
    expect(bytes).toMatchObject({ body: { payload_base64: '/w==', queue: hostile } });
    expect(bytes.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-content-type-options': 'nosniff',
    });
    expect((await get(`${url}/${id(2)}`)).body).toMatchObject({ payload: { hostile } });
  });
});

describe('what is done to a message', () => {
  it('is cancelled at once where it waits, with the name of who did it', async () => {
    const { ask, engine, audited } = await stage();
    await engine.submit({ kind: 'queue', address: 'a' }, 1, { id: id(1) });
    const cancel = () =>
      ask({ method: 'DELETE', url: `${url}/${id(1)}`, headers: { 'x-redrive-operator': 'ada' } });
    const answer = {
      status: 200,
      body: {
        message_id: id(1),
        destination: { kind: 'queue', address: 'a' },
        result: 'cancelled',
      },
    };
    expect(await cancel()).toMatchObject(answer);
    expect(await cancel()).toMatchObject(answer);
    await audited({ by: 'ada', message_id: id(1), action: 'cancel' });
  });

  it('is cancelling where it is in delivery', async () => {
    const begun = Promise.withResolvers<void>();
    const free = Promise.withResolvers<void>();
    const { ask, get, engine } = await stage();
    engine.handle('slow', () => {
      begun.resolve();
      return free.promise;
    });
    await engine.submit('slow', 1, { id: id(1) });
    await engine.start();
    await begun.promise;
    expect(await ask({ method: 'DELETE', url: `${url}/${id(1)}` })).toMatchObject({
      status: 202,
      body: { result: 'cancelling' },
    });
    expect(await get(`${url}/${id(1)}`)).toMatchObject({
      body: { in_delivery: true, cancelling: true },
    });
    expect(await ask({ method: 'POST', url: `${url}/${id(1)}/expedite` })).toMatchObject({
      status: 200,
      body: { result: 'in_delivery' },
    });
    free.resolve();
  });

  it('is made due now', async () => {
    const engine = createTestEngine();
    const { post } = await stage({ engine });
    const done = Promise.withResolvers<void>();
    engine.handle('later', () => done.resolve());
    await engine.submit('later', 1, { id: id(1), dueAt: new Date('2025-06-01') });
    expect(await post(`${url}/${id(1)}/expedite`, {})).toMatchObject({
      status: 200,
      body: { result: 'expedited' },
    });
    await engine.drain();
    await done.promise;
    expect(await post(`${url}/${id(1)}/expedite`)).toMatchObject({
      status: 409,
      body: { code: 'TASK_OVER', detail: expect.stringContaining('done') },
    });
  });

  it('is done when its consumer says so', async () => {
    const engine = createTestEngine({ brokers: [createTestBroker()], policy: settings.policy });
    const { ask, get, post } = await stage({ engine });
    const succeeded = () => ask({ method: 'POST', url: `${url}/${id(1)}/succeeded` });
    await post(url, { message_id: id(1), destination: 'queue:a', payload: 1, retry_count: 0 });
    expect(await succeeded()).toMatchObject({ status: 200, body: { result: 'pending' } });
    await engine.advance('10s');
    expect(await get(`${url}/${id(1)}`)).toMatchObject({
      body: { status: 'retried', retry_count: 1, max_retries: 3 },
    });
    expect(await succeeded()).toMatchObject({ status: 200, body: { result: 'done' } });
    expect(await get(`${url}/${id(1)}`)).toMatchObject({
      body: { status: 'done', retry_count: 1, finished_at: expect.any(String) },
    });
  });

  it('is refused where it is over', async () => {
    const { ask, post } = await stage();
    const item = { message_id: id(1), destination: 'queue:a', payload: 1 };
    await post(url, { ...item, retry_count: 0, classification: 'BUSINESS' });
    expect(await ask({ method: 'DELETE', url: `${url}/${id(1)}` })).toMatchObject({
      status: 409,
      body: { code: 'TASK_OVER', detail: expect.stringContaining('review') },
    });
  });

  it('takes no body but an empty one', async () => {
    const { post, engine } = await stage();
    await engine.submit({ kind: 'queue', address: 'a' }, 1, { id: id(1) });
    expect(await post(`${url}/${id(1)}/expedite`, { now: true })).toMatchObject({
      status: 400,
      body: { errors: [{ in: 'body', path: '/now', code: 'UNKNOWN_FIELD' }] },
    });
  });
});

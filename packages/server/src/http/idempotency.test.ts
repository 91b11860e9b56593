import { memoryIdempotency } from 'redrive';
import { hash } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import type { Token } from '../settings/settings.ts';
import { at, type Document, id, stage, type Stage } from './harness.test.ts';
import { documentOf } from './openapi.ts';

/** A second, which is the default, may be too short on a busy machine. */
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 20_000 });

const PAUSE = '/api/v1/lanes/queue:orders/pause';
const RESUME = '/api/v1/lanes/queue:orders/resume';

interface Keyed {
  key?: string;
  token?: string;
  body?: unknown;
}

function keyed({ ask }: Stage, url: string, { key = 'k-1', token, body = {} }: Keyed = {}) {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const headers = { 'idempotency-key': key, ...authorization };
  return ask({ method: 'POST', url, headers, body });
}

async function isPaused({ get }: Stage): Promise<boolean> {
  const { body } = await get('/api/v1/lanes');
  return at(body, 'items', 0, 'paused') === true;
}

async function itemIn({ engine, ask }: Stage): Promise<string> {
  const body = {
    destination: 'queue:orders',
    payload: { name: 'Ada' },
    message_id: id(7),
    retry_count: 9,
    max_retries: 3,
  };
  await engine.start();
  await ask({ method: 'POST', url: '/api/v1/retries', body });
  const { body: found } = await ask({ url: '/api/v1/review' });
  return String(at(found, 'items', 0, 'id'));
}

describe('a request with an Idempotency-Key', () => {
  it('is processed once, and its retry gets the same response', async () => {
    const s = await stage();
    await s.engine.start();
    const first = await keyed(s, PAUSE);
    expect(first).toMatchObject({ status: 200, body: { lane: 'queue:orders', paused: true } });
    expect(first.headers).not.toHaveProperty('idempotency-replayed');
    await s.post(RESUME, {});
    const again = await keyed(s, PAUSE, { key: '"k-1"' });
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(again.headers).toMatchObject({
      'idempotency-replayed': 'true',
      'content-type': first.headers['content-type'],
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    expect(await isPaused(s)).toBe(false);
  });

  it('does not start a second bulk job', async () => {
    const s = await stage();
    await itemIn(s);
    const body = { action: 'resolve', all: true };
    const [first, second] = [
      await keyed(s, '/api/v1/review/bulk', { body }),
      await keyed(s, '/api/v1/review/bulk', { body }),
    ];
    expect([first.status, second.status]).toEqual([202, 202]);
    expect(second.body).toEqual(first.body);
    expect(second.headers['location']).toBe(first.headers['location']);
    const { body: jobs } = await s.get('/api/v1/review/bulk');
    expect(at(jobs, 'items')).toHaveLength(1);
  });

  it('is answered by the state of then, and without a key by that of now', async () => {
    const s = await stage();
    const item = await itemIn(s);
    const url = `/api/v1/review/${item}/resolve`;
    expect(at((await keyed(s, url)).body, 'state')).toBe('resolved');
    expect(at((await keyed(s, url)).body, 'state')).toBe('resolved');
    expect(await s.post(url, {})).toMatchObject({ status: 409, body: { code: 'ITEM_CLOSED' } });
  });

  it('is refused with another body or URL, with a bad key, and while it is processed', async () => {
    const s = await stage();
    await s.engine.start();
    await keyed(s, PAUSE);
    const other = await keyed(s, '/api/v1/lanes/queue:others/pause');
    expect(other).toMatchObject({ status: 422, body: { code: 'IDEMPOTENCY_MISMATCH' } });
    expect(await keyed(s, PAUSE, { key: 'a b' })).toMatchObject({
      status: 400,
      body: { code: 'IDEMPOTENCY_KEY_INVALID', type: 'about:blank' },
    });
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    s.engine.pause = async () => {
      begun.resolve();
      await release.promise;
      return { known: true };
    };
    const first = keyed(s, PAUSE, { key: 'k-2' });
    await begun.promise;
    expect(await keyed(s, PAUSE, { key: 'k-2' })).toMatchObject({
      status: 409,
      body: { code: 'IDEMPOTENCY_CONFLICT' },
      headers: { 'retry-after': '5' },
    });
    release.resolve();
    expect((await first).status).toBe(200);
  });

  it('is one of 20, of which one is processed', async () => {
    const s = await stage();
    await s.engine.start();
    const refused = Promise.withResolvers<void>();
    let effects = 0;
    s.engine.pause = async () => {
      effects += 1;
      await refused.promise;
      return { known: true };
    };
    const statuses: number[] = [];
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        statuses.push((await keyed(s, PAUSE)).status);
        if (statuses.length === 19) refused.resolve();
      }),
    );
    expect(effects).toBe(1);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([
      200,
      ...Array.from({ length: 19 }, () => 409),
    ]);
  });

  it('may be sent again after a failure of the service', async () => {
    const s = await stage();
    await s.engine.start();
    const pause = s.engine.pause.bind(s.engine);
    s.engine.pause = () => Promise.reject(new Error('a bug'));
    expect((await keyed(s, PAUSE)).status).toBe(500);
    s.engine.pause = pause;
    expect((await keyed(s, PAUSE)).status).toBe(200);
  });

  it('that took too long keeps its key until it is over', async () => {
    const s = await stage({ requestTimeoutMs: 20 });
    await s.engine.start();
    const release = Promise.withResolvers<void>();
    let effects = 0;
    s.engine.pause = async () => {
      await release.promise;
      effects += 1;
      return { known: true };
    };
    expect(await keyed(s, PAUSE)).toMatchObject({ status: 503, body: { code: 'TOO_SLOW' } });
    expect((await keyed(s, PAUSE)).status).toBe(409);
    release.resolve();
    await until(async () =>
      expect(await keyed(s, PAUSE)).toMatchObject({
        status: 410,
        body: { code: 'RESULT_NOT_STORED' },
      }),
    );
    expect(effects).toBe(1);
  });

  it('is not processed while the store is away', async () => {
    const idempotency = {
      ...memoryIdempotency(),
      claim: () => {
        throw new Error('connect ECONNREFUSED db.internal');
      },
    };
    const s = await stage({ idempotency });
    await s.engine.start();
    const away = await keyed(s, PAUSE);
    expect(away).toMatchObject({ status: 503, body: { code: 'NOT_STARTED' } });
    expect(await isPaused(s)).toBe(false);
    const still = await keyed(s, PAUSE);
    expect(still).toMatchObject({
      status: 503,
      body: { code: 'STORE_UNAVAILABLE' },
      headers: { 'retry-after': '5' },
    });
    expect(still.text).not.toContain('db.internal');
    expect(s.logged.join('')).toContain('db.internal');
    expect((await s.post(PAUSE, {})).status).toBe(200);
  });
});

describe('the key of a token', () => {
  const tokens: Token[] = (['ada', 'bob', 'eve'] as const).map((name) => ({
    name,
    role: name === 'eve' ? 'reader' : 'operator',
    sha256: hash('sha256', `token-of-${name}`),
  }));

  it('is not that of another one, and says nothing to whoever may not ask', async () => {
    const s = await stage({ tokens });
    await s.engine.start();
    let effects = 0;
    s.engine.pause = async () => ({ known: (effects += 1) > 0 });
    const ask = (name?: string) =>
      keyed(s, PAUSE, name === undefined ? {} : { token: `token-of-${name}` });
    expect((await ask('ada')).status).toBe(200);
    const bob = await ask('bob');
    expect(bob.headers).not.toHaveProperty('idempotency-replayed');
    expect(effects).toBe(2);
    expect((await ask('ada')).headers).toHaveProperty('idempotency-replayed');
    expect((await ask('eve')).status).toBe(403);
    expect((await ask('nobody')).status).toBe(401);
    expect((await ask()).status).toBe(401);
    expect(effects).toBe(2);
  });
});

describe('the document', () => {
  it('shows the key and its answers at every POST that changes something, and nowhere else', async () => {
    const { app } = await stage();
    const { paths } = documentOf(app) as Document;
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => ({ path, method, one })),
    );
    expect(operations.filter(({ method }) => method === 'post').length).toBeGreaterThan(15);
    const questions = /\/(simulate|preview|decide|criteria\/\{name\})$/;
    for (const { path, method, one } of operations) {
      const changes = method === 'post' && !questions.test(path);
      const { parameters = [] } = one as { parameters?: { name: string; in: string }[] };
      const isThere = parameters.some((each) => each.name === 'idempotency-key');
      expect(isThere, `${method} ${path}`).toBe(changes);
      const says = (status: number, code: string) =>
        one.responses[status]?.description.includes(code) ?? false;
      const isKeyed = changes && path !== '/api/v1/retries';
      expect(says(409, 'IDEMPOTENCY_CONFLICT'), `${method} ${path}`).toBe(isKeyed);
      expect(says(410, 'RESULT_NOT_STORED'), `${method} ${path}`).toBe(isKeyed);
      expect(says(422, 'IDEMPOTENCY_MISMATCH'), `${method} ${path}`).toBe(changes);
    }
  });

  it('leaves the key of a message to the message', async () => {
    const s = await stage();
    await s.engine.start();
    const body = { destination: 'queue:orders', payload: 1 };
    const first = await keyed(s, '/api/v1/retries', { body });
    const second = await keyed(s, '/api/v1/retries', { body });
    expect([first.status, second.status]).toEqual([202, 200]);
    expect(at(second.body, 'message_id')).toBe(at(first.body, 'message_id'));
    expect(second.headers).not.toHaveProperty('idempotency-replayed');
  });
});

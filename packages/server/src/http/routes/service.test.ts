import { tmpdir } from 'node:os';
import { createNotifications } from '@redrive/notifications';
import { memoryNotifications } from '@redrive/notifications/memory';
import { hash } from 'node:crypto';
import { createEngine } from '@redrive/engine';
import { memory, memoryDelayQueue } from '@redrive/engine/memory';
import { createTestBroker } from '@redrive/engine/testing';
import { describe, expect, it, vi } from 'vitest';
import { at, id, listAt, send, settings, stage, textAt } from '../harness.test.ts';

describe('lanes', () => {
  it('are listed with their state and their limits', async () => {
    const { get, post, engine } = await stage({
      engineOptions: { brokers: [createTestBroker()], store: memory() },
      lane: { concurrency: 7, timeout: '3s', rate: 5 },
    });
    await engine.start();
    await engine.submit({ kind: 'queue', address: 'a' }, 1, { dueAt: Date.now() + 1e6 });
    await engine.submit('https://a.example/', 1);
    expect(await post('/api/v1/lanes/queue:a/pause')).toMatchObject({
      status: 200,
      body: { lane: 'queue:a', paused: true },
    });
    const { body } = await get('/api/v1/lanes');
    expect(listAt(body, 'items')).toEqual([
      {
        lane: 'https://a.example',
        state: 'NO_HANDLER',
        running: 0,
        next_in_ms: expect.any(Number),
      },
      {
        lane: 'queue:a',
        state: 'paused',
        running: 0,
        next_in_ms: expect.any(Number),
        paused_by: 'local',
        limits: { concurrency: 7, timeout_ms: 3000, failures: 5, rate_per_second: 5 },
      },
    ]);
    expect(await post('/api/v1/lanes/queue:a/resume', {})).toMatchObject({
      body: { lane: 'queue:a', paused: false },
    });
    expect(await get('/api/v1/lanes')).toMatchObject({
      body: { items: [{}, { state: 'closed' }] },
    });
  });

  it('come page by page, by a filter, and with counts where they are wanted', async () => {
    const { get, engine } = await stage({ engineOptions: { brokers: [createTestBroker()] } });
    const dueAt = Date.now() + 1e6;
    for (const address of ['a', 'b', 'c']) {
      await engine.submit({ kind: 'queue', address }, 1, { dueAt });
    }
    await engine.submit('https://a.example/', 1, { dueAt });
    await engine.pause('queue:c');
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body } = await get(
        `/api/v1/lanes?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`,
      );
      const page = body as { items: { lane: string }[]; next_cursor: string | null };
      seen.push(...page.items.map(({ lane }) => lane));
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(['https://a.example', 'queue:a', 'queue:b', 'queue:c']);
    expect(await get('/api/v1/lanes?kind=queue&state=paused&counts=true')).toMatchObject({
      body: {
        items: [{ lane: 'queue:c' }],
        counts: { closed: 2, paused: 1, NO_HANDLER: 1, open: 0, blocked: 0 },
      },
    });
    expect(await get('/api/v1/lanes?prefix=queue:b')).toMatchObject({
      body: { items: [{ lane: 'queue:b' }], next_cursor: null },
    });
    expect(await get('/api/v1/lanes?state=ajar')).toMatchObject({ status: 400 });
    const cursor = Buffer.from('["lanes",7]').toString('base64url');
    expect(await get(`/api/v1/lanes?cursor=${cursor}`)).toMatchObject({
      status: 400,
      body: { code: 'INVALID_CURSOR' },
    });
  });

  it('of HTTP are named by their encoded origin, however long it is', async () => {
    const { post, audited } = await stage();
    const lane = `https://${'a'.repeat(60)}.${'b'.repeat(60)}.example`;
    const answer = await post(`/api/v1/lanes/${encodeURIComponent(lane)}/pause`);
    expect(answer).toMatchObject({ status: 200, body: { lane } });
    await audited({ action: 'pause', lane, by: 'local' });
  });

  it.each(['orders', '%00', encodeURIComponent('x'.repeat(513))])(
    'that cannot be are refused: %s',
    async (lane) => {
      const { post } = await stage();
      expect(await post(`/api/v1/lanes/${lane}/pause`)).toMatchObject({
        status: 400,
        body: { errors: [{ in: 'path', path: '/lane' }] },
      });
    },
  );
});

describe('simulations', () => {
  const url = '/api/v1/policies/simulate';

  it('show what a policy does to a service', async () => {
    const { post } = await stage();
    const answer = await post(url, {
      policy: { maxAttempts: 6, jitter: 'full' },
      clients: 100,
      outage_start: '1s',
      outage: 5000,
      retry_after: '1s',
      spread: '2s',
    });
    expect(answer).toMatchObject({
      status: 200,
      body: {
        attempts: expect.any(Number),
        outcomes: { served: expect.any(Number), timed_out: 0 },
        completion_ms: { p50: expect.any(Number) },
        ended_by: 'done',
        load: expect.arrayContaining([expect.objectContaining({ at_ms: 0 })]),
      },
    });
    const again = await post(url, JSON.parse('{"clients":5}'));
    expect(again.body).toEqual((await post(url, { clients: 5 })).body);
  });

  it('take a policy as a message would have it: the service’s, with the fields that are written', async () => {
    const { post } = await stage();
    const world = { clients: 20, outage: '3s' };
    const whole = { ...settings.policy, maxAttempts: 6 };
    const partial = await post(url, { ...world, policy: { maxAttempts: 6 } });
    expect(partial.status).toBe(200);
    expect(partial.body).toEqual((await post(url, { ...world, policy: whole })).body);
  });

  it('say nothing of those that never got through', async () => {
    const { post } = await stage();
    const answer = await post(url, { policy: 'patient', clients: 3, outage: '1d', horizon: '1s' });
    expect(answer).toMatchObject({ status: 200, body: { recovery_ms: null, succeeded: 0 } });
    expect(at(answer.body, 'completion_ms')).toBeUndefined();
  });

  it.each([
    [{ clients: 12_501 }, 'TOO_LARGE_SIMULATION', undefined],
    [{ clients: 10, policy: { maxAttempts: 1e9 } }, 'TOO_LARGE_SIMULATION', undefined],
    [
      { policy: { maxAttempts: 2, overrides: { HTTP_503: { maxAttempts: 60 } } } },
      'TOO_LARGE_SIMULATION',
      undefined,
    ],
    [{ policy: 'patent' }, 'UNKNOWN_POLICY', undefined],
    [{ policy: { jitter: 'fall' } }, 'INVALID_REQUEST', '/policy/jitter'],
    [{ outage: 'long' }, 'INVALID_REQUEST', '/outage'],
    [{ outage_start: 'late' }, 'INVALID_REQUEST', '/outage_start'],
    [{ clients: 0 }, 'INVALID_REQUEST', '/clients'],
    [{ limit: 1e9 }, 'INVALID_REQUEST', '/limit'],
  ])('are refused: %j', async (body, code, path) => {
    const { post } = await stage();
    const answer = await post(url, body);
    expect(answer).toMatchObject({ status: 400, body: { code } });
    expect(at(answer.body, 'errors', 0, 'path')).toBe(path);
  });
});

describe('the audit trail', () => {
  it('is read page by page, and filtered', async () => {
    const { ask, get, engine, audited } = await stage();
    for (const number of [1, 2]) {
      await engine.submit({ kind: 'queue', address: 'a' }, 1, { id: id(number) });
      const headers = { 'x-redrive-operator': 'ada' };
      await ask({ method: 'DELETE', url: `/api/v1/retries/${id(number)}`, headers });
    }
    await audited({ message_id: id(2), by: 'ada' });
    const first = await get('/api/v1/audit?limit=1&type=operator_action');
    expect(first).toMatchObject({
      status: 200,
      body: { items: [{ id: expect.any(Number), event: { action: 'cancel', message_id: id(2) } }] },
    });
    const cursor = textAt(first.body, 'next_cursor');
    expect(await get(`/api/v1/audit?type=operator_action&cursor=${cursor}`)).toMatchObject({
      body: { items: [{ event: { message_id: id(1) } }], next_cursor: null },
    });
    expect(await get(`/api/v1/audit?message_id=${id(1).toUpperCase()}`)).toMatchObject({
      body: { items: [{ event: { message_id: id(1) } }] },
    });
    const none = await get('/api/v1/audit?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z');
    expect(none).toMatchObject({ body: { items: [] } });
    expect(await get('/api/v1/audit?cursor=7')).toMatchObject({ body: { code: 'INVALID_CURSOR' } });
  });

  it('says so when it is off', async () => {
    const { get } = await stage({ audit: false });
    expect(await get('/api/v1/audit')).toMatchObject({
      status: 409,
      body: { code: 'AUDIT_UNREADABLE' },
    });
  });
});

describe('the service', () => {
  it('says what it is', async () => {
    const { get } = await stage();
    expect(await get('/')).toMatchObject({
      status: 200,
      body: {
        name: 'retry-scheduler',
        version: expect.stringMatching(/^\d/),
        instance: 'test-1',
        links: { openapi: '/openapi.json' },
      },
    });
  });

  it('shows commands on the page that ask its own port', async () => {
    const accept = { accept: 'text/html' };
    const pageOf = async (port: number) =>
      (await send((await stage({ port })).app, { url: '/', headers: accept })).text;
    expect(await pageOf(9001)).toContain('<pre>export REDRIVE_URL=http://127.0.0.1:9001\nredrive');
    expect(await pageOf(8086)).toContain('<pre>redrive submit');
  });

  it('gives a browser a page that says what it is, how it is, and where to go', async () => {
    const { app, readiness } = await stage();
    const checks = [{ name: 'store', ok: false, detail: 'It said <b>no</b>.' }];
    Object.assign(readiness, { ready: false, checks });
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
    const { status, headers, text } = await send(app, { url: '/', headers: { accept } });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/);
    for (const part of [
      'retry-scheduler',
      'not ready',
      'test-1',
      '/api/v1/review',
      '/openapi.json',
    ]) {
      expect(text).toContain(part);
    }
    expect(text).toContain('It said &#60;b&#62;no&#60;/b&#62;.');
    expect(text).not.toContain('<script');
    Object.assign(readiness, { ready: true, checks: [{ ...checks[0], ok: true }] });
    const warned = await send(app, { url: '/', headers: { accept } });
    expect(warned.text).toContain('>warning<');
  });

  it('links notifications and routing where they are on', async () => {
    const accept = 'text/html';
    const off = await stage();
    const pageOff = await send(off.app, { url: '/', headers: { accept } });
    expect(pageOff.text).not.toContain('/api/v1/notifications');
    expect((await off.get('/')).text).not.toContain('notifications');
    const notificationService = createNotifications({
      repository: memoryNotifications(),
      queues: { urgent: memoryDelayQueue(), bulk: memoryDelayQueue() },
      deliver: async () => undefined,
      consume: false,
    });
    const on = await stage({ notificationService, routingDir: tmpdir() });
    const pageOn = await send(on.app, { url: '/', headers: { accept } });
    expect(pageOn.text).toContain('href="/api/v1/notifications"');
    expect(pageOn.text).toContain('href="/api/v1/route/policies"');
    expect((await on.get('/')).body).toMatchObject({
      links: { notifications: '/api/v1/notifications', routing: '/api/v1/route/policies' },
    });
  });

  it('tells somebody without a token only that it is there', async () => {
    const { app, readiness } = await stage({
      tokens: [{ name: 'ada', role: 'reader', sha256: hash('sha256', 'secret') }],
    });
    Object.assign(readiness, {
      ready: false,
      checks: [{ name: 'store', ok: false, detail: 'db.internal' }],
    });
    const page = await send(app, { url: '/', headers: { accept: 'text/html' } });
    expect(page.status).toBe(200);
    expect(page.text).not.toContain('db.internal');
    expect(page.text).not.toContain('test-1');
    const { body } = await send(app, { url: '/' });
    expect(Object.keys(Object(body) as object)).toEqual(['name', 'links']);
  });

  it('lives, and says what is not ready', async () => {
    const { app, get, readiness } = await stage();
    expect(await get('/health/live')).toMatchObject({ status: 200, body: { status: 'ok' } });
    expect(await get('/health/ready')).toMatchObject({ status: 200, body: { ready: true } });
    const checks = [{ name: 'store', ok: false, detail: 'The store cannot be reached.' }];
    Object.assign(readiness, { ready: false, checks });
    expect(await get('/health/ready')).toMatchObject({
      status: 503,
      body: { ready: false, checks },
    });
    expect(await send(app, { method: 'HEAD', url: '/health/live' })).toMatchObject({
      status: 200,
      text: '',
    });
  });

  it('shows its numbers, and counts its answers by route', async () => {
    const { get, answered } = await stage();
    expect(await get('/metrics')).toMatchObject({ status: 200, text: 'retry_queue_depth 0\n' });
    await get(`/api/v1/retries/${id(1)}`);
    await get('/nowhere');
    expect(answered).toEqual([
      { method: 'GET', route: '/metrics', status: 200 },
      { method: 'GET', route: '/api/v1/retries/:message_id', status: 404 },
      { method: 'GET', route: 'unknown', status: 404 },
    ]);
  });
});

describe('a store that is away', () => {
  it('is 503, with other words before it was ever there', async () => {
    const store = memory();
    const away = Object.assign(new Error('connect ECONNREFUSED 10.1.2.3:5432'), {
      name: 'EngineError',
      code: 'STORE_UNAVAILABLE',
      faults: [],
    });
    const open = vi.spyOn(store, 'open').mockRejectedValueOnce(away);
    const { get, logged } = await stage({ engine: createEngine({ store }) });
    const early = await get('/api/v1/retries');
    expect(early).toMatchObject({ status: 503, body: { code: 'NOT_STARTED' } });
    expect(early.headers['retry-after']).toBe('5');
    expect(early.text).not.toContain('10.1.2.3');
    expect(logged.join('')).toContain('10.1.2.3');
    expect((await get('/api/v1/retries')).status).toBe(200);
    vi.spyOn(store, 'list').mockRejectedValueOnce(away);
    expect(await get('/api/v1/retries')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '5' },
      body: { code: 'STORE_UNAVAILABLE' },
    });
    expect(open).toHaveBeenCalledTimes(2);
  });
});

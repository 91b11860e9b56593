import { EngineError } from '@redrive/engine';
import { memoryDelayQueue } from '@redrive/engine/memory';
import { createNotifications, type NotificationOptions } from '@redrive/notifications';
import { memoryNotifications } from '@redrive/notifications/memory';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { at, listAt, stage, textAt } from '../harness.test.ts';

async function notified(options: Partial<NotificationOptions> = {}) {
  const clock = virtualClock(Date.UTC(2026, 0, 5, 12));
  const notifications = createNotifications({
    repository: memoryNotifications(),
    queues: { urgent: memoryDelayQueue({ clock }), bulk: memoryDelayQueue({ clock }) },
    deliver: async () => undefined,
    clock,
    consume: false,
    ...options,
  });
  await notifications.start();
  onTestFinished(() => notifications.stop());
  return { clock, ...(await stage({ notificationService: notifications })) };
}

const item = (more: object = {}) => ({
  recipient: { user_id: 'u1' },
  priority: 'high',
  notification: { title: 'Hello', body: 'World', badge: 3 },
  ...more,
});
const url = '/api/v1/notifications';
const failure = (more: object = {}) => ({ device_id: 'd1', attempt_number: 1, ...more });

describe('POST /api/v1/notifications', () => {
  it('creates, and answers with what is there for the same key', async () => {
    const { post } = await notified();
    const body = item({ idempotency_key: 'k1', ttl: 60, data: { a: 1 } });
    const created = await post(url, body);
    expect(created).toMatchObject({
      status: 201,
      body: {
        status: 'pending',
        retry_count: 0,
        ttl: 60,
        expires_at: '2026-01-05T12:01:00.000Z',
        source: 'api',
        notification: { badge: 3 },
      },
    });
    const again = await post(url, body);
    expect(again).toMatchObject({ status: 200, body: { id: at(created.body, 'id') } });
    expect(await post(url, { ...body, priority: 'low' })).toMatchObject({
      status: 422,
      body: { code: 'IDEMPOTENCY_KEY_REUSED' },
    });
  });

  it('refuses the same key by option', async () => {
    const { post } = await notified({ existing: 'conflict' });
    await post(url, item({ idempotency_key: 'k1' }));
    expect(await post(url, item({ idempotency_key: 'k1' }))).toMatchObject({
      status: 409,
      body: { code: 'NOTIFICATION_EXISTS' },
    });
  });

  it.each([
    [{ priority: 'urgent' }, 'UNKNOWN_PRIORITY', '/priority'],
    [
      { quiet_hours: { from: '22:00', to: '8', time_zone: 'UTC' } },
      'INVALID_QUIET_HOURS',
      '/quiet_hours/to',
    ],
    [
      { recipient: { user_id: 'u', quiet_hours: { from: '22:00', to: '08:00', time_zone: 'X' } } },
      'INVALID_QUIET_HOURS',
      '/recipient/quiet_hours/time_zone',
    ],
    [{ ttl: 5, expires_at: '2030-01-01T00:00:00Z' }, 'INVALID_NOTIFICATION', '/expires_at'],
    [{ id: 'a b' }, 'INVALID_NOTIFICATION', '/id'],
    [{ ttl: 0 }, 'INVALID_REQUEST', '/ttl'],
    [{ colour: 'red' }, 'INVALID_REQUEST', '/colour'],
    [{ recipient: {} }, 'INVALID_REQUEST', '/recipient/user_id'],
  ])('refuses %j with %s at %s', async (more, code, path) => {
    const { post } = await notified();
    const answer = await post(url, item(more));
    expect(answer).toMatchObject({ status: 400, body: { code } });
    expect(at(listAt(answer.body, 'errors')[0], 'path')).toBe(path);
  });

  it('rejects what is no object by itself, in a list of notifications and of reports', async () => {
    const { post } = await notified();
    const none = [null, 5, 'text', []];
    const many = await post(url, { items: [...none, item({ id: 'n1' })] });
    expect(many).toMatchObject({ status: 200, body: { accepted: [{ index: 4, id: 'n1' }] } });
    const indexes = (body: unknown) =>
      new Set(listAt(body, 'rejected').map((one) => at(one, 'index')));
    expect(indexes(many.body)).toEqual(new Set([0, 1, 2, 3]));
    const reports = [...none, failure({ notification_id: 'n1' })];
    const reported = await post(`${url}/failures`, { items: reports });
    expect(reported).toMatchObject({ status: 200, body: { accepted: [{ index: 4 }] } });
    expect(indexes(reported.body)).toEqual(new Set([0, 1, 2, 3]));
  });

  it('takes many, and rejects those with faults by themselves', async () => {
    const { post } = await notified();
    const answer = await post(url, {
      items: [item({ id: 'a' }), item({ priority: 'x' }), { nothing: 1 }, item({ id: 'a' })],
    });
    expect(answer.status).toBe(200);
    expect(at(answer.body, 'accepted')).toEqual([
      { index: 0, id: 'a', result: 'created', status: 'pending' },
      { index: 3, id: 'a', result: 'existing', status: 'pending' },
    ]);
    expect(listAt(answer.body, 'rejected')[0]).toMatchObject({
      index: 1,
      code: 'UNKNOWN_PRIORITY',
      path: '/priority',
    });
    expect(await post(url, { items: [{}] })).toMatchObject({
      status: 400,
      body: { code: 'ALL_REJECTED' },
    });
  });
});

describe('a value that cannot be made a text or a number', () => {
  const odd = { toString: null };

  it.each(['id', 'ttl', 'expires_at', 'scheduled_at', 'priority', 'source', 'data'])(
    'as the %s of a notification is its fault alone',
    async (field) => {
      const { post } = await notified();
      const wrong = field === 'data' ? [odd] : odd;
      const answer = await post(url, { items: [item({ [field]: wrong }), item({ id: 'b' })] });
      expect(answer).toMatchObject({ status: 200, body: { accepted: [{ index: 1, id: 'b' }] } });
      expect(listAt(answer.body, 'rejected')).toMatchObject([{ index: 0, path: `/${field}` }]);
    },
  );

  it.each(['device_id', 'attempt_number', 'attempted_at', 'retry_after_ms', 'error_code'])(
    'as the %s of a report is its fault alone',
    async (field) => {
      const { post } = await notified();
      await post(url, item({ id: 'n1' }));
      const answer = await post(`${url}/n1/failures`, failure({ [field]: odd }));
      expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } });
      expect(listAt(answer.body, 'errors')).toMatchObject([{ path: `/${field}` }]);
    },
  );
});

it('names the database of notifications where that is away, not the store', async () => {
  const repository = memoryNotifications();
  repository.create = () =>
    Promise.reject(new EngineError('STORE_UNAVAILABLE', 'connect ECONNREFUSED'));
  const { post } = await notified({ repository });
  const answer = await post(url, item());
  expect(answer).toMatchObject({ status: 503, body: { code: 'STORE_UNAVAILABLE' } });
  expect(at(answer.body, 'detail')).toContain('The database of notifications');
});

describe('reports', () => {
  it('are answered with the decision', async () => {
    const { post } = await notified();
    await post(url, item({ id: 'n1', priority: 'medium' }));
    const answer = await post(
      `${url}/n1/failures`,
      failure({ error_code: 'E', retry_after_ms: 400_000 }),
    );
    expect(answer).toMatchObject({
      status: 200,
      body: { decision: 'scheduled', lane: 'bulk', retry_count: 1, status: 'retrying' },
    });
    expect(at(answer.body, 'delay_ms')).toBeGreaterThanOrEqual(400_000);
    expect(Date.parse(textAt(answer.body, 'due_at'))).toBe(
      Date.UTC(2026, 0, 5, 12) + Number(at(answer.body, 'delay_ms')),
    );
    expect(await post(`${url}/n1/failures`, failure())).toMatchObject({
      body: { decision: 'duplicate', lane: 'bulk' },
    });
    expect(await post(`${url}/n1/successes`, failure())).toMatchObject({
      body: { decision: 'delivered', status: 'delivered' },
    });
    expect(await post(`${url}/n1/failures`, failure({ attempt_number: 2 }))).toMatchObject({
      body: { decision: 'duplicate', status: 'delivered' },
    });
  });

  it('of what nobody knows are refused', async () => {
    const { post } = await notified();
    await post(url, item({ id: 'n1', recipient: { user_id: 'u', device_ids: ['d1'] } }));
    expect(await post(`${url}/n2/failures`, failure())).toMatchObject({
      status: 404,
      body: { code: 'NOTIFICATION_UNKNOWN' },
    });
    expect(await post(`${url}/n1/failures`, failure({ device_id: 'x' }))).toMatchObject({
      status: 404,
      body: { code: 'DEVICE_UNKNOWN' },
    });
    expect(await post(`${url}/n1/failures`, failure({ attempt_number: 0 }))).toMatchObject({
      status: 400,
    });
    expect(
      await post(`${url}/n1/failures`, failure({ attempted_at: '2026-02-01T00:00:00Z' })),
    ).toMatchObject({
      status: 400,
      body: { code: 'INVALID_REPORT', errors: [{ path: '/attempted_at' }] },
    });
  });

  it('come in batches', async () => {
    const { post } = await notified();
    await post(url, { items: [item({ id: 'a' }), item({ id: 'b' })] });
    const one = { ...failure(), notification_id: 'a' };
    const answer = await post(`${url}/failures`, {
      items: [
        one,
        { ...one, notification_id: 'b' },
        { ...one, notification_id: 'c' },
        { notification_id: 'a' },
        one,
      ],
    });
    expect(answer.status).toBe(200);
    expect(
      listAt(answer.body, 'accepted').map((each) => [
        at(each, 'index'),
        at(each, 'notification_id'),
        at(each, 'decision'),
      ]),
    ).toEqual([
      [0, 'a', 'scheduled'],
      [1, 'b', 'scheduled'],
      [4, 'a', 'duplicate'],
    ]);
    expect(
      listAt(answer.body, 'rejected').map((each) => [at(each, 'index'), at(each, 'code')]),
    ).toEqual([
      [2, 'NOTIFICATION_UNKNOWN'],
      [3, 'MISSING_FIELD'],
      [3, 'MISSING_FIELD'],
    ]);
    const good = await post(`${url}/successes`, { items: [one, { ...one, notification_id: 'c' }] });
    expect(good.body).toMatchObject({
      accepted: [{ index: 0, decision: 'delivered', device_id: 'd1' }],
      rejected: [{ index: 1, code: 'NOTIFICATION_UNKNOWN' }],
    });
  });
});

describe('GET /api/v1/notifications', () => {
  it('lists the newest first, page by page, by status, priority and user', async () => {
    const { post, get, clock } = await notified();
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await post(
        url,
        item({
          id,
          priority: id === 'c' ? 'low' : 'high',
          recipient: { user_id: id === 'a' ? 'x' : 'u' },
        }),
      );
      if (id !== 'd') await clock.advance(1000);
    }
    await post(`${url}/b/failures`, failure());
    const ids = (body: unknown) => listAt(body, 'items').map((each) => at(each, 'id'));
    const first = await get(`${url}?limit=2`);
    expect(ids(first.body)).toEqual(['e', 'd']);
    const second = await get(`${url}?limit=2&cursor=${textAt(first.body, 'next_cursor')}`);
    expect(ids(second.body)).toEqual(['c', 'b']);
    const third = await get(`${url}?limit=2&cursor=${textAt(second.body, 'next_cursor')}`);
    expect(ids(third.body)).toEqual(['a']);
    expect(at(third.body, 'next_cursor')).toBeNull();
    expect(ids((await get(`${url}?status=retrying`)).body)).toEqual(['b']);
    expect(ids((await get(`${url}?priority=low`)).body)).toEqual(['c']);
    expect(ids((await get(`${url}?user_id=x`)).body)).toEqual(['a']);
    expect(await get(`${url}?cursor=x`)).toMatchObject({
      status: 400,
      body: { code: 'INVALID_CURSOR' },
    });
    expect(await get(`${url}/nobody`)).toMatchObject({ status: 404 });
  });

  it('shows the attempts of a status page by page', async () => {
    const { post, get } = await notified();
    await post(url, item({ id: 'n1' }));
    for (const attempt_number of [1, 2, 3])
      await post(`${url}/n1/failures`, failure({ attempt_number }));
    const first = await get(`${url}/n1/status?limit=2`);
    expect(listAt(first.body, 'attempts')).toHaveLength(2);
    const second = await get(
      `${url}/n1/status?limit=2&cursor=${textAt(first.body, 'next_cursor')}`,
    );
    expect(second.body).toMatchObject({ attempts: [{ attempt_number: 3 }], next_cursor: null });
  });

  it('asks for a role: reports need an operator, lists a reader', async () => {
    const { app } = await notified();
    const routes = (
      await app.inject({ url: '/openapi.json', headers: { host: '127.0.0.1' } })
    ).json() as {
      paths: Record<string, Record<string, { 'x-role': string }>>;
    };
    expect(routes.paths[url]?.['post']?.['x-role']).toBe('operator');
    expect(routes.paths[`${url}/{id}/failures`]?.['post']?.['x-role']).toBe('operator');
    expect(routes.paths[`${url}/{id}/status`]?.['get']?.['x-role']).toBe('reader');
  });
});

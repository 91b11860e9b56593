import { createTestEngine } from '@redrive/engine/testing';
import { describe, expect, it } from 'vitest';
import {
  at,
  id,
  listAt,
  settings,
  stage,
  type Stage,
  type StageOptions,
  textAt,
} from '../harness.test.ts';

const url = '/api/v1/review';

/** As many items as there are messages, by an app on that store. */
async function failed(count: number, options: StageOptions = {}): Promise<Stage> {
  const made = await stage(options);
  for (let i = 1; i <= count; i++) await fail(made, i);
  return made;
}

function fail({ post }: Stage, number: number, more: object = {}) {
  return post('/api/v1/retries', {
    message_id: id(number),
    destination: 'queue:orders',
    payload: { number },
    headers: { 'x-tenant': 'a' },
    retry_count: 0,
    classification: 'BUSINESS',
    error_reason: 'no such customer',
    ...more,
  });
}

describe.each(['memory', 'sqlite'] as const)('review, on %s', (store) => {
  it('lists what is open, page by page', async () => {
    const { get } = await failed(3, { store });
    const first = await get(`${url}?limit=2`);
    expect(first).toMatchObject({
      status: 200,
      body: {
        items: [
          {
            message_id: id(3),
            reason: 'PERMANENT',
            state: 'open',
            error: { class: 'business', message: 'no such customer' },
            destination: { kind: 'queue', address: 'orders' },
            queue: 'orders',
            lane: 'queue:orders',
            retry_count: 0,
            max_retries: 3,
            occurrences: 1,
            edited: false,
          },
          { message_id: id(2) },
        ],
      },
    });
    expect(first.text).not.toContain('payload');
    const next = await get(`${url}?limit=2&cursor=${textAt(first.body, 'next_cursor')}`);
    expect(next).toMatchObject({ body: { items: [{ message_id: id(1) }], next_cursor: null } });
  });

  it('filters', async () => {
    const made = await failed(1, { store });
    await fail(made, 2, { destination: 'https://a.example/x', classification: 'TECHNICAL' });
    await fail(made, 3, { ordering_key: 'k', error_reason: 'Disk full' });
    await made.engine.inbox.resolve(1);
    const ids = async (query: string) => {
      const { status, body } = await made.get(`${url}?${query}`);
      expect(status).toBe(200);
      return listAt(body, 'items').map((one) => at(one, 'message_id'));
    };
    expect(await ids('')).toEqual([id(3), id(2)]);
    expect(await ids('state=all')).toEqual([id(3), id(2), id(1)]);
    expect(await ids('state=resolved')).toEqual([id(1)]);
    expect(await ids('class=technical')).toEqual([id(2)]);
    expect(await ids('queue=orders')).toEqual([id(3)]);
    expect(await ids('lane=https://a.example')).toEqual([id(2)]);
    expect(await ids('key=k')).toEqual([id(3)]);
    expect(await ids('text=disk')).toEqual([id(3)]);
    expect(await ids('reason=EXHAUSTED')).toEqual([]);
    expect(await ids(`message_id=${id(2)}`)).toEqual([id(2)]);
    expect(await ids('from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z')).toEqual([]);
    const { body } = await made.get(`${url}/groups`);
    const group = textAt(listAt(body, 'items')[0], 'fingerprint');
    expect(await ids(`group=${group}`)).toHaveLength(1);
  });

  it('shows causes, and lets people write on them', async () => {
    const made = await failed(3, { store });
    await fail(made, 4, { destination: 'queue:other' });
    const first = await made.get(`${url}/groups?limit=1`);
    expect(first).toMatchObject({ body: { items: [{ lane: 'queue:other', open: 1 }] } });
    const rest = await made.get(`${url}/groups?cursor=${textAt(first.body, 'next_cursor')}`);
    expect(rest).toMatchObject({
      body: { items: [{ lane: 'queue:orders', open: 3, reason: 'PERMANENT' }], next_cursor: null },
    });
    expect(await made.get(`${url}/groups?queue=other&all=true`)).toMatchObject({
      body: { items: [{ lane: 'queue:other' }] },
    });
    const path = `${url}/groups/${textAt(rest.body, 'items', 0, 'fingerprint')}`;
    const body = { note: 'The customers were deleted.', owner: 'ada' };
    const noted = await made.ask({ method: 'PATCH', url: path, body });
    expect(noted).toMatchObject({ status: 200, body });
    const emptied = await made.ask({ method: 'PATCH', url: path, body: { note: '' } });
    expect(emptied).toMatchObject({ body: { owner: 'ada' } });
    expect(at(emptied.body, 'note')).toBeUndefined();
    expect(await made.ask({ method: 'PATCH', url: `${url}/groups/none`, body })).toMatchObject({
      status: 404,
      body: { code: 'ITEM_UNKNOWN' },
    });
  });

  it('shows one item with its payload and its executions', async () => {
    const { get } = await failed(1, { store });
    expect(await get(`${url}/1`)).toMatchObject({
      status: 200,
      body: {
        id: 1,
        payload: { number: 1 },
        headers: { 'x-tenant': 'a' },
        attempts: [{ attempt: 1, error: { class: 'business' } }],
      },
    });
    expect(await get(`${url}/2`)).toMatchObject({ status: 404, body: { code: 'ITEM_UNKNOWN' } });
  });

  it('edits, shows the difference, and replays', async () => {
    const { ask, get, engine } = await failed(1, { store });
    const edit = { payload: { number: 2 }, headers: {}, destination: 'queue:orders.v2' };
    const edited = await ask({
      method: 'PUT',
      url: `${url}/1/edit`,
      body: edit,
      headers: { 'x-redrive-operator': 'ada' },
    });
    expect(edited).toMatchObject({
      status: 200,
      body: {
        edited: true,
        payload: { number: 1 },
        edit: {
          payload: { number: 2 },
          headers: {},
          destination: { kind: 'queue', address: 'orders.v2' },
          by: 'ada',
        },
        difference: [
          { path: '/payload/number', before: 1, after: 2 },
          { path: '/headers/x-tenant', before: 'a' },
          { path: '/destination', before: 'queue:orders', after: 'queue:orders.v2' },
        ],
      },
    });
    const cleared = await ask({ method: 'DELETE', url: `${url}/1/edit` });
    expect(cleared).toMatchObject({ status: 200, body: { edited: false } });
    const replayed = await ask({
      method: 'POST',
      url: `${url}/1/replay`,
      body: { payload_base64: 'AP8=' },
    });
    expect(replayed).toMatchObject({
      status: 202,
      body: { state: 'replayed', closed_by: 'local' },
    });
    expect((await engine.get(id(1)))?.payload).toEqual(new Uint8Array([0, 255]));
    expect(await get('/api/v1/retries')).toMatchObject({
      body: { items: [{ generation: 1, status: 'pending' }] },
    });
  });

  it('closes, opens again, and erases', async () => {
    const { post } = await failed(1, { store });
    expect(await post(`${url}/1/resolve`)).toMatchObject({
      status: 200,
      body: { state: 'resolved', closed_by: 'local', closed_at: expect.any(String) },
    });
    expect(await post(`${url}/1/discard`)).toMatchObject({
      status: 409,
      body: { code: 'ITEM_CLOSED', detail: expect.stringContaining('resolved') },
    });
    expect(await post(`${url}/1/restore`)).toMatchObject({ body: { state: 'open' } });
    expect(await post(`${url}/1/discard`)).toMatchObject({ body: { state: 'discarded' } });
    expect(await post(`${url}/1/restore`)).toMatchObject({ body: { state: 'open' } });
    const erased = await post(`${url}/1/erase`);
    expect(erased).toMatchObject({ status: 200, body: { state: 'erased' } });
    const { not_reached: places } = erased.body as { not_reached: { what: string }[] };
    expect(places).toContainEqual({
      what: 'destination',
      why: 'Redrive cannot take back what was delivered to queue:orders.',
      todo: 'Erase it at the destination, if it was delivered.',
    });
    expect(places.map(({ what }) => what)).toContain('idempotency_keys');
    // No webhook is configured.
    expect(places.map(({ what }) => what)).not.toContain('entry_hook');
    expect(erased.text).not.toContain('no such customer');
    expect(await post(`${url}/2/erase`)).toMatchObject({ status: 404 });
  });

  it('does not erase what is on its way again', async () => {
    const { post } = await failed(1, { store });
    await post(`${url}/1/replay`, {});
    expect(await post(`${url}/1/erase`)).toMatchObject({
      status: 409,
      body: { code: 'ITEM_BUSY' },
    });
  });
});

describe('a message that could not be read', () => {
  it('is shown as bytes, and needs a destination to be replayed', async () => {
    const { get, post, engine } = await stage({ engine: await withUnreadable() });
    expect(await get(`${url}/1`)).toMatchObject({
      body: {
        reason: 'UNREADABLE',
        payload_base64: '/w==',
        destination: { kind: 'source', address: 'retry.scheduled' },
        attempts: [],
      },
    });
    expect(await post(`${url}/1/replay`)).toMatchObject({
      status: 400,
      body: { code: 'NO_DESTINATION' },
    });
    expect(await post(`${url}/1/replay`, { destination: 'queue:a', payload: 1 })).toMatchObject({
      status: 202,
    });
    expect(await engine.list({ limit: 10 })).toHaveLength(1);
  });
});

describe('faults of review', () => {
  it.each([
    ['GET', '?state=lost', undefined, '/state', 'INVALID_VALUE'],
    ['GET', '?reason=BAD', undefined, '/reason', 'INVALID_VALUE'],
    ['GET', '?class=bad', undefined, '/class', 'INVALID_VALUE'],
    ['GET', '?from=yesterday', undefined, '/from', 'INVALID_VALUE'],
    ['GET', '?from=2030-06-30T23:59:60Z', undefined, '/from', 'INVALID_FILTER'],
    ['GET', '?text=%00', undefined, '/text', 'INVALID_FILTER'],
    ['GET', '?key=%00', undefined, '/key', 'INVALID_FILTER'],
    ['GET', '?group=%00', undefined, '/group', 'INVALID_FILTER'],
    ['GET', `?key=${'%F0%9F%98%80'.repeat(300)}`, undefined, '/key', 'INVALID_FILTER'],
    ['GET', '?cursor=7', undefined, '/cursor', 'INVALID_CURSOR'],
    ['GET', '/groups?cursor=7', undefined, '/cursor', 'INVALID_CURSOR'],
    ['GET', '/groups?all=yes', undefined, '/all', 'INVALID_VALUE'],
    ['GET', '/x', undefined, '/id', 'INVALID_VALUE'],
    ['GET', '/0', undefined, '/id', 'INVALID_VALUE'],
    ['PATCH', '/groups/%00', { note: 'x' }, '/fingerprint', 'INVALID_FILTER'],
    ['PATCH', '/groups/x', {}, '', 'INVALID_VALUE'],
    ['PATCH', '/groups/x', { notes: 'x' }, '/notes', 'UNKNOWN_FIELD'],
    ['PUT', '/1/edit', {}, '', 'INVALID_VALUE'],
    ['PUT', '/1/edit', undefined, '', 'INVALID_VALUE'],
    ['PUT', '/1/edit', { headers: { a: 1 } }, '/headers/a', 'INVALID_VALUE'],
    ['PUT', '/1/edit', { destination: 'orders' }, '/destination', 'NO_DESTINATION'],
    ['PUT', '/1/edit', { payload: 1, payload_base64: '' }, '/payload', 'INVALID_VALUE'],
    ['POST', '/1/replay', { payload_base64: '!' }, '/payload_base64', 'INVALID_VALUE'],
    ['POST', '/1/replay', { to: 'queue:a' }, '/to', 'UNKNOWN_FIELD'],
    ['POST', '/1/resolve', { by: 'me' }, '/by', 'UNKNOWN_FIELD'],
    ['POST', '/1/resolve', null, '', 'INVALID_VALUE'],
    ['POST', '/1/replay', null, '', 'INVALID_VALUE'],
  ] as const)('are found in %s %s %j', async (method, path, body, place, code) => {
    const { ask } = await failed(1);
    const answer = await ask({ method, url: url + path, body });
    expect(answer.status).toBe(400);
    expect(listAt(answer.body, 'errors')).toEqual([
      expect.objectContaining({ in: partOf(path, body), path: place, code }),
    ]);
  });

  it('are an edit that is too large', async () => {
    const { ask } = await failed(1);
    const body = { payload: 'x'.repeat(settings.maxPayloadBytes) };
    expect(await ask({ method: 'PUT', url: `${url}/1/edit`, body })).toMatchObject({
      status: 413,
      body: { code: 'PAYLOAD_TOO_LARGE' },
    });
  });
});

/** Where the faults above are. */
function partOf(path: string, body: unknown): string {
  if (/^\/(x|0|groups\/%00)$/.test(path)) return 'path';
  return path.includes('?') && body === undefined ? 'query' : 'body';
}

/** An engine with one message in its inbox that nobody could read. */
async function withUnreadable() {
  const { createTestBroker } = await import('@redrive/engine/testing');
  const { itemOf, uuidOf } = await import('@redrive/engine');
  const broker = createTestBroker();
  const engine = createTestEngine({ brokers: [broker] });
  engine.consume({
    broker,
    source: 'retry.scheduled',
    read: ({ payload }) => ({
      type: 'unreadable',
      item: {
        ...itemOf('UNREADABLE', { class: 'technical' }, 'source:retry.scheduled'),
        messageId: uuidOf(Buffer.from(payload).toString('hex')),
        source: 'retry.scheduled',
        payload,
      },
    }),
  });
  broker.put('retry.scheduled', { payload: Uint8Array.of(255) });
  await engine.drain();
  return engine as never;
}

import { createTestEngine } from '@redrive/engine/testing';
import { describe, expect, it, vi } from 'vitest';
import { at, id, listAt, stage, type Stage, type StageOptions, textAt } from '../harness.test.ts';

const url = '/api/v1/review/bulk';

async function failed(count: number, options: StageOptions = {}): Promise<Stage> {
  const made = await stage(options);
  const items = Array.from({ length: count }, (_, i) => ({
    message_id: id(i + 1),
    destination: i % 2 === 0 ? 'queue:even' : 'queue:odd',
    payload: i,
    retry_count: 0,
    classification: 'BUSINESS',
  }));
  await made.post('/api/v1/retries', { items });
  return made;
}

/** Waits for the job that is in that state. */
function reached({ get }: Stage, job: number, state: string): Promise<void> {
  return vi.waitFor(
    async () => expect(at((await get(`${url}/${job}`)).body, 'state')).toBe(state),
    { timeout: 10_000 },
  );
}

describe.each(['memory', 'sqlite'] as const)('bulk jobs, on %s', (store) => {
  it('are shown before they are begun', async () => {
    const { post } = await failed(5, { store });
    expect(await post(`${url}/preview`, { filter: { queue: 'even' } })).toMatchObject({
      status: 200,
      body: {
        count: 3,
        sample: [{ message_id: id(5) }, { message_id: id(3) }, { message_id: id(1) }],
      },
    });
    expect(await post(`${url}/preview`, { ids: [2] })).toMatchObject({ body: { count: 1 } });
    expect(await post(`${url}/preview`, { all: true })).toMatchObject({ body: { count: 5 } });
  });

  it('close many items, and say what became of each', async () => {
    const made = await failed(3, { store });
    await made.engine.start();
    const started = await made.ask({
      method: 'POST',
      url,
      body: { action: 'discard', ids: [1, 2] },
      headers: { 'x-redrive-operator': 'ada' },
    });
    expect(started).toMatchObject({
      status: 202,
      headers: { location: `${url}/1` },
      body: { id: 1, action: 'discard', by: 'ada', canary: [], created_at: expect.any(String) },
    });
    await reached(made, 1, 'finished');
    expect(await made.get(`${url}/1`)).toMatchObject({
      body: { total: 2, done: 2, left: 0, finished_at: expect.any(String) },
    });
    expect(await made.get(url)).toMatchObject({ body: { items: [{ id: 1 }], next_cursor: null } });
    const first = await made.get(`${url}/1/members?limit=1`);
    expect(first).toMatchObject({ body: { items: [{ item_id: 1, result: 'done' }] } });
    const rest = await made.get(`${url}/1/members?cursor=${textAt(first.body, 'next_cursor')}`);
    expect(rest).toMatchObject({ body: { items: [{ item_id: 2 }], next_cursor: null } });
    expect(await made.get(`${url}/1/members?result=conflict`)).toMatchObject({
      body: { items: [] },
    });
    expect(await made.post(`${url}/1/pause`)).toMatchObject({
      status: 409,
      body: { code: 'JOB_OVER' },
    });
    await made.post(url, { action: 'resolve', filter: { queue: 'even' } });
    await reached(made, 2, 'finished');
    const newest = await made.get(`${url}?limit=1`);
    expect(newest).toMatchObject({ body: { items: [{ id: 2 }] } });
    const older = await made.get(`${url}?cursor=${textAt(newest.body, 'next_cursor')}`);
    expect(older).toMatchObject({ body: { items: [{ id: 1 }], next_cursor: null } });
    expect(await made.get(`${url}?cursor=7`)).toMatchObject({ body: { code: 'INVALID_CURSOR' } });
    expect(await made.get('/api/v1/review')).toMatchObject({ body: { items: [] } });
  });
});

describe('a bulk replay', () => {
  it('has a pace, a canary and another destination, and can be paused, carried on and ended', async () => {
    const engine = createTestEngine();
    const { post, get, audited } = await failed(3, { engine });
    const started = await post(url, {
      action: 'replay',
      filter: { class: 'business' },
      per_second: 0.5,
      canary: [1, 2],
      observe_ms: 1000,
      max_failures: 1,
      destination: 'queue:other',
    });
    expect(started).toMatchObject({
      status: 202,
      body: { action: 'replay', state: 'freezing', canary: [1, 2], step: 1, per_second: 0.5 },
    });
    expect(await post(`${url}/1/pause`)).toMatchObject({ status: 200, body: { state: 'paused' } });
    expect(await post(`${url}/1/resume`)).toMatchObject({ status: 200 });
    await engine.advance('10s');
    expect(await get(`${url}/1`)).toMatchObject({ body: { total: 3, done: 1 } });
    expect(await get('/api/v1/retries?queue=other')).toMatchObject({
      body: { items: [{ status: 'pending', job: 1 }] },
    });
    expect(await post(`${url}/1/cancel`)).toMatchObject({ body: { state: 'cancelled' } });
    expect(await post(`${url}/2/cancel`)).toMatchObject({
      status: 404,
      body: { code: 'JOB_UNKNOWN' },
    });
    expect(audited).toBeDefined();
  });
});

describe('faults of bulk jobs', () => {
  it.each([
    ['', {}, '/action', 'MISSING_FIELD'],
    ['', { action: 'replay' }, '', 'MISSING_FIELD'],
    ['', { action: 'replay', all: true, ids: [1] }, '', 'INVALID_VALUE'],
    ['', { action: 'replay', all: false }, '/all', 'INVALID_VALUE'],
    ['', { action: 'erase', all: true }, '/action', 'INVALID_VALUE'],
    ['', { action: 'replay', ids: [] }, '/ids', 'INVALID_VALUE'],
    ['', { action: 'replay', ids: ['1'] }, '/ids/0', 'INVALID_VALUE'],
    ['', { action: 'replay', filter: {} }, '', 'EMPTY_FILTER'],
    ['', { action: 'replay', filter: { queu: 'x' } }, '/filter/queu', 'UNKNOWN_FIELD'],
    ['', { action: 'replay', filter: { key: 'a\0' } }, '/filter/key', 'INVALID_FILTER'],
    ['', { action: 'replay', filter: { text: '\ud800' } }, '/filter/text', 'INVALID_FILTER'],
    ['/preview', { filter: { group: '\0' } }, '/filter/group', 'INVALID_FILTER'],
    ['', { action: 'replay', all: true, per_second: 0 }, '/per_second', 'INVALID_VALUE'],
    ['', { action: 'replay', all: true, canary: [0] }, '/canary/0', 'INVALID_VALUE'],
    ['', { action: 'replay', all: true, canary: 'yes' }, '/canary', 'INVALID_VALUE'],
    ['', { action: 'replay', all: true, destination: 'x' }, '/destination', 'NO_DESTINATION'],
    ['', { action: 'discard', all: true, canary: true }, '/canary', 'INVALID_VALUE'],
    ['/preview', {}, '', 'MISSING_FIELD'],
    ['/preview', { state: 'open' }, '/state', 'UNKNOWN_FIELD'],
  ])('are found in %s %j', async (path, body, place, code) => {
    const { post } = await failed(1);
    const answer = await post(url + path, body);
    expect(answer.status).toBe(400);
    expect(listAt(answer.body, 'errors')[0]).toMatchObject({ path: place, code });
  });

  it('are a filter that nothing matches', async () => {
    const { post } = await failed(1);
    expect(await post(url, { action: 'discard', ids: [9] })).toMatchObject({
      status: 409,
      body: { code: 'NOTHING_MATCHES' },
    });
  });

  it('are a job that is not there', async () => {
    const { get } = await failed(1);
    for (const path of ['/7', '/7/members']) {
      expect(await get(url + path)).toMatchObject({ status: 404, body: { code: 'JOB_UNKNOWN' } });
    }
    expect(await get(`${url}/7/members?cursor=x`)).toMatchObject({ status: 400 });
  });
});

import { evaluateCriterion, type CriterionName, criterionNames } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { wireAnswer } from '../../criteria/wire.ts';
import { at, listAt, stage, textAt } from '../harness.test.ts';

const path = (name: string) => `/api/v1/criteria/${name}`;
const nowMs = Date.UTC(2030, 0, 31, 12, 2);
const entity = {
  id: 'order-7',
  lastAttemptTime: '2030-01-31T12:00:00Z',
  retryDelaySeconds: 60,
  attemptCount: 2,
  jitterEnabled: false,
};

describe('POST /api/v1/criteria/{name}', () => {
  it('answers for one entity', async () => {
    const { post } = await stage({ clock: virtualClock(nowMs) });
    const { status, body, headers } = await post(path('isRetryDelayElapsed'), { entity });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(body).toEqual({
      matches: true,
      reason: 'BACKOFF_ELAPSED',
      delay_ms: 120_000,
      elapsed_ms: 120_000,
      due_at: '2030-01-31T12:02:00.000Z',
      errors: [],
      warnings: [],
    });
  });

  it.each([
    ['isMaxRetriesExceeded', true, 'RETRIES_EXHAUSTED'],
    ['hasRetriesAvailable', false, 'RETRIES_EXHAUSTED'],
  ])('answers for %s', async (name, matches, reason) => {
    const { post } = await stage();
    const { body } = await post(path(name), { entity: { attemptCount: 3, maxRetries: 3 } });
    const counts = { attempt_count: 3, limit: 3 };
    expect(body).toEqual({ matches, reason, ...counts, errors: [], warnings: [] });
  });

  it('answers for many in order, where one bad entity spoils no other', async () => {
    const { post } = await stage({ clock: virtualClock(nowMs) });
    const entities = [entity, null, 'text', { ...entity, lastAttemptTime: 'yesterday' }, 7, entity];
    const { status, body } = await post(path('isRetryDelayElapsed'), { entities });
    expect(status).toBe(200);
    const found = listAt(body, 'items').map((one) => [
      at(one, 'matches'),
      at(one, 'errors', 0, 'code'),
    ]);
    expect(found).toEqual([
      [true, undefined],
      [false, 'DATA_UNAVAILABLE'],
      [false, 'DATA_UNAVAILABLE'],
      [false, 'INVALID_TIME'],
      [false, 'DATA_UNAVAILABLE'],
      [true, undefined],
    ]);
  });

  it('answers for none and for 10 000, and refuses one more', async () => {
    const { post } = await stage();
    const url = path('hasRetriesAvailable');
    expect((await post(url, { entities: [] })).body).toEqual({ items: [] });
    const many = Array.from({ length: 10_000 }, () => ({ attemptCount: 1 }));
    expect(listAt((await post(url, { entities: many })).body, 'items')).toHaveLength(10_000);
    const refused = await post(url, { entities: [...many, {}] });
    expect(refused.status).toBe(400);
    expect(at(refused.body, 'errors', 0)).toMatchObject({
      path: '/entities',
      message: 'At most 10000 entries are allowed.',
    });
  });

  it('takes entity_id as the key of the jitter, before the id of the entity', async () => {
    const { post } = await stage();
    const jittered = { ...entity, jitterEnabled: true, currentTime: '2030-01-31T12:01:00Z' };
    const delayOf = async (body: object) =>
      textAt((await post(path('isRetryDelayElapsed'), body)).body, 'delay_ms');
    const own = await delayOf({ entity: jittered });
    expect(await delayOf({ entity: jittered, entity_id: 'order-7' })).toBe(own);
    expect(await delayOf({ entity: jittered, entity_id: 'order-8' })).not.toBe(own);
    expect(await delayOf({ entity: { ...jittered, id: 'order-8' } })).toBe(
      await delayOf({ entity: jittered, entity_id: 'order-8' }),
    );
  });

  it('uses the configured settings, the set of the operation type or of the context, and those of the request', async () => {
    const criteria = {
      enableJitter: false,
      enableExponentialBackoff: false,
      defaultRetryDelaySeconds: 10,
      sets: { PAYMENT: { defaultRetryDelaySeconds: 20 }, slow: { defaultRetryDelaySeconds: 30 } },
    };
    const { post } = await stage({ criteria });
    const { lastAttemptTime } = entity;
    const delayOf = async (more: object, fields: object = {}) => {
      const body = { entity: { lastAttemptTime, ...fields }, ...more };
      return at((await post(path('isRetryDelayElapsed'), body)).body, 'delay_ms');
    };
    expect(await delayOf({})).toBe(10_000);
    expect(await delayOf({}, { operationType: 'PAYMENT' })).toBe(20_000);
    expect(await delayOf({ context: 'slow' })).toBe(30_000);
    expect(await delayOf({ context: 'slow' }, { operationType: 'PAYMENT' })).toBe(20_000);
    const settings = { defaultRetryDelaySeconds: 5 };
    expect(await delayOf({ settings })).toBe(5000);
    expect(await delayOf({ settings }, { operationType: 'PAYMENT' })).toBe(5000);
    const own = { sets: { PAYMENT: { defaultRetryDelaySeconds: 7 } } };
    expect(await delayOf({ settings: own }, { operationType: 'PAYMENT' })).toBe(7000);
    expect(await delayOf({ settings: { sets: {} } }, { operationType: 'slow' })).toBe(30_000);
    expect(await delayOf({})).toBe(10_000);
  });

  it.each(criterionNames)('gives the answer of the library: %s', async (name: CriterionName) => {
    const clock = virtualClock(nowMs);
    const { post } = await stage({ clock });
    for (const one of [entity, {}, [], { ...entity, currentTime: '2030-01-31T12:00:30' }]) {
      const { body } = await post(path(name), { entity: one });
      const options = { nowMs: () => clock.now(), monotonicMs: () => 0, seed: 0 };
      expect(body).toEqual(wireAnswer(evaluateCriterion(name, one, undefined, options)));
    }
  });
});

describe('a request that is not such a body', () => {
  it.each([
    [{}, '/entity', 'MISSING_FIELD', 'It is missing. Give entity, or entities for many.'],
    [{ entity: {}, entities: [] }, '/entities', 'INVALID_VALUE', /Both entity and entities/],
    [{ entities: [], entity_id: 'a' }, '/entity_id', 'INVALID_VALUE', /belongs to entity/],
    [{ entities: {} }, '/entities', 'INVALID_VALUE', 'A list is needed.'],
    [{ entity: {}, entity_id: 7 }, '/entity_id', 'INVALID_VALUE', 'A text is needed.'],
    [{ entity: {}, entity_id: '' }, '/entity_id', 'INVALID_VALUE', /At least 1 character/],
    [{ entity: {}, setings: {} }, '/setings', 'UNKNOWN_FIELD', /Did you mean 'settings'\?/],
    [{ entity: {}, settings: 7 }, '/settings', 'INVALID_VALUE', 'An object is needed.'],
    [{ entity: {}, settings: [] }, '/settings', 'INVALID_VALUE', 'An object is needed.'],
    [
      { entity: {}, settings: { enableJiter: true } },
      '/settings/enableJiter',
      'UNKNOWN_FIELD',
      /Did you mean 'enableJitter'\?/,
    ],
  ])('is refused with its place: %j', async (body, place, code, message) => {
    const { post } = await stage();
    const answer = await post(path('isRetryDelayElapsed'), body);
    expect(answer.status).toBe(400);
    expect(at(answer.body, 'code')).toBe('INVALID_REQUEST');
    const fault = listAt(answer.body, 'errors').find((one) => at(one, 'path') === place);
    expect(fault).toMatchObject({ code, in: 'body' });
    expect(textAt(fault, 'message')).toMatch(message);
  });

  it('is told all faults of its settings', async () => {
    const { post } = await stage();
    const settings = {
      defaultRetryDelaySeconds: '60',
      jitterPercentage: 7,
      sets: { A: { responseTimeoutMs: 0 } },
    };
    const { body } = await post(path('isRetryDelayElapsed'), { entity: {}, settings });
    expect(listAt(body, 'errors').map((one) => at(one, 'path'))).toEqual([
      '/settings/defaultRetryDelaySeconds',
      '/settings/jitterPercentage',
      '/settings/sets/A/responseTimeoutMs',
    ]);
  });

  it.each([
    ['{"entity": ', 'INVALID_JSON', 400],
    ['[]', 'INVALID_REQUEST', 400],
    ['null', 'INVALID_REQUEST', 400],
    ['7', 'INVALID_REQUEST', 400],
    ['', 'INVALID_REQUEST', 400],
    [`{"entity": ${'['.repeat(600)}${']'.repeat(600)}}`, 'JSON_TOO_DEEP', 400],
    [`{"entity": "${'x'.repeat(10 * 1024 * 1024)}"}`, 'BODY_TOO_LARGE', 413],
  ])('has a code: %#', async (text, code, status) => {
    const { ask } = await stage();
    const answer = await ask({
      method: 'POST',
      url: path('isRetryDelayElapsed'),
      text,
      headers: { 'content-type': 'application/json' },
    });
    expect([answer.status, at(answer.body, 'code')]).toEqual([status, code]);
  });

  it('is not JSON by its type', async () => {
    const { ask } = await stage();
    const headers = { 'content-type': 'text/plain' };
    const url = path('isRetryDelayElapsed');
    const answer = await ask({ method: 'POST', url, text: '{}', headers });
    expect([answer.status, at(answer.body, 'code')]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  });

  it.each(['isRetryDelayElapse', 'isretrydelayelapsed', 'toString', '__proto__'])(
    'names no criterion: %s',
    async (name) => {
      const { post, get } = await stage();
      const answer = await post(path(name), { entity: {} });
      expect([answer.status, at(answer.body, 'code')]).toEqual([404, 'CRITERION_UNKNOWN']);
      expect((await get(`${path(name)}/recent`)).status).toBe(404);
    },
  );

  it('is told which criterion was meant', async () => {
    const { post } = await stage();
    const { body } = await post(path('isRetryDelayElapse'), { entity: {} });
    expect(textAt(body, 'detail')).toContain("Did you mean 'isRetryDelayElapsed'?");
  });
});

describe('odd entities', () => {
  it.each([
    ['a time without zone', { lastAttemptTime: '2030-01-31T12:00:00' }, 'ZONE_MISSING', undefined],
    ['numbers as texts', { ...entity, retryDelaySeconds: '60' }, 'DEFAULT_USED', undefined],
    ['a date out of range', { lastAttemptTime: '2030-13-41T12:00:00Z' }, undefined, 'INVALID_TIME'],
    ['no payload', {}, undefined, 'DATA_UNAVAILABLE'],
    ['a future attempt', { lastAttemptTime: '2031-01-01T00:00:00Z' }, 'CLOCK_SKEW', undefined],
  ])('are answered: %s', async (_, one, warning, error) => {
    const { post } = await stage({ clock: virtualClock(nowMs) });
    const { status, body } = await post(path('isRetryDelayElapsed'), { entity: one });
    expect(status).toBe(200);
    const codes = (list: string) => listAt(body, list).map((note) => at(note, 'code'));
    expect([...codes('warnings'), undefined]).toContain(warning);
    expect(codes('errors')).toEqual(error === undefined ? [] : [error]);
  });

  it('with prototype keys change nothing', async () => {
    const { ask } = await stage();
    const text =
      '{"entity": {"__proto__": {"lastAttemptTime": "2030-01-31T12:00:00Z"}, "constructor": {"prototype": {"x": 1}}}, "settings": {"sets": {"__proto__": {"enableJitter": false}}}}';
    const url = path('isRetryDelayElapsed');
    const headers = { 'content-type': 'application/json' };
    const { status, body } = await ask({ method: 'POST', url, text, headers });
    expect([status, at(body, 'errors', 0, 'code')]).toEqual([200, 'DATA_UNAVAILABLE']);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    expect(({} as Record<string, unknown>)['enableJitter']).toBeUndefined();
  });

  it('with numbers that a double cannot hold are read as the library reads them', async () => {
    const { ask } = await stage();
    const one =
      '{"lastAttemptTime":"2030-01-31T12:00:00Z","retryDelaySeconds":12345678901234567890}';
    const headers = { 'content-type': 'application/json' };
    const url = path('isRetryDelayElapsed');
    const { body } = await ask({ method: 'POST', url, text: `{"entity":${one}}`, headers });
    const expected = evaluateCriterion('isRetryDelayElapsed', JSON.parse(one));
    expect(at(body, 'delay_ms')).toBe(wireAnswer(expected)['delay_ms' as never]);
  });
});

describe('the list of criteria', () => {
  it('has the settings in force', async () => {
    const criteria = {
      profile: 'development',
      enableJitter: false,
      sets: { PAYMENT: { defaultRetryDelaySeconds: 20 } },
    } as const;
    const { get } = await stage({ criteria });
    const { body } = await get('/api/v1/criteria');
    expect(body).toMatchObject({
      items: criterionNames.map((name) => ({ name })),
      profile: 'development',
      settings: { defaultRetryDelaySeconds: 5, enableJitter: false, jitterPercentage: 0.1 },
      sets: { PAYMENT: { defaultRetryDelaySeconds: 20, enableJitter: false } },
      review: true,
    });
  });
});

describe('the last answers', () => {
  it('are explained, the newest first, at most 100, without the entity', async () => {
    const clock = virtualClock(nowMs);
    const { get, post } = await stage({ clock });
    const url = path('isRetryDelayElapsed');
    expect((await get(`${url}/recent`)).body).toEqual({ items: [] });
    for (let i = 0; i < 101; i++) {
      await post(url, { entity: { ...entity, secret: 'hunter2' }, entity_id: `e-${i}` });
    }
    await post(url, { entity: { note: 'hunter2' } });
    const { body, text } = await get(`${url}/recent`);
    expect(text).not.toContain('hunter2');
    const items = listAt(body, 'items');
    expect(items).toHaveLength(100);
    expect(items[0]).toMatchObject({
      entity_id: null,
      explanation: 'DATA_UNAVAILABLE: lastAttemptTime is missing.',
    });
    expect(items[1]).toMatchObject({
      at: '2030-01-31T12:02:00.000Z',
      entity_id: 'e-100',
      matches: true,
      explanation:
        'The delay of 2 min after 2030-01-31T12:00:00Z is over now, at 2030-01-31T12:02:00Z.',
    });
    expect(items[99]).toMatchObject({ entity_id: 'e-2' });
    expect((await get(`${path('hasRetriesAvailable')}/recent`)).body).toEqual({ items: [] });
  });
});

describe('who may ask', () => {
  it('is whoever may read', async () => {
    const { hash } = await import('node:crypto');
    const tokens = [{ name: 'flow', role: 'reader' as const, sha256: hash('sha256', 'secret') }];
    const { ask } = await stage({ tokens });
    const url = path('hasRetriesAvailable');
    const body = { entity: { attemptCount: 1 } };
    expect((await ask({ method: 'POST', url, body })).status).toBe(401);
    const headers = { authorization: 'Bearer secret' };
    expect((await ask({ method: 'POST', url, body, headers })).status).toBe(200);
  });

  it('has a limit of its own, apart from that of other requests', async () => {
    const { get, post } = await stage({ rateLimit: 2, criterionRateLimit: 4 });
    const url = path('hasRetriesAvailable');
    const ask = async () => (await post(url, { entity: {} })).status;
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual([200, 200, 200, 200]);
    expect(await ask()).toBe(429);
    expect((await get('/api/v1/criteria')).status).toBe(200);
  });
});

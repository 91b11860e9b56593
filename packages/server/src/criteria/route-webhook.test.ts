import { EngineError } from '@redrive/engine';
import pino from 'pino';
import type { CriterionErrorCode } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { RouteWebhook } from './route-webhook.ts';

const url = 'https://hooks.example.com/operations';

function routeOf() {
  const clock = virtualClock(Date.UTC(2030, 0, 31));
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const base = { url, serviceName: 'retry-scheduler', instance: 'i-1', clock, log };
  const route = new RouteWebhook({ ...base, audience: 'operations' });
  const sent: { body: Record<string, unknown>; key: string | undefined }[] = [];
  const engine = { fails: undefined as Error | undefined, waits: undefined as unknown };
  route.attach({
    submit: async (_: unknown, body: unknown, options?: { dedupeKey?: string }) => {
      await engine.waits;
      if (engine.fails) throw engine.fails;
      sent.push({ body: body as Record<string, unknown>, key: options?.dedupeKey });
      return { id: '', status: 'accepted' };
    },
  } as never);
  const add = (code: CriterionErrorCode = 'INVALID_TIME', entityId = 'order-7') =>
    route.add({
      criterion: 'isRetryDelayElapsed',
      error: { code, message: 'no time' },
      entityId,
      attempt: 1,
    });
  return { clock, route, sent, add, engine, lines };
}

it('tells the first at once, the rest once a minute, and only what is of its audience', async () => {
  const { clock, sent, add } = routeOf();
  add();
  add('CALCULATION_ERROR');
  await clock.advance(0);
  expect(sent.map(({ body }) => body)).toEqual([
    {
      event: 'criterion_errors',
      audience: 'operations',
      service: 'retry-scheduler',
      instance: 'i-1',
      criterion: 'isRetryDelayElapsed',
      code: 'INVALID_TIME',
      message: 'no time',
      count: 1,
      first_at: '2030-01-31T00:00:00.000Z',
      last_at: '2030-01-31T00:00:00.000Z',
      entity_id: 'order-7',
    },
  ]);
  await clock.advance(10_000);
  for (let i = 0; i < 5; i++) add('INVALID_TIME', `e-${i}`);
  add('DATA_UNAVAILABLE');
  await clock.advance(50_000);
  expect(sent.map(({ body }) => [body['code'], body['count'], body['entity_id']])).toEqual([
    ['INVALID_TIME', 1, 'order-7'],
    ['DATA_UNAVAILABLE', 1, 'order-7'],
    ['INVALID_TIME', 5, 'e-4'],
  ]);
  expect(sent[2]!.body['first_at']).toBe('2030-01-31T00:00:10.000Z');
  expect(new Set(sent.map(({ key }) => key)).size).toBe(3);
  // Two quiet minutes later a failure is the first again.
  await clock.advance(120_000);
  add();
  await clock.advance(0);
  expect(sent).toHaveLength(4);
});

it('tells of what it could not tell in the next minute', async () => {
  const { clock, sent, add, engine, lines } = routeOf();
  engine.fails = new EngineError('STORE_UNAVAILABLE', 'away');
  add();
  await clock.advance(30_000);
  add();
  expect(sent).toEqual([]);
  expect(lines.join('')).toContain('could not be told');
  engine.fails = undefined;
  await clock.advance(30_000);
  expect(sent.map(({ body }) => [body['count'], body['first_at']])).toEqual([
    [2, '2030-01-31T00:00:00.000Z'],
  ]);
});

it('counts what failed while it could not tell of those before', async () => {
  const { clock, sent, add, engine } = routeOf();
  const answer = Promise.withResolvers<void>();
  engine.fails = new EngineError('STORE_UNAVAILABLE', 'away');
  engine.waits = answer.promise;
  add();
  await clock.advance(10_000);
  add();
  add();
  answer.resolve();
  await clock.advance(20_000);
  engine.fails = undefined;
  await clock.advance(30_000);
  expect(sent.map(({ body }) => [body['count'], body['first_at'], body['last_at']])).toEqual([
    [3, '2030-01-31T00:00:00.000Z', '2030-01-31T00:00:10.000Z'],
  ]);
});

it('stops without a trace', async () => {
  const { clock, sent, add, route, engine } = routeOf();
  engine.fails = new EngineError('ENGINE_STOPPED', 'stopped');
  add();
  await clock.advance(0);
  route.stop();
  await clock.advance(120_000);
  expect(sent).toEqual([]);
});

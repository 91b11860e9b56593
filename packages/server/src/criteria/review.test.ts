/** Failed evaluations as items of the inbox, on every store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEngine, type EngineEvent, type InboxItem, type Store } from '@redrive/engine';
import { memory } from '@redrive/engine/memory';
import { postgres } from '@redrive/engine/postgres';
import { sqlite } from '@redrive/engine/sqlite';
import { describePostgres } from '@redrive/services/vitest';
import pino from 'pino';
import { systemClock } from 'redrive/internal';
import { afterEach, describe, expect, it } from 'vitest';
import { settings } from '../http/harness.test.ts';
import { CriterionCounts } from '../observe/metrics/criterion-counts.ts';
import { createMetricSet } from '../observe/metrics/registry.ts';
import { createCriteria } from './index.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

async function stageOn(store: Store, more: Partial<typeof settings> = {}) {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const counts = new CriterionCounts(createMetricSet());
  const all = { ...settings, ...more };
  const criteria = createCriteria({
    settings: all,
    instance: 'test-1',
    clock: systemClock,
    log,
    counts,
  });
  const ended: EngineEvent[] = [];
  const engine = createEngine({
    store,
    deliveries: [criteria.delivery],
    audit: true,
    review: () => undefined,
    log: quiet,
    on: (event) => {
      if (event.type === 'done' || event.type === 'failed') ended.push(event);
    },
  });
  criteria.attach(engine);
  await engine.start();
  criteria.started();
  cleanups.push(async () => {
    await criteria.stop();
    await engine.stop();
  });
  const { evaluator } = criteria;
  const items = async (): Promise<InboxItem[]> =>
    (await engine.inbox.items({ state: 'open' })).items;
  const written = async (count: number, occurrences = count) => {
    await expect
      .poll(async () => {
        const open = await items();
        return [open.length, open.reduce((sum, one) => sum + one.occurrences, 0)];
      })
      .toEqual([count, occurrences]);
    return items();
  };
  const happened = async (type: EngineEvent['type']) => {
    await expect.poll(() => ended.map((event) => event.type)).toContain(type);
  };
  return { criteria, evaluator, engine, written, items, lines, ended, happened };
}

const quiet = Object.fromEntries(
  ['debug', 'info', 'warn', 'error'].map((level) => [level, () => undefined]),
) as never;

const broken = { id: 'order-7', lastAttemptTime: 'yesterday', attemptCount: 2 };

function suite(storeOf: () => Promise<Store>): void {
  it('is one item per entity and code, with the entity as payload', async () => {
    const { evaluator, engine, written } = await stageOn(await storeOf());
    const result = evaluator.evaluate('isRetryDelayElapsed', { entity: broken });
    expect(result.matches).toBe(false);
    const [item] = await written(1);
    expect(item).toMatchObject({
      reason: 'EVALUATION_FAILED',
      lane: 'criterion:isRetryDelayElapsed',
      destination: { kind: 'criterion', address: 'isRetryDelayElapsed' },
      failure: { class: 'business', code: 'INVALID_TIME' },
      state: 'open',
      occurrences: 1,
    });
    expect(JSON.parse(Buffer.from(item!.payload).toString())).toEqual(broken);
    // The same again, several at once and one later: one more occurrence each, and no record for each.
    for (let i = 0; i < 3; i++) evaluator.evaluate('isRetryDelayElapsed', { entity: broken });
    await written(1, 4);
    evaluator.evaluate('isRetryDelayElapsed', { entity: { ...broken, attemptCount: 3 } });
    await written(1, 5);
    expect(await engine.inbox.attempts(item!.taskId!)).toHaveLength(1);
    // Another code, entity or criterion is another item.
    evaluator.evaluate('isRetryDelayElapsed', { entity: { id: 'order-7' } });
    evaluator.evaluate('isRetryDelayElapsed', { entity: broken, entityId: 'order-8' });
    evaluator.evaluate('isMaxRetriesExceeded', { entity: { id: 'order-7' } });
    await written(4, 8);
  });

  it('is grouped by code and criterion, whatever the entity says', async () => {
    const { evaluator, engine, written } = await stageOn(await storeOf());
    const times = ["it's", '"quoted"', '2030-99-99T00:00:00Z', 7, [], 'x'.repeat(900)];
    for (const [i, lastAttemptTime] of times.entries()) {
      evaluator.evaluate('isRetryDelayElapsed', { entity: { id: i, lastAttemptTime } });
    }
    const currentTime = 'never';
    const lastAttemptTime = '2030-01-31T12:00:00Z';
    evaluator.evaluate('isRetryDelayElapsed', {
      entity: { id: 'c', lastAttemptTime, currentTime, extra: 'x'.repeat(100_000) },
    });
    evaluator.evaluate('isRetryDelayElapsed', { entity: { id: 'd' } });
    evaluator.evaluate('hasRetriesAvailable', { entity: { id: 'd' } });
    evaluator.evaluate('hasRetriesAvailable', { entity: { id: 'e', attemptCount: -1 } });
    await written(times.length + 4);
    const groups = await engine.inbox.groups();
    const shown = groups.map(({ lane, failure, open }) => `${lane} ${failure.code} ${open}`);
    expect(shown.sort()).toEqual([
      'criterion:hasRetriesAvailable DATA_UNAVAILABLE 2',
      'criterion:isRetryDelayElapsed DATA_UNAVAILABLE 1',
      `criterion:isRetryDelayElapsed INVALID_TIME ${times.length + 1}`,
    ]);
  });

  it('is evaluated again by a replay: it comes back while it fails, and is done once it works', async () => {
    const { evaluator, engine, criteria, written, items, happened } = await stageOn(
      await storeOf(),
    );
    evaluator.evaluate('isRetryDelayElapsed', { entity: broken });
    const [item] = await written(1);
    await engine.inbox.replay(item!.id, { by: 'ann' });
    await happened('failed');
    const [back] = await written(1);
    expect(back).toMatchObject({ reason: 'EVALUATION_FAILED', failure: { code: 'INVALID_TIME' } });
    expect(back!.failure.message).toBe(item!.failure.message);
    expect(await engine.inbox.groups()).toHaveLength(1);
    const payload = { ...broken, lastAttemptTime: '2020-01-31T12:00:00Z' };
    await engine.inbox.replay(back!.id, { payload });
    await happened('done');
    expect(await items()).toEqual([]);
    expect((await engine.inbox.item(back!.id))?.state).toBe('replayed');
    const [last] = criteria.recent.of('isRetryDelayElapsed');
    expect(last).toMatchObject({ entityId: 'order-7', result: { matches: true } });
    // It fails once more after all: a new item.
    evaluator.evaluate('isRetryDelayElapsed', { entity: broken });
    const [again] = await written(1);
    expect(again!.reason).toBe('EVALUATION_FAILED');
    // Discarded, and it fails again: an item of the same reason.
    await engine.inbox.discard(again!.id);
    evaluator.evaluate('isRetryDelayElapsed', { entity: broken });
    expect((await written(1))[0]!.reason).toBe('EVALUATION_FAILED');
  });

  it('keeps what chose its settings for the replay', async () => {
    const { evaluator, engine, criteria, written, happened } = await stageOn(await storeOf(), {
      criteria: {
        enableJitter: false,
        enableExponentialBackoff: false,
        sets: { slow: { defaultRetryDelaySeconds: 30 } },
      },
    });
    const request = { entity: {}, entityId: 'e', context: 'slow' };
    evaluator.evaluate('isRetryDelayElapsed', request);
    const [item] = await written(1);
    const payload = { lastAttemptTime: '2020-01-31T12:00:00Z' };
    await engine.inbox.replay(item!.id, { payload });
    await happened('done');
    expect(criteria.recent.of('isRetryDelayElapsed')[0]).toMatchObject({
      entityId: 'e',
      result: { delayMs: 30_000 },
    });
  });

  it('is bounded: of a large entity only what criteria read is kept, and said', async () => {
    const { evaluator, written } = await stageOn(await storeOf());
    const big = { ...broken, blob: 'x'.repeat(200_000), currentTime: { deep: 1 } };
    evaluator.evaluate('isRetryDelayElapsed', { entity: big });
    const [item] = await written(1);
    expect(JSON.parse(Buffer.from(item!.payload).toString())).toEqual({
      ...broken,
      currentTime: {},
    });
    expect(item!.failure.message).toMatch(/the entity has 200\d{3} bytes, and only the fields/);
  });

  it('is told to no review queue', async () => {
    const { evaluator, engine, written } = await stageOn(await storeOf());
    evaluator.evaluate('hasRetriesAvailable', { entity: {} });
    await written(1);
    expect(engine.stats().outboxStuck).toBe(0);
  });
}

describe('a failed evaluation in memory', () => {
  suite(async () => memory());
});

describe('a failed evaluation in SQLite', () => {
  suite(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-criteria-'));
    cleanups.push(async () => rmSync(folder, { recursive: true, force: true }));
    return sqlite(join(folder, 'tasks.db'));
  });
});

describePostgres(({ freshDatabase }) => {
  describe('a failed evaluation', () => {
    suite(async () => {
      const database = await freshDatabase();
      cleanups.push(() => database.drop());
      return postgres({ url: database.url, maxConnections: 4 });
    });
  });
});

it('is no item where review is switched off', async () => {
  const { evaluator, criteria, items } = await stageOn(memory(), { criterionReview: false });
  evaluator.evaluate('hasRetriesAvailable', { entity: {} });
  await criteria.stop();
  expect(await items()).toEqual([]);
});

it('is written before the stop ends, and what comes later is dropped', async () => {
  const { evaluator, criteria, items } = await stageOn(memory());
  for (let i = 0; i < 2000; i++) evaluator.evaluate('hasRetriesAvailable', { entity: { id: i } });
  await criteria.stop();
  expect(await items()).toHaveLength(100);
  evaluator.evaluate('hasRetriesAvailable', { entity: { id: 'late' } });
  await criteria.stop();
});

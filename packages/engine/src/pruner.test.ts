import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from './adapters/memory/index.ts';
import { createEngine } from './engine.ts';
import type { EngineOptions } from './engine-options.ts';
import type { EngineEvent } from './events.ts';
import type { Log } from './host.ts';
import { giveUp } from './model/outcomes.ts';
import { newTask, outboxMessage } from './testing/fixtures.ts';
import { createTestBroker } from './testing/index.ts';

const nothing = () => undefined;
const DAY = 86_400_000;

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const events: EngineEvent[] = [];
  const said: string[] = [];
  const say = (_: object, message: string) => void said.push(message);
  const log: Log = { debug: nothing, info: nothing, warn: say, error: say };
  const engine = createEngine({
    store,
    clock,
    log,
    random: seededRandom(1),
    defer: queueMicrotask,
    on: (event) => events.push(event),
    poll: '1h',
    ...options,
  });
  return { clock, store, events, said, engine };
}

describe('expiry', () => {
  it.each(['paused', 'without a handler', 'open'])(
    'ends the wait in a lane that is %s',
    async (how) => {
      const { clock, engine, store, events } = stage({ poll: '10s' });
      await engine.start();
      if (how !== 'without a handler') engine.handle('a', nothing);
      if (how === 'paused') await engine.pause('handler:a');
      if (how === 'open') {
        const breaker = { state: 'open', untilMs: clock.now() + DAY, openings: 1 };
        await store.writeState('lane:handler:a', { breaker }, 0);
      }
      const { id } = await engine.submit('a', 1, { expiresAt: clock.now() + 60_000 });
      const other = await engine.submit('a', 2, { expiresAt: clock.now() + DAY });
      await clock.advance(59_999);
      expect(await engine.get(id)).toMatchObject({ status: 'pending' });
      await clock.advance('10s');
      expect(await engine.get(id)).toMatchObject({ status: 'failed', attempt: 0 });
      expect(await engine.get(other.id)).toMatchObject({ status: 'pending' });
      expect((await engine.inbox.items({ limit: 9 })).items).toMatchObject([{ reason: 'EXPIRED' }]);
      expect(events.at(-1)).toMatchObject({ type: 'failed', id, reason: 'EXPIRED' });
    },
  );

  it('brings its review message along', async () => {
    const broker = createTestBroker();
    const { clock, engine } = stage({
      brokers: [broker],
      review: (task, { reason }) => outboxMessage(`${task.messageId} ${reason}`),
    });
    const { id } = await engine.submit('a', 1, { expiresAt: clock.now() + 5 });
    await engine.start();
    await clock.advance('2h');
    const texts = broker.published.map(({ payload }) => Buffer.from(payload).toString());
    expect(texts).toEqual([`${id} EXPIRED`]);
  });

  it('is not for one that runs: it may still work', async () => {
    const { clock, engine } = stage({ poll: '1s' });
    engine.handle('a', { timeout: '1h' }, () => {
      return new Promise<void>((resolve) => {
        clock.setTimer(resolve, 120_000);
      });
    });
    await engine.start();
    const { id } = await engine.submit('a', 1, { expiresAt: clock.now() + 60_000 });
    await clock.advance('121s');
    expect(await engine.get(id)).toMatchObject({ status: 'done' });
  });

  it('comes for hundreds at a time', async () => {
    const { clock, engine, store } = stage();
    const expiresAt = clock.now() + 5;
    await engine.submitMany(
      Array.from({ length: 350 }, (_, payload) => ({ to: 'a', payload, expiresAt })),
    );
    await engine.start();
    await clock.advance('1h');
    expect(await store.list({ status: 'failed', limit: 999 })).toHaveLength(350);
  });
});

describe('retention', () => {
  async function finished(options: Partial<EngineOptions> = {}) {
    const { clock, engine, store, ...rest } = stage(options);
    engine.handle('works', nothing).handle('fails', () => giveUp('no use'));
    await engine.start();
    await engine.submit('works', 1);
    await engine.submit('fails', 1);
    const { id } = await engine.submit('later', 1);
    await engine.cancel(id);
    await engine.submit('waiting', 1);
    await store.change(
      [
        {
          messageId: '0b7c0000-0000-4000-8000-00000000c0de',
          destination: { kind: 'queue', address: 'q' },
        },
      ],
      () => ({
        result: undefined,
        task: newTask({ status: 'retried' }),
      }),
    );
    await clock.advance(0);
    const left = async () => {
      const statuses = (await store.list({ limit: 99 })).map(({ status }) => status);
      return statuses.sort();
    };
    return { clock, engine, store, left, ...rest };
  }

  it('keeps what is over for a day, what a broker took for seven, what failed as long as its item is open', async () => {
    const { clock, left } = await finished();
    expect(await left()).toEqual(['cancelled', 'done', 'failed', 'pending', 'retried']);
    await clock.advance(DAY - 1);
    expect(await left()).toHaveLength(5);
    await clock.advance('2h');
    expect(await left()).toEqual(['failed', 'pending', 'retried']);
    await clock.advance(6 * DAY);
    expect(await left()).toEqual(['failed', 'pending']);
    await clock.advance(30 * DAY);
    expect(await left()).toEqual(['failed', 'pending']);
  });

  it('is as long as the options say', async () => {
    const { clock, left } = await finished({
      poll: '1m',
      retention: { done: '5m', cancelled: 0, retried: '2d' },
    });
    await clock.advance('2m');
    expect(await left()).toEqual(['done', 'failed', 'pending', 'retried']);
    await clock.advance('5m');
    expect(await left()).toEqual(['failed', 'pending', 'retried']);
    await clock.advance('2d');
    expect(await left()).toEqual(['failed', 'pending']);
  });

  it('deletes in bounded steps, with rests between them', async () => {
    const { clock, engine, store } = stage({ retention: { done: 0 } });
    const at: number[] = [];
    const { prune } = store;
    store.prune = (request) => {
      at.push(clock.monotonic());
      expect(request.limit).toBe(1000);
      return prune.call(store, request);
    };
    engine.handle('a', { concurrency: 1000 }, nothing);
    await engine.submitMany(Array.from({ length: 2500 }, (_, n) => ({ to: 'a', payload: n })));
    await engine.start();
    await clock.advance('1h');
    await clock.advance('1s');
    expect(await store.list({ limit: 9 })).toEqual([]);
    expect(at.map((ms) => ms - at[0]!)).toEqual([0, 50, 100]);
  });

  it('that fails is said, and tried again next time', async () => {
    const { clock, engine, store, said } = stage({ retention: { done: 0 } });
    const { prune } = store;
    let calls = 0;
    store.prune = (request) =>
      ++calls === 1 ? Promise.reject(new Error('away')) : prune.call(store, request);
    engine.handle('a', nothing);
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('1h');
    expect(said).toEqual(['housekeeping failed, trying again']);
    await clock.advance('1h');
    expect(await store.list({ limit: 9 })).toEqual([]);
  });
});

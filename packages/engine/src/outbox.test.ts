import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from './adapters/memory/index.ts';
import { createEngine } from './engine.ts';
import type { EngineOptions } from './engine-options.ts';
import type { Log } from './host.ts';
import { giveUp } from './model/outcomes.ts';
import type { Published } from './ports/broker.ts';
import { createTestBroker } from './testing/index.ts';
import { outboxMessage } from './testing/fixtures.ts';

const nothing = () => undefined;
const refused: Published = { outcome: 'refused', failure: { class: 'transient', code: 'NACK' } };

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const broker = createTestBroker();
  const said: string[] = [];
  const say = (_: object, message: string) => void said.push(message);
  const log: Log = { debug: nothing, info: nothing, warn: say, error: say };
  const engine = createEngine({
    store,
    clock,
    log,
    brokers: [broker],
    random: seededRandom(1),
    defer: queueMicrotask,
    poll: '1d',
    review: (task, { reason }) => outboxMessage(`${task.attempt} ${reason}`),
    ...options,
  }).handle('a', () => giveUp('no use'));
  const texts = () => broker.published.map(({ payload }) => Buffer.from(payload).toString());
  return { clock, store, broker, said, engine, texts };
}

describe('a review message', () => {
  it('is published as soon as its item is there, without polling', async () => {
    const { clock, engine, broker, store } = stage();
    await engine.start();
    await clock.advance('1m');
    await engine.submit('a', 1);
    await clock.advance(0);
    expect(broker.published).toEqual([
      {
        address: 'manual-review.pending',
        payload: outboxMessage('1 GAVE_UP').payload,
        headers: { 'x-review-reason': '1 GAVE_UP' },
      },
    ]);
    await clock.advance('1d');
    expect(await store.takeOutbox(9, 0)).toEqual([]);
    expect(broker.published).toHaveLength(1);
  });

  it('is published from before the start too, all of them', async () => {
    const { clock, engine, broker, store } = stage();
    for (let n = 0; n < 250; n++) {
      await store.append([
        {
          reason: 'UNREADABLE',
          failure: { class: 'technical' },
          fingerprint: 'f',
          messageId: `00000000-0000-5000-8000-${String(n).padStart(12, '0')}`,
          source: 'q',
          payload: new Uint8Array(),
          outbox: outboxMessage(String(n)),
        },
      ]);
    }
    await engine.start();
    await clock.advance(0);
    expect(broker.published).toHaveLength(250);
  });

  it('is not forgotten when it comes while another is being published', async () => {
    const { clock, engine, broker, texts } = stage();
    let go = nothing as () => void;
    broker.answer = () =>
      new Promise((resolve) => {
        go = () => resolve({ outcome: 'confirmed' });
      });
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(0);
    await engine.submit('a', 2);
    await clock.advance(0);
    broker.answer = () => ({ outcome: 'confirmed' });
    go();
    await clock.advance(0);
    expect(texts()).toEqual(['1 GAVE_UP', '1 GAVE_UP']);
  });

  it('that is committed while the outbox is being read is published without polling', async () => {
    const { clock, engine, store, texts } = stage();
    const { takeOutbox } = store;
    let go = nothing as () => void;
    const gate = new Promise<void>((resolve) => {
      go = () => resolve();
    });
    // The first look finds nothing, and its answer arrives after the message was committed.
    store.takeOutbox = async (...args) => {
      store.takeOutbox = takeOutbox;
      const messages = await takeOutbox.apply(store, args);
      await gate;
      return messages;
    };
    await engine.start();
    await clock.advance(0);
    await engine.submit('a', 1);
    await clock.advance(0);
    expect(texts()).toEqual([]);
    go();
    await clock.advance(0);
    expect(texts()).toEqual(['1 GAVE_UP']);
  });

  it('that nobody takes is tried without end, and shown', async () => {
    const { clock, engine, broker, texts, said } = stage();
    broker.answer = () => refused;
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('1s');
    expect(engine.stats().outboxStuck).toBe(1);
    await clock.advance('30s');
    expect(engine.stats().outboxStuck).toBe(1);
    await clock.advance('1h');
    expect(engine.stats().outboxStuck).toBe(1);
    expect(new Set(said)).toEqual(new Set(['messages of the outbox could not be published']));
    broker.answer = () => ({ outcome: 'confirmed' });
    await clock.advance('3m');
    expect(texts()).toEqual(['1 GAVE_UP']);
    expect(engine.stats().outboxStuck).toBe(0);
    // It never becomes an item itself.
    expect((await engine.inbox.items({ limit: 9 })).items).toHaveLength(1);
  });

  it('for a broker that is not here is left to who has one', async () => {
    const { clock, engine, store } = stage({ brokers: [] });
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('10m');
    expect(engine.stats().outboxStuck).toBe(0);
    const other = createTestBroker();
    const another = createEngine({ store, clock, brokers: [other], defer: queueMicrotask });
    await another.start();
    await clock.advance(0);
    expect(other.published).toHaveLength(1);
    const stopped = engine.stop();
    await clock.advance('1m');
    await stopped;
    expect(await store.takeOutbox(9, 0)).toEqual([]);
  });

  it('does not hold up another', async () => {
    const { clock, engine, broker, store } = stage();
    let n = 0;
    broker.answer = () => (++n === 1 ? refused : { outcome: 'confirmed' });
    await engine.submit('a', 1);
    await engine.submit('a', 2);
    await engine.start();
    await clock.advance('1s');
    expect(broker.published).toHaveLength(1);
    await clock.advance('3m');
    expect(broker.published).toHaveLength(2);
    expect(await store.takeOutbox(9, 0)).toEqual([]);
  });

  it('waits for a store that is away', async () => {
    const { clock, engine, store, broker, said } = stage();
    const { takeOutbox } = store;
    let isAway = true;
    store.takeOutbox = (...args) =>
      isAway ? Promise.reject(new Error('away')) : takeOutbox.apply(store, args);
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('10s');
    expect(said).toContain('the outbox could not be read, trying again');
    expect(said.length).toBeLessThan(10);
    isAway = false;
    await clock.advance('1m');
    expect(broker.published).toHaveLength(1);
  });

  it('is published once, though the store forgets to answer that it is gone', async () => {
    const { clock, engine, store, texts, said } = stage();
    const { dropOutbox } = store;
    let calls = 0;
    store.dropOutbox = (ids) =>
      ++calls < 4 ? Promise.reject(new Error('away')) : dropOutbox.call(store, ids);
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('5m');
    expect(texts()).toEqual(['1 GAVE_UP']);
    expect(said).toContain('clearing the outbox failed, trying again');
    expect(await store.takeOutbox(9, 0)).toEqual([]);
  });

  it('of a broker that throws waits, and those of another go out', async () => {
    const other = createTestBroker('topic');
    const broken = createTestBroker();
    broken.publish = () => {
      throw new Error('closed');
    };
    const { clock, engine } = stage({
      brokers: [broken, other],
      review: (task) => ({
        ...outboxMessage('x'),
        destination: { kind: task.attempt > 0 ? 'queue' : 'topic', address: 'review' },
      }),
    });
    await engine.submit('a', 1);
    await engine.submit('a', 1, { expiresAt: clock.now() });
    await engine.start();
    await clock.advance('1s');
    expect(other.published).toHaveLength(1);
    expect(engine.stats().outboxStuck).toBe(1);
  });

  it('waits while its broker is away, and goes out at once when it is back', async () => {
    const { clock, engine, broker } = stage();
    broker.isReady = false;
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('1m');
    expect(broker.published).toEqual([]);
    broker.isReady = true;
    await clock.advance(0);
    expect(broker.published).toHaveLength(1);
  });

  it('that broke its batch goes alone the next time, and repeats no other', async () => {
    const { clock, engine, broker, texts } = stage({
      review: ({ payload }) => outboxMessage(Buffer.from(payload).toString()),
    });
    const batches: [string[], boolean][] = [];
    const lost: Published = { outcome: 'lost', failure: { class: 'transient' } };
    const { publish } = broker;
    broker.publish = (messages, options) => {
      const all = messages.map(({ payload }) => Buffer.from(payload).toString());
      batches.push([all, options.alone ?? false]);
      if (!all.includes('2')) return publish.call(broker, messages, options);
      return messages.map(async () => lost);
    };
    for (const n of [1, 2, 3]) await engine.submit('a', n);
    await engine.start();
    await clock.advance('2m');
    expect(batches[0]).toEqual([['1', '2', '3'], false]);
    expect(batches.slice(1).every(([all, alone]) => all.length === 1 && alone)).toBe(true);
    expect(texts().toSorted()).toEqual(['1', '3']);
    expect(engine.stats().outboxStuck).toBe(1);
  });

  it('that another instance published is not shown as stuck any more', async () => {
    const { clock, engine, broker, store } = stage();
    broker.answer = () => refused;
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('1s');
    await store.dropOutbox([1]);
    await clock.advance('2m');
    expect(engine.stats().outboxStuck).toBe(0);
  });
});

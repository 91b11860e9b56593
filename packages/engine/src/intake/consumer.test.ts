import { definePolicy, replayAudit } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { EngineError } from '../errors.ts';
import { describe, expect, it } from 'vitest';
import { memory, MemoryAudit } from '../adapters/memory/index.ts';
import type { Reading, SourceOptions } from './consumer.ts';
import { createEngine } from '../engine.ts';
import type { EngineOptions } from '../engine-options.ts';
import type { Log } from '../host.ts';
import type { ConsumeLimits, Publication, Published, Received } from '../ports/broker.ts';
import { outboxMessage } from '../testing/fixtures.ts';
import { createTestBroker } from '../testing/index.ts';

const nothing = () => undefined;
const SOURCE = 'retry.scheduled';
const policy = definePolicy({ maxAttempts: 4, base: '10s', jitter: 'none' });

/** The id of the n-th message. */
const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** A message is { n, count }; anything else cannot be read. */
function read({ payload, headers }: Received): Reading {
  const text = Buffer.from(payload).toString();
  if (text === 'throw') throw new TypeError('the reader has a fault');
  if (!text.startsWith('{')) {
    const failure = { class: 'technical', code: 'UNREADABLE' } as const;
    const item = { reason: 'UNREADABLE', failure, fingerprint: 'f' } as const;
    const raw = { ...item, messageId: idOf(999), source: SOURCE, payload };
    return { type: 'unreadable', item: { ...raw, outbox: outboxMessage('unreadable') } };
  }
  const { n, count = 0 } = JSON.parse(text) as { n: number; count?: number };
  const generation = headers['x-redrive-generation'];
  const own = generation === undefined ? {} : { generation: Number(generation) };
  return {
    type: 'failure',
    report: {
      messageId: idOf(n),
      to: { kind: 'queue', address: 'orders' },
      attempt: count + 1,
      payload,
      failure: { class: 'transient', code: 'CONSUMER_FAILED' },
      ...own,
    },
  };
}

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
    policy,
    ...options,
  });
  engine.consume({ broker, source: SOURCE, read });
  const put = (message: unknown) =>
    broker.put(SOURCE, {
      payload: Buffer.from(typeof message === 'string' ? message : JSON.stringify(message)),
    });
  const task = (n: number) => engine.get(idOf(n));
  const left = () => broker.unacknowledged(SOURCE);
  return { clock, store, broker, said, engine, put, task, left };
}

describe('the audit trail', () => {
  it('has what was decided about failures that came in, and what could not be read', async () => {
    const audit = new MemoryAudit();
    const { clock, engine, put } = stage({ audit });
    await engine.start();
    put({ n: 1 });
    put({ n: 2, count: 3 });
    put('odd');
    await clock.advance(0);
    // Taken over, and it failed again.
    await clock.advance(10_000);
    put({ n: 1 });
    await clock.advance(0);
    const orders = { operation: 'queue:orders' };
    expect(audit.events).toMatchObject([
      { event_type: 'policy_registered' },
      { ...orders, event_type: 'retry_attempt', attempt_number: 1, delay_seconds: 10 },
      { ...orders, event_type: 'retry_exhausted', total_attempts: 4 },
      { event_type: 'retry_abandoned', reason: 'unreadable', operation: `source:${SOURCE}` },
      { ...orders, event_type: 'retry_attempt', attempt_number: 2, delay_seconds: 20 },
    ]);
    expect(await replayAudit(audit.events)).toMatchObject({ checked: 3, same: 3, missing: 0 });
  });
});

describe('a failure that comes in', () => {
  it('is stored, acknowledged, and republished when it is due', async () => {
    const { clock, engine, broker, put, task, left } = stage();
    await engine.start();
    put({ n: 1 });
    await clock.advance(0);
    expect(left()).toBe(0);
    expect(await task(1)).toMatchObject({ status: 'pending', attempt: 1, delayMs: 10_000 });
    await clock.advance(9999);
    expect(broker.published).toEqual([]);
    await clock.advance(1);
    expect(broker.published).toMatchObject([
      { address: 'orders', headers: { 'x-retry-count': 1, 'x-original-error': 'CONSUMER_FAILED' } },
    ]);
    expect(await task(1)).toMatchObject({ status: 'retried' });
  });

  it('is acknowledged only after it is committed', async () => {
    const { clock, engine, store, put, task, left } = stage();
    const { insert } = store;
    let go = nothing as () => void;
    const gate = new Promise<void>((resolve) => {
      go = () => resolve();
    });
    store.insert = async (tasks) => {
      await gate;
      return insert.call(store, tasks);
    };
    await engine.start();
    put({ n: 1 });
    await clock.advance(0);
    expect(left()).toBe(1);
    go();
    await clock.advance(0);
    expect(left()).toBe(0);
    expect(await task(1)).toBeDefined();
  });

  it('waits for a store that is away', async () => {
    const { clock, engine, store, put, task, left, said } = stage();
    const { insert } = store;
    let isAway = true;
    store.insert = (tasks) => (isAway ? Promise.reject(away()) : insert.call(store, tasks));
    await engine.start();
    put({ n: 1 });
    await clock.advance('1m');
    expect(left()).toBe(1);
    expect(said).toContain(`taking in from ${SOURCE} failed, trying again`);
    isAway = false;
    await clock.advance('10s');
    expect(left()).toBe(0);
    expect(await task(1)).toBeDefined();
  });

  it('is taken in by the hundred, and what is bad among them stays by itself', async () => {
    const { clock, engine, store, put, left } = stage();
    await engine.start();
    const sizes: number[] = [];
    const { insert } = store;
    store.insert = (tasks) => {
      sizes.push(tasks.length);
      return insert.call(store, tasks);
    };
    for (let n = 0; n < 700; n++) put({ n });
    put('not to be read');
    put('throw');
    for (let n = 700; n < 900; n++) put({ n });
    await clock.advance(0);
    expect(left()).toBe(0);
    expect(await store.list({ status: 'pending', limit: 9999 })).toHaveLength(900);
    expect(Math.max(...sizes)).toBe(500);
    expect((await engine.inbox.items({ limit: 9 })).items).toHaveLength(2);
  });

  it('that must not be retried goes straight to the inbox', async () => {
    const { clock, engine, put, task, left } = stage();
    await engine.start();
    put({ n: 1, count: 3 });
    await clock.advance(0);
    expect(left()).toBe(0);
    expect(await task(1)).toMatchObject({ status: 'failed', attempt: 4 });
    expect((await engine.inbox.items({ limit: 9 })).items).toMatchObject([{ reason: 'EXHAUSTED' }]);
    // Once more, it is one more occurrence.
    put({ n: 1, count: 3 });
    await clock.advance(0);
    expect((await engine.inbox.items({ limit: 9 })).items).toMatchObject([{ occurrences: 2 }]);
  });

  it('counts on for a producer that always says 0, until it is exhausted', async () => {
    const { clock, engine, broker, put, task } = stage();
    await engine.start();
    for (const attempt of [1, 2, 3]) {
      put({ n: 1 });
      await clock.advance(0);
      expect(await task(1)).toMatchObject({ status: 'pending', attempt });
      await clock.advance('2m');
      expect(await task(1)).toMatchObject({ status: 'retried' });
    }
    put({ n: 1 });
    await clock.advance(0);
    expect(await task(1)).toMatchObject({ status: 'failed', attempt: 4 });
    expect(broker.published.map(({ headers }) => headers['x-retry-count'])).toEqual([1, 2, 3]);
  });

  it('that is back before its delivery is settled is not lost', async () => {
    const { clock, engine, broker, put, task } = stage();
    await engine.start();
    put({ n: 1 });
    await clock.advance(0);
    let failures = 2;
    broker.answer = async ({ headers }) => {
      // The consumer has failed with it before the confirm is on its way.
      if (failures-- > 0) put({ n: 1, count: headers['x-retry-count'] });
      await Promise.resolve();
      return { outcome: 'confirmed' };
    };
    await clock.advance('10m');
    expect(broker.published.map(({ headers }) => headers['x-retry-count'])).toEqual([1, 2, 3]);
    expect(await task(1)).toMatchObject({ status: 'retried', attempt: 3 });
  });

  it('comes again when its acknowledgement was lost, and changes nothing then', async () => {
    const { clock, engine, broker, put, task, left, said } = stage();
    const { consume } = broker;
    let losses = 0;
    broker.consume = async (source, limits, receive) => {
      const consumer = await consume.call(broker, source, limits, receive);
      const { ack } = consumer;
      consumer.ack = (messages) =>
        ++losses === 1 ? Promise.reject(new Error('closed')) : ack.call(consumer, messages);
      return consumer;
    };
    await engine.start();
    put({ n: 1 });
    await clock.advance(0);
    expect(said).toEqual(['not acknowledged: it will come again']);
    expect(losses).toBe(2);
    expect(left()).toBe(0);
    expect(await task(1)).toMatchObject({ status: 'pending', attempt: 1 });
    expect(await engine.inbox.attempts(1)).toHaveLength(1);
  });

  it('is left to the broker when it cannot even be given back', async () => {
    const { clock, engine, broker, put, said } = stage();
    const closed = () => Promise.reject(new Error('closed'));
    const { consume } = broker;
    broker.consume = async (source, limits, receive) => {
      const consumer = await consume.call(broker, source, limits, receive);
      return { ...consumer, ack: closed, requeue: closed };
    };
    await engine.start();
    put({ n: 1 });
    await clock.advance(0);
    expect(said).toEqual([
      'not acknowledged: it will come again',
      'not given back either: the broker will notice by itself',
    ]);
  });
});

describe('a message that cannot be read', () => {
  it('goes to the inbox with its bytes, and a review message, and is acknowledged', async () => {
    const { clock, engine, broker, put, left } = stage();
    await engine.start();
    put('gibberish');
    put('gibberish');
    await clock.advance(0);
    expect(left()).toBe(0);
    const items = (await engine.inbox.items({ limit: 9 })).items;
    expect(items).toMatchObject([{ reason: 'UNREADABLE', occurrences: 2 }]);
    expect(Buffer.from(items[0]!.payload).toString()).toBe('gibberish');
    const addresses = broker.published.map(({ address }) => address);
    expect(addresses).toEqual(['manual-review.pending', 'manual-review.pending']);
  });

  it('by a fault of its reader is neither lost nor read for ever', async () => {
    const { clock, engine, put, task, left, said } = stage();
    await engine.start();
    put('throw');
    put({ n: 1 });
    put('throw');
    await clock.advance(0);
    expect(left()).toBe(0);
    expect(await task(1)).toMatchObject({ status: 'pending' });
    expect((await engine.inbox.items({ limit: 9 })).items).toMatchObject([
      {
        reason: 'UNREADABLE',
        occurrences: 2,
        destination: { kind: 'source', address: SOURCE },
        failure: { class: 'technical', message: 'the reader has a fault' },
      },
    ]);
    expect(said).toContain('a message could not be read: it goes to the inbox');
  });
});

describe('an end', () => {
  it('gives back what is not committed, and takes nothing more', async () => {
    const { clock, engine, store, put, left } = stage({ grace: '1s' });
    store.insert = () => Promise.reject(away());
    await engine.start();
    put({ n: 1 });
    await clock.advance('1s');
    put({ n: 2 });
    const stopped = engine.stop();
    await clock.advance('5s');
    await stopped;
    put({ n: 3 });
    await clock.advance('1m');
    expect(left()).toBe(3);
    expect(await store.list({ limit: 9 })).toEqual([]);
  });

  it('waits for what is being committed', async () => {
    const { clock, engine, store, put, left } = stage();
    const { insert } = store;
    store.insert = async (tasks) => {
      await new Promise<void>((resolve) => {
        clock.setTimer(resolve, 500);
      });
      return insert.call(store, tasks);
    };
    await engine.start();
    put({ n: 1 });
    await clock.advance(0);
    const stopped = engine.stop();
    await clock.advance('1s');
    await stopped;
    expect(left()).toBe(0);
    expect(await store.list({ limit: 9 })).toHaveLength(1);
  });
});

it('limits what is taken in and not committed: 1000 messages and 64 MiB, or as told', async () => {
  const seen: ConsumeLimits[] = [];
  const { engine, broker } = stage();
  engine.consume({ broker, source: 'other', read, maxMessages: 5, maxBytes: 100 });
  const { consume } = broker;
  broker.consume = (source, limits, receive) => {
    seen.push(limits);
    return consume.call(broker, source, limits, receive);
  };
  await engine.start();
  expect(seen).toEqual([
    { maxMessages: 1000, maxBytes: 64 * 1024 * 1024 },
    { maxMessages: 5, maxBytes: 100 },
  ]);
});

function away(): EngineError {
  return new EngineError('STORE_UNAVAILABLE', 'away');
}

describe('a message of more than 16 MiB', () => {
  const large = new Uint8Array(16 * 1024 * 1024 + 1).fill(7);
  const why = { class: 'transient', code: 'BROKER_REFUSED', message: 'It is full.' } as const;
  const refused = { outcome: 'refused', failure: why } as const;

  /** Another source, which has a place for such messages unless told otherwise. */
  function largeStage(options: Partial<SourceOptions> = {}) {
    const scene = stage();
    const { engine, broker } = scene;
    engine.consume({
      broker,
      source: 'large',
      read,
      oversized: ({ payload }) => ({
        address: 'too-large',
        payload,
        headers: { 'x-odd': 'b', 'x-redrive-why': 'size' },
        contentType: 'text/plain',
        extra: { amqp: {} },
      }),
      ...options,
    });
    const putLarge = () => broker.put('large', { payload: large });
    const put = (n: number) => broker.put('large', { payload: Buffer.from(JSON.stringify({ n })) });
    const report = () => engine.stats().sources.find(({ source }) => source === 'large');
    const left = () => broker.unacknowledged('large');
    const addresses = () => broker.published.map(({ address }) => address);
    return { ...scene, putLarge, put, report, left, addresses };
  }

  it('is published whole, acknowledged after the confirm and logged, and intake goes on', async () => {
    const { clock, engine, broker, put, putLarge, task, left, report, said } = largeStage();
    let confirm = nothing as () => void;
    broker.answer = () =>
      new Promise((resolve) => {
        confirm = () => resolve({ outcome: 'confirmed' });
      });
    await engine.start();
    putLarge();
    put(1);
    await clock.advance(0);
    expect(await task(1)).toBeDefined();
    expect(left()).toBe(1);
    expect(report()).toEqual({ source: 'large', state: 'consuming' });
    confirm();
    await clock.advance(0);
    expect(left()).toBe(0);
    expect(broker.published).toMatchObject([{ address: 'too-large', contentType: 'text/plain' }]);
    expect(Buffer.from(broker.published[0]!.payload).equals(large)).toBe(true);
    expect(said).toEqual(['a message was too large to be stored: it was published to too-large']);
    expect((await engine.inbox.items({ limit: 9 })).items).toEqual([]);
    await engine.stop();
  });

  it('goes alone: a broker that closes the channel for it takes no other message along', async () => {
    const { clock, engine, broker, putLarge, addresses } = largeStage();
    const alone: unknown[] = [];
    const { publish } = broker;
    broker.publish = (messages, options) => {
      alone.push(options.alone);
      return publish.call(broker, messages, options);
    };
    await engine.start();
    putLarge();
    await clock.advance(0);
    expect(addresses()).toEqual(['too-large']);
    expect(alone).toEqual([true]);
  });

  it('of exactly 16 MiB is read', async () => {
    const { clock, engine, broker, left, addresses } = largeStage();
    await engine.start();
    broker.put('large', { payload: large.subarray(1) });
    await clock.advance(0);
    expect(left()).toBe(0);
    expect(addresses()).toEqual(['manual-review.pending']);
    expect((await engine.inbox.items({ limit: 9 })).items).toMatchObject([
      { reason: 'UNREADABLE' },
    ]);
  });

  it('that comes before there is somebody to acknowledge it with waits for that', async () => {
    const { clock, engine, broker, putLarge, left, addresses } = largeStage();
    const { consume } = broker;
    broker.consume = async (...args) => {
      const consumer = await consume.apply(broker, args);
      await clock.advance(0);
      expect(addresses()).toEqual([]);
      return consumer;
    };
    putLarge();
    await engine.start();
    await clock.advance(0);
    expect(addresses()).toEqual(['too-large']);
    expect(left()).toBe(0);
  });

  it('is published one at a time, however many there are', async () => {
    const { clock, engine, broker, putLarge, left } = largeStage();
    let underway = 0;
    let most = 0;
    broker.answer = async () => {
      underway += 1;
      most = Math.max(most, underway);
      await Promise.resolve();
      underway -= 1;
      return { outcome: 'confirmed' };
    };
    await engine.start();
    for (let n = 0; n < 5; n++) putLarge();
    await clock.advance(0);
    expect(broker.published).toHaveLength(5);
    expect([left(), most]).toEqual([0, 1]);
  });

  it('is tried again at once where its queue has to be made first, which stops nothing', async () => {
    const { clock, engine, broker, putLarge, left, report } = largeStage();
    let returns = 2;
    broker.answer = () => (returns-- > 0 ? { outcome: 'unroutable' } : { outcome: 'confirmed' });
    await engine.start();
    putLarge();
    await clock.advance(0);
    expect(report()).toEqual({ source: 'large', state: 'consuming' });
    await clock.advance(300);
    expect(left()).toBe(0);
    expect(report()).toEqual({ source: 'large', state: 'consuming' });
  });

  it.each<[Published, string]>([
    [refused, 'It was not published to too-large: It is full.'],
    [{ outcome: 'unroutable' }, 'Queue too-large does not exist, and could not be created.'],
    [{ ...refused, outcome: 'impossible' }, 'It was not published to too-large: It is full.'],
    [
      { outcome: 'lost', failure: { class: 'transient', code: 'CONNECTION_LOST' } },
      'It was not published to too-large: CONNECTION_LOST.',
    ],
  ])(
    'stops its source, and no other, while its publish is answered by %j, and says why; then it goes on',
    async (answer, sentence) => {
      const { clock, engine, broker, put, putLarge, task, left, report, said } = largeStage();
      broker.answer = ({ address }) =>
        address === 'too-large' ? answer : { outcome: 'confirmed' };
      await engine.start();
      putLarge();
      await clock.advance('1s');
      put(1);
      broker.put(SOURCE, { payload: Buffer.from('{"n":2}') });
      await clock.advance('10m');
      expect(report()).toMatchObject({ state: 'stopped', why: expect.stringContaining(sentence) });
      expect(report()?.why).toContain('A message of 16777217 bytes');
      expect(said.filter((text) => text.startsWith('a source has stopped'))).toHaveLength(1);
      // Nothing is lost, and nothing more is taken from there.
      expect(left()).toBe(2);
      expect(await task(1)).toBeUndefined();
      expect(await task(2)).toBeDefined();
      broker.answer = () => ({ outcome: 'confirmed' });
      await clock.advance('30s');
      expect(left()).toBe(0);
      expect(await task(1)).toBeDefined();
      expect(report()).toEqual({ source: 'large', state: 'consuming' });
      expect(broker.published.filter(({ address }) => address === 'too-large')).toHaveLength(1);
    },
  );

  it('is published without its headers where the broker does not take them', async () => {
    const { clock, engine, broker, putLarge, left, said } = largeStage();
    broker.answer = ({ headers }) =>
      'x-odd' in headers ? { ...refused, outcome: 'impossible' } : { outcome: 'confirmed' };
    await engine.start();
    putLarge();
    await clock.advance(0);
    expect(left()).toBe(0);
    const [{ payload, ...rest }] = broker.published as [Publication];
    expect(rest).toEqual({ address: 'too-large', headers: { 'x-redrive-why': 'size' } });
    expect(Buffer.from(payload).equals(large)).toBe(true);
    expect(said[0]).toBe('a large message was published without its own headers and properties');
  });

  it.each<[Partial<SourceOptions>, string]>([
    [{ oversized: undefined as never }, 'The source has no `oversized`'],
    [
      {
        oversized: () => {
          throw new TypeError('a fault');
        },
      },
      'has thrown: TypeError: a fault',
    ],
  ])('stops its source where nobody says where it goes', async (options, sentence) => {
    const { clock, engine, putLarge, left, report } = largeStage(options);
    await engine.start();
    putLarge();
    await clock.advance('1m');
    expect(report()).toMatchObject({ state: 'stopped', why: expect.stringContaining(sentence) });
    expect(left()).toBe(1);
  });

  it('is left to the broker at the end, without waiting for a confirm', async () => {
    const { clock, engine, broker, putLarge, left } = largeStage();
    broker.answer = () => new Promise(() => {});
    await engine.start();
    putLarge();
    putLarge();
    await clock.advance(0);
    const stopped = engine.stop();
    await clock.advance(0);
    await stopped;
    expect(left()).toBe(2);
  });

  it('that came over a channel that is gone is not tried any more, and says nothing', async () => {
    const { clock, engine, broker, report } = largeStage();
    let receive: (message: Received) => void = nothing;
    let acks = 0;
    broker.consume = async (_source, _limits, callback) => {
      receive = callback;
      const ack = async () => void (acks += 1);
      return { ack, requeue: async () => undefined, stop: async () => undefined };
    };
    broker.answer = () => refused;
    await engine.start();
    const message: Received = { tag: 0, payload: large, headers: {}, redelivered: false };
    receive(message);
    await clock.advance('1m');
    // This consumer cannot be told to take no more: it goes on, and why is said all the same.
    expect(report()).toMatchObject({ state: 'consuming', why: expect.stringContaining('full') });
    message.gone = true;
    expect(report()).toEqual({ source: 'large', state: 'consuming' });
    broker.answer = () => ({ outcome: 'confirmed' });
    await clock.advance('1m');
    expect([broker.published.length, acks]).toEqual([0, 0]);
    // The same one, over the next channel.
    receive({ ...message, gone: false });
    await clock.advance(0);
    expect([broker.published.length, acks]).toEqual([1, 1]);
  });
});

describe('messages that come', () => {
  it('before there is somebody to acknowledge them with wait for it', async () => {
    const { clock, engine, broker, put, task, left } = stage();
    const { consume } = broker;
    broker.consume = async (...args) => {
      const consumer = await consume.apply(broker, args);
      await clock.advance(0);
      return consumer;
    };
    put({ n: 1 });
    await engine.start();
    await clock.advance(0);
    expect(await task(1)).toBeDefined();
    expect(left()).toBe(0);
  });

  it('over a channel that is gone are forgotten, and do not pile up while the store is away', async () => {
    const { clock, engine, broker, store, task } = stage();
    let receive: (message: Received) => void = nothing;
    const acked: Received[] = [];
    broker.consume = async (_source, _limits, callback) => {
      receive = callback;
      const ack = async (messages: readonly Received[]) => void acked.push(...messages);
      return { ack, requeue: async () => undefined, stop: async () => undefined };
    };
    const { insert } = store;
    store.insert = () => Promise.reject(new EngineError('STORE_UNAVAILABLE', 'away'));
    await engine.start();
    const message = (): Received => ({
      tag: 0,
      payload: Buffer.from(JSON.stringify({ n: 1 })),
      headers: {},
      redelivered: false,
    });
    const waiting: Received[] = [];
    // Some are taken on, the others wait.
    for (let round = 0; round < 30; round++) {
      for (const old of waiting) old.gone = true;
      for (let n = 0; n < 500; n++) receive(waiting[waiting.push(message()) - 1]!);
      await clock.advance(10);
    }
    store.insert = insert;
    await clock.advance('1m');
    expect(await task(1)).toMatchObject({ attempt: 1 });
    expect(acked.length).toBeLessThan(2500);
  });

  it('and cannot be kept with what came with them are kept without it', async () => {
    const { clock, engine, store, put, left, said } = stage();
    const { append } = store;
    store.append = (items) =>
      items.some(({ outbox }) => outbox)
        ? Promise.reject(new TypeError('no such column'))
        : append.call(store, items);
    await engine.start();
    put('odd');
    await clock.advance(0);
    expect((await engine.inbox.items({ limit: 9 })).items).toHaveLength(1);
    expect(said).toContain('an item is kept without what came with it');
    expect(left()).toBe(0);
  });
});

import { definePolicy } from 'redrive';
import { describe, expect, it } from 'vitest';
import type { Publication, Published } from './ports/broker.ts';
import { createTestBroker, createTestEngine } from './testing/index.ts';

const to = { kind: 'queue', address: 'orders' };
const policy = definePolicy({ base: '1s', jitter: 'none', maxAttempts: 3 });
const nack: Published = {
  outcome: 'refused',
  failure: { class: 'transient', code: 'NACK', message: 'queue is full' },
};

function stage(answer?: (message: Publication) => Published | Promise<Published>) {
  const broker = createTestBroker();
  if (answer) broker.answer = answer;
  const batches: number[] = [];
  const { publish } = broker;
  broker.publish = (messages, timeoutMs) => {
    batches.push(messages.length);
    return publish.call(broker, messages, timeoutMs);
  };
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const lane = { failures: 100, concurrency: 1000 };
  const engine = createTestEngine({
    brokers: [broker],
    log,
    lane,
    policy,
  });
  return { broker, batches, engine };
}

describe('a message for a broker', () => {
  it('goes out byte for byte, with what it carried and what tells a retry', async () => {
    const { broker, engine } = stage();
    const payload = new Uint8Array([0, 255, 7]);
    const { id } = await engine.submit(to, payload, {
      context: {
        headers: { 'x-tenant': 'a' },
        contentType: 'application/x-protobuf',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        extra: { priority: 5 },
      },
    });
    await engine.drain();
    expect(broker.published).toEqual([
      {
        address: 'orders',
        payload,
        contentType: 'application/x-protobuf',
        extra: { priority: 5 },
        headers: {
          'x-tenant': 'a',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
          'x-retry-count': 0,
          'x-retry-scheduler': 'true',
          'x-message-id': id,
          'x-redrive-generation': 0,
        },
      },
    ]);
    expect(await engine.get(id)).toMatchObject({ status: 'retried' });
  });

  it('carries the error that it failed with, cut to 1 KiB between two characters', async () => {
    const { broker, engine } = stage();
    engine.consume({
      broker,
      source: 'retry.scheduled',
      read: () => {
        const failure = { class: 'transient', message: `x${'ü'.repeat(1000)}` } as const;
        const task = {
          messageId: '0b7c0000-0000-4000-8000-00000000c0de',
          destination: to,
          lane: 'queue:orders',
          payload: new Uint8Array(),
          status: 'pending',
          attempt: 2,
          maxAttempts: 4,
          uncounted: 0,
          delayMs: 0,
          generation: 0,
          claims: 0,
          arrived: false,
          cancelling: false,
          blocked: false,
          failure,
          due: { inMs: 0 },
        } as const;
        return { type: 'arrival', arrival: { type: 'failure', task, policy } };
      },
    });
    broker.put('retry.scheduled', {});
    await engine.advance('1m');
    const { headers } = broker.published[0]!;
    expect(headers['x-retry-count']).toBe(2);
    expect(headers['x-original-error']).toBe(`x${'ü'.repeat(511)}`);
  });

  it('goes in batches, each confirmed by itself', async () => {
    const { broker, batches, engine } = stage(({ headers }) =>
      Number(headers['n']) % 2 === 0 ? { outcome: 'confirmed' } : { outcome: 'unroutable' },
    );
    await engine.submitMany(
      Array.from({ length: 1200 }, (_, n) => ({
        to,
        payload: n,
        context: { headers: { n: String(n) } },
      })),
    );
    await engine.drain();
    expect(broker.published).toHaveLength(600);
    expect(Math.max(...batches)).toBe(500);
    expect(await engine.list({ status: 'retried', limit: 9999 })).toHaveLength(600);
    expect((await engine.inbox.items({ limit: 9999 })).items).toHaveLength(600);
  });

  it('that nobody listens for goes to the inbox', async () => {
    const { engine } = stage(() => ({ outcome: 'unroutable' }));
    await engine.submit(to, 1);
    await engine.drain();
    expect(await engine.inbox()).toMatchObject([
      { reason: 'UNROUTABLE', failure: { message: 'Nobody listens at orders.' } },
    ]);
  });

  it.each<[string, () => Promise<Published>]>([
    ['refused', async () => nack],
    ['not confirmed', async () => ({ ...nack, outcome: 'unknown' })],
    ['lost with its connection', () => Promise.reject(new Error('closed'))],
  ])('that was %s burns no attempt, and comes again, later each time', async (_, answer) => {
    const { broker, engine } = stage(answer);
    const { id } = await engine.submit(to, 1);
    await engine.drain();
    expect(await engine.get(id)).toMatchObject({ status: 'pending', attempt: 0, uncounted: 1 });
    await engine.advance('1h');
    const task = await engine.get(id);
    expect(task).toMatchObject({ status: 'pending', attempt: 0 });
    expect(task!.uncounted).toBeGreaterThan(10);
    broker.answer = () => ({ outcome: 'confirmed' });
    await engine.advance('1h');
    expect(await engine.get(id)).toMatchObject({ status: 'retried', attempt: 0 });
  });

  it('that may have broken its batch goes alone the next time', async () => {
    const { batches, engine, broker } = stage();
    let isPoisoned = true;
    const { publish } = broker;
    broker.publish = (messages, timeoutMs) => {
      const poison = messages.some(({ payload }) => payload.length === 3);
      if (poison && isPoisoned) {
        batches.push(messages.length);
        return Promise.reject(new Error('frame error: the connection was closed'));
      }
      return publish.call(broker, messages, timeoutMs);
    };
    const payloads = [1, 2, 333, 4, 5];
    await engine.submitMany(payloads.map((payload) => ({ to, payload })));
    await engine.drain();
    expect(batches).toEqual([5]);
    await engine.advance('1s');
    expect(batches).toEqual([5, 1, 1, 1, 1, 1]);
    expect(await engine.list({ status: 'retried', limit: 9 })).toHaveLength(4);
    isPoisoned = false;
    await engine.advance('1m');
    expect(await engine.list({ status: 'retried', limit: 9 })).toHaveLength(5);
  });
});

import { definePolicy } from 'redrive';
import { describe, expect, it } from 'vitest';
import { bodyMark } from './broker-delivery.ts';
import type { Publication, Published } from '../ports/broker.ts';
import { createTestBroker, createTestEngine } from '../testing/index.ts';

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
          'x-redrive-body': bodyMark(payload),
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
        const messageId = '0b7c0000-0000-4000-8000-00000000c0de';
        const report = { messageId, to, payload: new Uint8Array(), attempt: 2, maxAttempts: 4 };
        return { type: 'failure', report: { ...report, failure } };
      },
    });
    broker.put('retry.scheduled', {});
    await engine.advance('1m');
    const { headers } = broker.published[0]!;
    expect(headers['x-retry-count']).toBe(2);
    expect(headers['x-original-error']).toBe(`x${'ü'.repeat(511)}`);
  });

  it('shortens our own header where theirs fill the 32 KiB, and goes to the inbox where they are over', async () => {
    const { broker, engine } = stage();
    const failure = { class: 'transient', message: 'x'.repeat(1000) } as const;
    const report = (n: number, bytes: number) => ({
      messageId: `0b7c0000-0000-4000-8000-00000000000${n}`,
      to,
      payload: new Uint8Array(),
      attempt: 1,
      failure,
      context: { headers: { theirs: 'y'.repeat(bytes) } },
    });
    await engine.report([report(1, 32_000), report(2, 32_700)]);
    await engine.advance('1m');
    const [first, ...others] = broker.published;
    const headers = first?.headers ?? {};
    expect(String(headers['x-original-error'])).toMatch(/^x{300,700}$/);
    expect(headers['theirs']).toHaveLength(32_000);
    expect(others).toEqual([]);
    expect(await engine.inbox()).toMatchObject([{ reason: 'HEADERS_TOO_LARGE' }]);
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
    expect(batches.length).toBeLessThan(5);
    expect(await engine.list({ status: 'retried', limit: 9999 })).toHaveLength(600);
    expect((await engine.inbox.items({ limit: 9999 })).items).toHaveLength(600);
  });

  it('that nobody listens for goes to the inbox', async () => {
    const { engine } = stage(() => ({ outcome: 'unroutable' }));
    await engine.submit(to, 1);
    await engine.drain();
    expect(await engine.inbox()).toMatchObject([
      {
        reason: 'UNROUTABLE',
        failure: { message: expect.stringContaining("There is no queue named 'orders'.") },
      },
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
    broker.publish = (messages, options) => {
      const poison = messages.some(({ payload }) => payload.length === 3);
      if (poison && isPoisoned) {
        batches.push(messages.length);
        const failure = { class: 'transient', code: 'CHANNEL_CLOSED' } as const;
        return messages.map(async () => ({ outcome: 'lost' as const, failure }));
      }
      return publish.call(broker, messages, options);
    };
    const payloads = [1, 2, 333, 4, 5];
    await engine.submitMany(payloads.map((payload) => ({ to, payload })));
    await engine.drain();
    expect(batches).toEqual([5, 1, 1, 1, 1, 1]);
    expect(await engine.list({ status: 'retried', limit: 9 })).toHaveLength(4);
    isPoisoned = false;
    await engine.advance('1m');
    expect(await engine.list({ status: 'retried', limit: 9 })).toHaveLength(5);
  });

  it('that breaks its way each time it goes alone ends in the inbox, and its lane is well', async () => {
    const { engine, broker } = stage();
    const failure = { class: 'transient', code: 'CHANNEL_CLOSED' } as const;
    broker.answer = ({ payload }) =>
      payload.length === 3 ? { outcome: 'lost', failure } : { outcome: 'confirmed' };
    await engine.submit(to, 333);
    await engine.advance('1h');
    await engine.submit(to, 1);
    await engine.drain();
    expect(await engine.inbox()).toMatchObject([{ reason: 'TOO_MANY_UNCOUNTED', failure }]);
    expect(await engine.lanes()).toMatchObject([{ state: 'closed' }]);
    expect(broker.published).toHaveLength(1);
  });

  it('that can never be sent goes to the inbox at once', async () => {
    const failure = { class: 'technical', code: 'PRECONDITION_FAILED' } as const;
    const { engine } = stage(() => ({ outcome: 'impossible', failure }));
    await engine.submit(to, 1);
    await engine.drain();
    expect(await engine.inbox()).toMatchObject([{ reason: 'PERMANENT', failure }]);
  });

  it('waits while the broker is away, and goes out as soon as it is back', async () => {
    const { engine, broker } = stage();
    broker.isReady = false;
    await engine.submitMany([1, 2, 3].map((payload) => ({ to, payload })));
    await engine.advance('10m');
    expect(broker.published).toEqual([]);
    expect(await engine.lanes()).toMatchObject([{ state: 'closed', running: 0 }]);
    broker.isReady = true;
    await engine.drain();
    expect(broker.published).toHaveLength(3);
  });

  it('that was on its way when the broker went away is sent again at once, uncounted', async () => {
    const { engine, broker } = stage();
    const failure = { class: 'transient', code: 'CONNECTION_LOST' } as const;
    broker.answer = () => {
      broker.isReady = false;
      return { outcome: 'away', failure };
    };
    const { id } = await engine.submit(to, 1);
    await engine.drain();
    expect(await engine.get(id)).toMatchObject({ status: 'pending', attempt: 0, uncounted: 0 });
    broker.answer = () => ({ outcome: 'confirmed' });
    broker.isReady = true;
    await engine.drain();
    expect(await engine.get(id)).toMatchObject({ status: 'retried' });
  });

  it('that nobody confirms holds up no other', async () => {
    const { engine, broker } = stage();
    broker.answer = ({ address }) =>
      address === 'orders' ? new Promise(() => {}) : { outcome: 'confirmed' };
    await engine.submit(to, 1);
    const others = Array.from({ length: 50 }, (_, n) => ({
      to: { kind: 'queue', address: `other ${n}` },
      payload: n,
    }));
    await engine.submitMany(others);
    await engine.advance('1s');
    expect(broker.published).toHaveLength(50);
  });
});

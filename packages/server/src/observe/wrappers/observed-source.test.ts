import type { Consumer, Reading, Received, SourceOptions } from '@redrive/engine';
import { createTestBroker } from '@redrive/engine/testing';
import { describe, expect, it } from 'vitest';
import { observedSource } from './observed-source.ts';

const failure = { type: 'failure' } as Reading;
const unreadable = { type: 'unreadable', item: { reason: 'TOO_LARGE' } } as Reading;

async function sourceOf(
  read: (message: Received) => Reading,
  oversized?: SourceOptions['oversized'],
) {
  const told: unknown[][] = [];
  const tell =
    (what: string) =>
    (...facts: unknown[]): void => {
      // Nothing happened: so it is with a count of none.
      if (facts.at(-1) !== 0) told.push([what, ...facts]);
    };
  const metrics = {
    tookIn: tell('tookIn'),
    entered: tell('entered'),
    redelivered: tell('redelivered'),
    droppedExpiration: tell('droppedExpiration'),
  };
  const broker = createTestBroker();
  const options = {
    broker,
    source: 'q',
    read,
    maxMessages: 7,
    ...(oversized ? { oversized } : {}),
  };
  const observed = observedSource(options, { metrics });
  const messages: Received[] = [];
  const limits = { maxMessages: 10, maxBytes: 1000 };
  let came = () => {};
  const consumer = await observed.broker.consume('q', limits, (one) => {
    messages.push(one);
    came();
  });
  /** Resolves when so many are there. */
  const received = async (count: number) => {
    while (messages.length < count) {
      await new Promise<void>((resolve) => {
        came = resolve;
      });
    }
  };
  return { told, broker, observed, consumer, messages, received };
}

describe('what a source takes in', () => {
  it('is counted when it is acknowledged, by what it was', async () => {
    const kinds = [failure, unreadable, failure];
    const { told, broker, observed, consumer, messages, received } = await sourceOf(() =>
      kinds.shift()!,
    );
    for (let i = 0; i < 3; i++) broker.put('q', {});
    await received(3);
    expect(messages.map((message) => observed.read(message).type)).toEqual([
      'failure',
      'unreadable',
      'failure',
    ]);
    expect(told).toEqual([]);
    await consumer.ack(messages);
    expect(told).toEqual([
      ['entered', 'TOO_LARGE'],
      ['tookIn', 'q', 'unreadable', 1],
      ['tookIn', 'q', 'taken', 2],
    ]);
    expect(broker.unacknowledged('q')).toBe(0);
  });

  it('is counted as returned when it goes back, and as redelivered when it came again', async () => {
    const { told, broker, observed, consumer, messages, received } = await sourceOf(() => failure);
    broker.put('q', {});
    await received(1);
    observed.read(messages[0]!);
    await consumer.requeue(messages.splice(0));
    await received(1);
    expect(told).toEqual([['tookIn', 'q', 'returned', 1]]);
    expect(messages).toMatchObject([{ redelivered: true }]);
    observed.read(messages[0]!);
    await consumer.ack(messages);
    expect(told.slice(1)).toEqual([
      ['tookIn', 'q', 'taken', 1],
      ['redelivered', 1],
    ]);
    await consumer.stop();
  });

  it('and its reader fails at is unreadable, and the fault stays the reader’s', async () => {
    const { told, broker, observed, consumer, messages, received } = await sourceOf(() => {
      throw new TypeError('a fault');
    });
    broker.put('q', {});
    await received(1);
    expect(() => observed.read(messages[0]!)).toThrow('a fault');
    await consumer.ack(messages);
    expect(told).toEqual([
      ['entered', 'UNREADABLE'],
      ['tookIn', 'q', 'unreadable', 1],
    ]);
  });

  it('is counted also where nobody has read it', async () => {
    const { told, broker, consumer, messages, received } = await sourceOf(() => failure);
    broker.put('q', {});
    await received(1);
    await consumer.ack(messages);
    expect(told).toEqual([['tookIn', 'q', 'taken', 1]]);
  });

  it('comes from a consumer whose state can still be seen, as it is at that moment', async () => {
    const now: Pick<Consumer, 'state'> = {};
    const nothing = async () => undefined;
    const consumer = { ack: nothing, requeue: nothing, stop: nothing };
    const broker = createTestBroker();
    broker.consume = async () => Object.defineProperty(consumer, 'state', { get: () => now.state });
    const nobody = () => {};
    const metrics = {
      tookIn: nobody,
      entered: nobody,
      redelivered: nobody,
      droppedExpiration: nobody,
    };
    const observed = observedSource({ broker, source: 'q', read: () => failure }, { metrics });
    const limits = { maxMessages: 1, maxBytes: 1 };
    const seen = await observed.broker.consume('q', limits, () => {});
    Object.assign(now, { state: { state: 'waiting', why: 'access refused' } });
    expect(seen.state).toEqual({ state: 'waiting', why: 'access refused' });
  });

  it('is counted as oversized where it was published elsewhere, and not as taken', async () => {
    const oversized = ({ payload }: Received) => ({ address: 'large', payload, headers: {} });
    const { told, broker, observed, consumer, messages, received } = await sourceOf(
      () => failure,
      oversized,
    );
    broker.put('q', {});
    broker.put('q', {});
    await received(2);
    expect(observed.oversized!(messages[0]!)).toMatchObject({ address: 'large' });
    await consumer.ack(messages);
    expect(told).toEqual([
      ['tookIn', 'q', 'oversized', 1],
      ['tookIn', 'q', 'taken', 1],
    ]);
  });

  it('and had a time to live of its own is counted: that is not carried on', async () => {
    const { told, broker, consumer, messages, received } = await sourceOf(() => failure);
    broker.put('q', { extra: { properties: { expiration: '60000' } } });
    broker.put('q', { headers: { 'x-death': [{ 'original-expiration': '500' }] } as never });
    broker.put('q', { headers: { 'x-death': [{}, { 'original-expiration': '500' }] } as never });
    broker.put('q', { extra: { properties: { priority: 1 } } });
    await received(4);
    await consumer.ack(messages);
    expect(told).toEqual([
      ['tookIn', 'q', 'taken', 4],
      ['droppedExpiration', 'q', 2],
    ]);
  });

  it('is taken by the same limits', async () => {
    const { observed } = await sourceOf(() => failure);
    expect(observed).toMatchObject({ source: 'q', maxMessages: 7 });
  });
});

import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Received } from '../ports/broker.ts';
import { createTestBroker } from './test-broker.ts';

const limits = { maxMessages: 2, maxBytes: 1000 };
const message = { address: 'orders', payload: new Uint8Array([1]), headers: {} };

describe('a test broker', () => {
  it('keeps what it took over, and only that', async () => {
    const broker = createTestBroker('topic');
    expect(broker.kind).toBe('topic');
    expect(await Promise.all(broker.publish([message], { timeoutMs: 1000 }))).toEqual([
      { outcome: 'confirmed' },
    ]);
    broker.answer = async ({ address }) =>
      address === 'orders' ? { outcome: 'unroutable' } : { outcome: 'confirmed' };
    const other = { ...message, address: 'mails' };
    expect(await Promise.all(broker.publish([message, other], { timeoutMs: 1000 }))).toEqual([
      { outcome: 'unroutable' },
      { outcome: 'confirmed' },
    ]);
    expect(broker.published).toEqual([message, other]);
  });

  it('hands out what is put into it, also from before, until it is acknowledged', async () => {
    const broker = createTestBroker();
    for (const n of [1, 2, 3]) broker.put('source', { payload: new Uint8Array([n]) });
    expect(broker.unacknowledged('source')).toBe(3);
    const seen: Received[] = [];
    const consumer = await broker.consume('source', limits, (one) => seen.push(one));
    await turn();
    expect(seen.map(({ payload }) => payload[0])).toEqual([1, 2]);
    await consumer.ack([seen[0]!]);
    await consumer.requeue([seen[1]!]);
    await turn();
    expect(seen.map(({ payload, redelivered }) => [payload[0], redelivered])).toEqual([
      [1, false],
      [2, false],
      [3, false],
      [2, true],
    ]);
    expect(broker.unacknowledged('source')).toBe(2);
    await consumer.stop();
    broker.put('source', {});
    await turn();
    expect(seen).toHaveLength(4);
    expect(broker.unacknowledged('source')).toBe(3);
  });
});

import { describe, expect, test } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import { brokerSuite } from '../../testing/broker/broker-suite.ts';
import { memoryBroker } from './index.ts';

const bytes = new Uint8Array([1]);

describe('the memory broker', () => {
  const { capabilities } = memoryBroker();
  let last = 0;
  const open = async () => {
    const broker = memoryBroker();
    await broker.open();
    const queue = async () => {
      last += 1;
      broker.declare(`q${last}`);
      return `q${last}`;
    };
    return { broker, queue, nowhere: 'nowhere', close: () => broker.close() };
  };
  for (const { name, skip, run: assertCase } of brokerSuite({ capabilities, open })) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }

  test('has the queues that it is given, and makes others only where it may', async () => {
    const strict = memoryBroker({ queues: ['orders'] });
    const easy = memoryBroker({ createQueues: true });
    await strict.open();
    await easy.open();
    const batch = ['orders', 'mails'].map((address) => ({ address, payload: bytes, headers: {} }));
    const outcomes = async (broker: typeof easy) =>
      (await Promise.all(broker.publish(batch, { timeoutMs: 1000 }))).map(({ outcome }) => outcome);
    expect(await outcomes(strict)).toEqual(['confirmed', 'unroutable']);
    expect(await outcomes(easy)).toEqual(['confirmed', 'confirmed']);
    expect([easy.depth('orders'), easy.depth('mails'), strict.depth('mails')]).toEqual([1, 1, 0]);
  });

  test('refuses what a queue has no room for, until there is some', async () => {
    const broker = memoryBroker({ queues: ['orders'], maxMessages: 2 });
    await broker.open();
    const message = { address: 'orders', payload: bytes, headers: {} };
    const published = await Promise.all(
      broker.publish([message, message, message], { timeoutMs: 1000 }),
    );
    expect(published[2]).toMatchObject({
      outcome: 'refused',
      failure: { class: 'transient', code: 'QUEUE_FULL' },
    });
    const got: Received[] = [];
    const limits = { maxMessages: 1, maxBytes: 10 };
    const consumer = await broker.consume('orders', limits, (received) => got.push(received));
    await expect.poll(() => got.length).toBe(1);
    expect(broker.depth('orders')).toBe(2);
    await consumer.ack(got);
    expect(broker.depth('orders')).toBe(1);
    expect(await Promise.all(broker.publish([message], { timeoutMs: 1000 }))).toEqual([
      { outcome: 'confirmed' },
    ]);
  });

  test('takes turns among its consumers', async () => {
    const broker = memoryBroker({ queues: ['orders'] });
    await broker.open();
    const got: string[] = [];
    for (const name of ['a', 'b']) {
      await broker.consume('orders', { maxMessages: 10, maxBytes: 100 }, () => got.push(name));
    }
    const message = { address: 'orders', payload: bytes, headers: {} };
    await Promise.all(broker.publish([message, message, message, message], { timeoutMs: 1000 }));
    await expect.poll(() => got).toEqual(['a', 'b', 'a', 'b']);
  });
});

import { startProxy } from '@redrive/services';
import { describeService, rabbitmqClient, sharedServer } from '@redrive/services/vitest';
import { expect, it } from 'vitest';
import { rabbitmq, type RabbitState } from './index.ts';

const nothing = () => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const limits = { maxMessages: 100, maxBytes: 1 << 24 };
/** As long as a busy machine may take, and far less than the pause that one of the connections draws. */
const soon = { timeout: 20_000, interval: 5 };

describeService('RabbitMQ', () => {
  it('as soon as one connection is back, the other one is tried too', async () => {
    const url = await sharedServer('RabbitMQ');
    await using client = await rabbitmqClient(url);
    await using proxy = await startProxy(url);
    let draws = 0;
    const random = () => [0, 0.999][draws++ % 2]!;
    const policy = { base: '10m', cap: '10m', jitter: 'full' } as const;
    const states: string[] = [];
    const onState = ({ state }: RabbitState) => states.push(state);
    const broker = rabbitmq({ url: proxy.url, log, policy, random, onState });
    await broker.open();
    await broker.consume(await client.queue(), limits, nothing);
    states.length = 0;
    proxy.cut();
    await expect.poll(() => states.at(-1), soon).toBe('connected');
    expect(states).toContain('connecting');
    expect(draws).toBe(2);
    await expect.poll(() => broker.isReady, soon).toBe(true);
    await broker.close();
  });
});

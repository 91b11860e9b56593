import {
  describeService,
  rabbitmqClient,
  type RabbitmqClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type RabbitBroker, rabbitmq, type Topology } from './index.ts';

/** The server may have to start first, on a busy machine. */
const START_MS = 60_000;

/** As long as a busy machine may take. */
const soon = { timeout: 20_000, interval: 5 };

describeService('RabbitMQ', () => {
  let url: string;
  let client: RabbitmqClient;
  let said: { message: string; what?: string; why?: string }[];
  const brokers: RabbitBroker[] = [];
  beforeAll(async () => {
    url = await sharedServer('RabbitMQ');
    client = await rabbitmqClient(url);
  }, START_MS);
  afterAll(() => client.close());
  beforeEach(() => {
    said = [];
  });
  afterEach(async () => {
    await Promise.all(brokers.splice(0).map((broker) => broker.close()));
  });

  async function open(topology: Topology): Promise<RabbitBroker> {
    const keep = (fields: object, message: string) => void said.push({ message, ...fields });
    const log = { debug: keep, info: keep, warn: keep, error: keep };
    const broker = rabbitmq({ url, topology, log, policy: { base: '5ms', cap: '50ms' } });
    brokers.push(broker);
    await broker.open();
    return broker;
  }

  /** By a declaration that would be refused if it were anything else. */
  async function isDeclared(queue: string, args: object): Promise<boolean> {
    const channel = await client.connection.createChannel();
    channel.on('error', () => undefined);
    return channel.assertQueue(queue, { durable: true, arguments: args }).then(
      async () => {
        await channel.close();
        return true;
      },
      () => false,
    );
  }

  it('is made where it is missing, with its types and bindings', async () => {
    const [exchange, plain, safe] = [client.name(), client.name(), client.name()];
    const broker = await open({
      exchanges: [{ name: exchange, type: 'topic' }],
      queues: [{ name: plain }, { name: safe, type: 'quorum' }],
      bindings: [
        { exchange, queue: plain, pattern: 'order.#' },
        { exchange, queue: safe, pattern: 'mail.*' },
      ],
    });
    expect(broker.state).toMatchObject({ state: 'connected' });
    expect(await isDeclared(plain, {})).toBe(true);
    expect(await isDeclared(safe, { 'x-queue-type': 'quorum' })).toBe(true);
    client.channel.publish(exchange, 'order.7.failed', Buffer.from('1'));
    client.channel.publish(exchange, 'mail.7', Buffer.from('2'));
    await expect.poll(() => client.depth(plain), soon).toBe(1);
    await expect.poll(() => client.depth(safe), soon).toBe(1);
    expect(said).toEqual([]);
  });

  it('is used as it is where it exists with other settings, which is said once', async () => {
    const queue = await client.queue({ arguments: { 'x-max-length': 5 } });
    const broker = await open({ queues: [{ name: queue, type: 'quorum' }] });
    const consumer = await broker.consume(queue, { maxMessages: 1, maxBytes: 1 }, () => undefined);
    expect(consumer.state).toEqual({ state: 'consuming' });
    expect(broker.state).toMatchObject({ state: 'connected' });
    expect(broker.state.why).toBeUndefined();
    expect(said).toMatchObject([
      { message: `The queue ${queue} exists with other settings and is used as it is` },
    ]);
    expect(said[0]!.why).toContain('PRECONDITION');
  });

  it('says when an exchange has another type than was meant', async () => {
    const [exchange, queue] = [client.name(), client.name()];
    await client.channel.assertExchange(exchange, 'direct');
    await open({
      exchanges: [{ name: exchange, type: 'topic' }],
      queues: [{ name: queue }],
      bindings: [{ exchange, queue, pattern: 'a' }],
    });
    expect(said).toMatchObject([
      { message: `The exchange ${exchange} exists with other settings and is used as it is` },
    ]);
    client.channel.publish(exchange, 'a', Buffer.from('1'));
    await expect.poll(() => client.depth(queue), soon).toBe(1);
  });

  it.each(['fanout', 'headers'] as const)(
    'is bound to an exchange that is a %s exchange as that needs it',
    async (type) => {
      const [exchange, queue] = [client.name(), client.name()];
      await client.channel.assertExchange(exchange, type);
      const broker = await open({
        exchanges: [{ name: exchange, type: 'topic' }],
        queues: [{ name: queue }],
        bindings: [{ exchange, queue, pattern: '#' }],
      });
      client.channel.publish(exchange, 'a', Buffer.from('1'), { headers: { any: 'one' } });
      await expect.poll(() => client.depth(queue), soon).toBe(1);
      expect(broker.state.why).toBeUndefined();
    },
  );

  it('says when a binding can bring nothing', async () => {
    const [exchange, queue] = [client.name(), client.name()];
    await client.channel.assertExchange(exchange, 'direct');
    const broker = await open({
      exchanges: [{ name: exchange, type: 'topic' }],
      queues: [{ name: queue }],
      bindings: [{ exchange, queue, pattern: '#' }],
    });
    expect(broker.state.why).toBe(
      `The binding of ${queue} to ${exchange} by # brings nothing: ${exchange} is a direct exchange, which knows no patterns: name the routing keys.`,
    );
  });

  it('says what is missing while it cannot be made, and makes it as soon as it can', async () => {
    const [exchange, queue] = [client.name(), client.name()];
    const broker = await open({
      queues: [{ name: queue }],
      bindings: [{ exchange, queue, pattern: 'a' }],
    });
    expect(broker.state).toMatchObject({
      state: 'connected',
      why: expect.stringContaining(`binding of ${queue} to ${exchange}`) as string,
    });
    await client.channel.assertExchange(exchange, 'direct');
    await expect.poll(() => broker.state.why, soon).toBeUndefined();
    client.channel.publish(exchange, 'a', Buffer.from('1'));
    await expect.poll(() => client.depth(queue), soon).toBe(1);
    expect(said.length).toBe(1);
  });

  it('has a queue that is made on demand only once a message has looked for it', async () => {
    const queue = client.name();
    const broker = await open({ queues: [{ name: queue, onDemand: true, required: false }] });
    const message = { address: queue, payload: Buffer.from('1'), headers: {} };
    const publish = async () => {
      const [published] = await Promise.all(broker.publish([message], { timeoutMs: 20_000 }));
      return published!.outcome;
    };
    expect(await publish()).toBe('unroutable');
    await expect.poll(publish, soon).toBe('confirmed');
    expect(await client.depth(queue)).toBe(1);
    expect(said).toEqual([]);
  });

  it('does without a queue that is not required', async () => {
    const broker = await open({ queues: [{ name: 'amq.reserved', required: false }] });
    expect(broker.state).toMatchObject({ state: 'connected' });
    expect(broker.state.why).toBeUndefined();
    expect(said).toMatchObject([
      { message: 'The queue amq.reserved is not there and could not be made' },
    ]);
  });

  it('is bound again with a queue that was deleted while it was consumed', async () => {
    const [exchange, queue] = [client.name(), client.name()];
    const broker = await open({
      exchanges: [{ name: exchange, type: 'fanout' }],
      queues: [{ name: queue }],
      bindings: [{ exchange, queue, pattern: '' }],
    });
    let received = 0;
    const limits = { maxMessages: 1, maxBytes: 1000 };
    const consumer = await broker.consume(queue, limits, () => (received += 1));
    await client.channel.deleteQueue(queue);
    await expect.poll(() => said.length, soon).toBe(1);
    await expect.poll(() => consumer.state.state, soon).toBe('consuming');
    client.channel.publish(exchange, '', Buffer.from('1'));
    await expect.poll(() => received, soon).toBe(1);
  });
});

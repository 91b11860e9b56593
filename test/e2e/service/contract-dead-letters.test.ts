/**
 * Contract section 1, the dead-letter side, as a user sets it up. The queue `redrive.dead-letters` is one for all, so these
 * services run one after the other, and in this file alone.
 */
import { randomUUID } from 'node:crypto';
import { describeService } from '@redrive/services/vitest';
import type { Options } from 'amqplib';
import { describe, expect, test } from 'vitest';
import { eventually } from './redrive-process.ts';
import { Scene, SLOW, useScene } from './scene.ts';

const QUEUE = 'redrive.dead-letters';
const uuidV5 = /^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

/** What is left of a run that was killed would come in. */
async function removeQueue(scene: Scene): Promise<void> {
  await scene.channel.deleteQueue(scene.owns(QUEUE));
}

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  describe('with nothing but DEAD_LETTER_EXCHANGE', () => {
    let exchange = '';
    const scene = useScene(async () => {
      const made = await Scene.prepare();
      await removeQueue(made);
      exchange = made.name();
      await made.start({ DEAD_LETTER_EXCHANGE: exchange });
      return made;
    });

    const dying = (others: Options.AssertQueue = {}) => ({
      deadLetterExchange: exchange,
      ...others,
    });

    /** A queue whose consumer fails with each message so often, whatever the order they come in, and then succeeds. */
    function failing(times: number) {
      return scene().queue({
        ...dying(),
        answer(message, channel) {
          const failures = (message.properties.headers?.['x-retry-count'] ?? 0) as number;
          if (failures >= times) channel.ack(message);
          else channel.nack(message, false, false);
        },
      });
    }

    test.concurrent('a topic exchange and its queue are declared', async () => {
      const channel = await scene().riskyChannel();
      // As another type it would be refused.
      await channel.assertExchange(exchange, 'topic', { durable: true });
      expect(await channel.checkQueue(QUEUE)).toMatchObject({ consumerCount: 1 });
      await channel.close();
    });

    test.concurrent('a plain nack is retried in its queue, with everything that it had', async () => {
      const queue = await failing(1);
      const body = Buffer.from('{"order":7}');
      const properties = {
        contentType: 'application/json',
        contentEncoding: 'identity',
        correlationId: 'c',
        type: 'order',
        headers: { tenant: 'acme', n: 1 },
      };
      await scene().put(queue.name, body, properties);
      await queue.next();
      const retried = await queue.next();
      expect(retried.content).toEqual(body);
      const { headers, ...others } = properties;
      expect(retried.properties).toMatchObject(others);
      expect(retried.properties.headers).toMatchObject({
        ...headers,
        'x-retry-count': 1,
        'x-retry-scheduler': 'true',
        'x-original-exchange': '',
        'x-original-routing-key': queue.name,
      });
      for (const name of ['x-death', 'x-first-death-queue', 'x-first-death-reason']) {
        expect(retried.properties.headers).not.toHaveProperty(name);
      }
    });

    test.concurrent('it goes to the queue where it died, not round by the exchange that it came through', async () => {
      const source = scene().name();
      await scene().channel.assertExchange(source, 'fanout');
      const [queue, other] = [await failing(1), await scene().queue()];
      await scene().channel.bindQueue(queue.name, source, '');
      await scene().channel.bindQueue(other.name, source, '');
      await scene().publish(source, 'order.new', Buffer.from('x'));
      await queue.next();
      const { properties } = await queue.next();
      expect(properties.headers).toMatchObject({
        'x-original-exchange': source,
        'x-original-routing-key': 'order.new',
      });
      expect(other.letters).toHaveLength(1);
    });

    test.concurrent('one that always dies comes to its end: its count is carried', async () => {
      const queue = await failing(Infinity);
      const id = randomUUID();
      await scene().put(queue.name, Buffer.from('x'), { messageId: id });
      const { body, headers } = await scene().review(id);
      expect(body).toMatchObject({ original_queue: queue.name, retry_count: 3, max_retries: 3 });
      expect(headers).toMatchObject({ 'x-max-retries-exceeded': 'true' });
      expect(queue.counts).toEqual([undefined, 1, 2, 3]);
    });

    test.concurrent('also one without any id, by that of Redrive', async () => {
      const queue = await failing(Infinity);
      await scene().put(queue.name, Buffer.from('x'));
      await queue.count(4);
      const [, id, ...others] = queue.ids;
      expect(others).toEqual([id, id]);
      expect((await scene().review(String(id))).body).toMatchObject({ retry_count: 3 });
    });

    test.concurrent('the delivery limit of a quorum queue', async () => {
      const queue = await scene().queue({
        ...dying({ arguments: { 'x-queue-type': 'quorum', 'x-delivery-limit': 2 } }),
        answer(message, channel) {
          if (message.properties.headers?.['x-retry-count']) channel.ack(message);
          else channel.nack(message, false, true);
        },
      });
      await scene().put(queue.name, Buffer.from('x'));
      const { properties } = await queue.first(
        (letter) => letter.properties.headers?.['x-retry-count'] === 1,
      );
      const id = properties.headers?.['x-message-id'] as string;
      expect((await scene().service.task(id))?.error?.code).toBe('DEAD_LETTER_DELIVERY_LIMIT');
    });

    test.concurrent.for([
      ['expired', { messageTtl: 1 }, 'EXPIRED'],
      ['maxlen', { maxLength: 1 }, 'PERMANENT'],
    ] as const)('what %s go to review', async ([, options, reason]) => {
      const queue = await scene().deafQueue(dying(options));
      const id = randomUUID();
      await scene().put(queue, Buffer.from('first'), { messageId: id });
      await scene().put(queue, Buffer.from('second'));
      const { body, headers } = await scene().review(id);
      expect(headers).toMatchObject({ 'x-review-reason': reason, 'x-original-queue': queue });
      expect(body).toMatchObject({ retry_count: 0, original_payload: btoa('first') });
    });

    test.concurrent('a queue to wait in is not the origin: the newest death that is no expiry is', async () => {
      const wait = await scene().deafQueue(dying({ messageTtl: 20 }));
      let deaths = 0;
      const queue = await scene().queue({
        deadLetterExchange: '',
        deadLetterRoutingKey: wait,
        answer(message, channel) {
          deaths += 1;
          if (deaths === 1) channel.nack(message, false, false);
          else channel.ack(message);
        },
      });
      await scene().put(queue.name, Buffer.from('x'));
      await queue.next();
      expect((await queue.next()).properties.headers).toMatchObject({ 'x-retry-count': 1 });
    });

    test.concurrent('the count is that of x-retry-count, never that of x-death', async () => {
      const queue = await scene().queue();
      const death = { queue: queue.name, reason: 'rejected', count: 9, exchange: '' };
      const headers = { 'x-death': [death], 'x-retry-count': 1 };
      await scene().publish(exchange, 'any', Buffer.from('x'), { headers });
      expect((await queue.next()).headers).toMatchObject({ 'x-retry-count': 2 });
    });

    test.concurrent('the id: x-message-id, else its own UUID, else one made of origin, id and body', async () => {
      const queue = await failing(1);
      const [uuid, given] = [randomUUID(), randomUUID()];
      const put = (text: string, messageId: string) =>
        scene().put(queue.name, Buffer.from(text), { messageId });
      await scene().put(queue.name, Buffer.from('by header'), {
        messageId: randomUUID(),
        headers: { 'x-message-id': given },
      });
      await put('by uuid', uuid.toUpperCase());
      await put('one', 'order-7');
      await put('two', 'order-7');
      const sent = new Map<string, string>();
      for (const { content, properties } of await queue.count(8)) {
        // The first may be back before the last has failed.
        if (properties.headers?.['x-retry-count'] === undefined) continue;
        sent.set(content.toString(), properties.headers['x-message-id'] as string);
      }
      expect(sent.get('by header')).toBe(given);
      expect(sent.get('by uuid')).toBe(uuid);
      expect(sent.get('one')).toMatch(uuidV5);
      expect(sent.get('two')).toMatch(uuidV5);
      expect(sent.get('one')).not.toBe(sent.get('two'));
    });

    test.concurrent('equal messages without an id are never merged', async () => {
      const queue = await failing(1);
      for (let n = 0; n < 3; n++) await scene().put(queue.name, Buffer.from('same'));
      const all = await queue.count(6);
      const ids = all.map(({ properties }) => properties.headers?.['x-message-id'] as unknown);
      expect(new Set(ids.filter((id) => id !== undefined)).size).toBe(3);
    });

    test.concurrent("what dies in a queue of Redrive's own goes straight to the inbox", async () => {
      const id = randomUUID();
      const died = [{ queue: scene().retryQueue, reason: 'rejected', count: 1, exchange: '' }];
      await scene().publish(exchange, 'any', Buffer.from('own'), {
        messageId: id,
        headers: { 'x-death': died },
      });
      const items = await eventually(
        () => scene().service.items({ text: 'OWN_QUEUE' }),
        ({ length }) => length === 1,
      );
      expect(items).toMatchObject([{ error: { class: 'technical' } }]);
      expect(await scene().sql('SELECT FROM retry_queue WHERE message_id = $1', [id])).toEqual([]);
    });

    test.concurrent('without any origin it is unreadable; two headers name one where x-death does not', async () => {
      const raw = Buffer.from(`from nowhere ${randomUUID()}`);
      await scene().publish(exchange, 'any', raw);
      const review = await scene().reviewOfRaw(raw);
      expect(review.headers).toMatchObject({ 'x-review-reason': 'UNREADABLE' });

      const [first, second] = [await scene().queue(), await scene().queue()];
      const send = (headers: object) => scene().publish(exchange, 'any', raw, { headers });
      await send({ 'x-original-queue': first.name });
      await send({ 'x-first-death-queue': second.name, 'x-original-queue': first.name });
      expect((await first.next()).content).toEqual(raw);
      expect((await second.next()).content).toEqual(raw);
      expect(first.letters).toHaveLength(1);
    });
  });

  test('an exchange of another type that is there is bound as it needs', SLOW, async () => {
    await using scene = await Scene.prepare();
    await removeQueue(scene);
    const key = 'orders.dead';
    const told: unknown[] = [];
    const retried = async (type: 'direct' | 'fanout' | 'headers') => {
      const exchange = scene.name();
      await scene.channel.assertExchange(exchange, type);
      // A direct one knows no patterns, and that is told.
      const binding = type === 'direct' ? { DEAD_LETTER_BINDINGS: `${key},#` } : {};
      const service = await scene.start({ DEAD_LETTER_EXCHANGE: exchange, ...binding });
      const { checks } = await service.readiness();
      told.push(checks.find(({ name }) => name === 'broker')?.detail?.includes('direct exchange'));
      let failures = 0;
      const queue = await scene.queue({
        deadLetterExchange: exchange,
        deadLetterRoutingKey: key,
        answer(message, channel) {
          failures += 1;
          if (failures > 1) channel.ack(message);
          else channel.nack(message, false, false);
        },
      });
      await scene.put(queue.name, Buffer.from(type));
      await queue.next();
      return (await queue.next()).content.toString();
    };
    const types = ['direct', 'fanout', 'headers'] as const;
    expect(await Promise.all(types.map(retried))).toEqual(types);
    expect(told.filter(Boolean)).toEqual([true]);
  });

  test(
    'off unless an exchange is named, and UNCLASSIFIED_AS and DEAD_LETTER_BINDINGS say what is taken and how',
    SLOW,
    async () => {
      await using scene = await Scene.prepare();
      await removeQueue(scene);
      const plain = await scene.start();
      await expect((await scene.riskyChannel()).checkQueue(QUEUE)).rejects.toThrow('NOT_FOUND');
      await plain.stop();
      const exchange = scene.name();
      const narrow = await scene.start({
        DEAD_LETTER_EXCHANGE: exchange,
        DEAD_LETTER_BINDINGS: '*.dlq, #.dead',
        UNCLASSIFIED_AS: 'business',
      });
      const died = (queue: string) => ({
        'x-death': [{ queue, reason: 'rejected', exchange: '' }],
      });
      const send = (key: string) => {
        const id = randomUUID();
        const properties = { messageId: id, headers: died('orders') };
        return scene.publish(exchange, key, Buffer.from(key), properties).then(() => id);
      };
      const other = await send('orders.other');
      const [first, second] = [await send('orders.dlq'), await send('orders.eu.dead')];
      expect((await scene.review(first)).body.classification).toBe('BUSINESS');
      expect((await scene.review(second)).headers).toMatchObject({
        'x-review-reason': 'PERMANENT',
      });
      expect(await narrow.items({ message_id: other })).toEqual([]);
    },
  );
});

/** Contract section 1, Republish: what goes out again, to the byte, and what never does. */
import { describeService } from '@redrive/services/vitest';
import type { MessageProperties, Options } from 'amqplib';
import { describe, expect, test } from 'vitest';
import { useScene } from './scene.ts';

const ours = [
  'x-retry-count',
  'x-original-error',
  'x-retry-scheduler',
  'x-message-id',
  'x-original-exchange',
  'x-original-routing-key',
];

function isOurs(name: string): boolean {
  return ours.includes(name) || name.startsWith('x-redrive-');
}

/** What is there beside what Redrive adds. */
function theirs({ headers = {} }: MessageProperties): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isOurs(name)));
}

/** What is set of the properties, and is not about the envelope. */
function carried(properties: MessageProperties): object {
  const isCarried = ([name, value]: [string, unknown]) =>
    value !== undefined && name !== 'headers' && name !== 'contentType';
  return Object.fromEntries(Object.entries(properties).filter(isCarried));
}

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  const scene = useScene();

  /** The same properties, as the broker hands them to anybody, and as they come with a retry. */
  async function compared(properties: Options.Publish) {
    const [control, queue] = [await scene().queue(), await scene().queue()];
    await scene().put(control.name, Buffer.from('x'), { persistent: true, ...properties });
    const id = await scene().retry({ original_queue: queue.name, error_reason: 'oh' }, properties);
    return { id, plain: await control.next(), retried: await queue.of(id) };
  }

  describe('what is carried', () => {
    test.concurrent('properties and headers come again as they were, value for value', async () => {
      const { plain, retried } = await compared({
        correlationId: 'c-7',
        replyTo: 'answers',
        type: 'order.created',
        appId: 'shop',
        messageId: 'm-1',
        timestamp: 1_700_000_000,
        priority: 3,
        headers: {
          text: 'grüße 漢字 \u{1F600}',
          empty: '',
          number: 42,
          large: 2 ** 40,
          negative: -7,
          fraction: 0.1,
          yes: true,
          no: false,
          nothing: null,
          bytes: Buffer.from([0, 1, 254, 255]),
          list: ['a', 1, [true, null]],
          table: { a: { b: { c: 'deep' } }, n: 1 },
          at: { '!': 'timestamp', value: 1_700_000_000 },
          short: { '!': 'short', value: 12 },
          'x-tenant': 'acme',
          constructor: 'no trap',
        },
      });
      expect(carried(retried.properties)).toEqual(carried(plain.properties));
      expect(theirs(retried.properties)).toEqual(plain.properties.headers);
    });

    test.concurrent('nothing is made up where nothing came', async () => {
      const { plain, retried } = await compared({});
      expect(carried(retried.properties)).toEqual(carried(plain.properties));
      expect(theirs(retried.properties)).toEqual({});
      expect(retried.properties.contentType).toBeUndefined();
    });

    test.concurrent('the content type of the payload is not that of the envelope', async () => {
      const { retried } = await compared({
        headers: { 'x-original-content-type': 'application/vnd.shop+json' },
      });
      expect(retried.properties.contentType).toBe('application/vnd.shop+json');
    });
  });

  describe('what is added', () => {
    test.concurrent('count, error, mark and id, the count as an integer', async () => {
      const { id, retried } = await compared({});
      expect(retried.properties.headers).toMatchObject({
        'x-retry-count': 1,
        'x-original-error': 'oh',
        'x-retry-scheduler': 'true',
        'x-message-id': id,
      });
      expect(retried.properties.headers).not.toHaveProperty('x-original-exchange');
      expect(retried.properties.headers).not.toHaveProperty('x-original-routing-key');
    });

    test.concurrent('exchange and routing key where they are known', async () => {
      const known = { 'x-original-exchange': 'shop', 'x-original-routing-key': 'order.new' };
      const { retried } = await compared({ headers: known });
      expect(retried.properties.headers).toMatchObject(known);
    });

    test.concurrent('an error is cut to 1 KiB, between characters', async () => {
      const queue = await scene().queue();
      const error = `a${'ü'.repeat(2000)}`;
      const id = await scene().retry({ original_queue: queue.name, error_reason: error });
      const { properties } = await queue.of(id);
      // 1 + 511 * 2 bytes: half a character would be over.
      expect(properties.headers?.['x-original-error']).toBe(`a${'ü'.repeat(511)}`);
      expect((await scene().service.task(id))?.error?.message).toBe(error);
    });

    test.concurrent('ours from before are written anew', async () => {
      const { id, retried } = await compared({
        headers: {
          'x-retry-count': 1,
          'x-original-error': 'an old one',
          'x-retry-scheduler': 'false',
          'x-message-id': 'somebody',
          'x-original-queue': 'elsewhere',
        },
      });
      expect(retried.properties.headers).toMatchObject({
        'x-retry-count': 2,
        'x-original-error': 'oh',
        'x-retry-scheduler': 'true',
        'x-message-id': id,
      });
      expect(retried.properties.headers).not.toHaveProperty('x-original-queue');
    });
  });

  describe('what is never carried', () => {
    test.concurrent('user_id and expiration', async () => {
      const { plain, retried } = await compared({ userId: 'guest', expiration: '60000' });
      expect(plain.properties).toMatchObject({ userId: 'guest', expiration: '60000' });
      expect(retried.properties.userId).toBeUndefined();
      expect(retried.properties.expiration).toBeUndefined();
    });

    test.concurrent('headers by which the broker does something, or says something', async () => {
      const hostile = {
        'x-delay': 100_000,
        'x-death': [{ queue: 'q', reason: 'rejected', count: 7 }],
        'x-first-death-queue': 'q',
        'x-first-death-reason': 'rejected',
        'x-first-death-exchange': '',
        'x-last-death-queue': 'q',
        'x-last-death-reason': 'rejected',
      };
      const { plain, retried } = await compared({ headers: { ...hostile, kept: 'yes' } });
      expect(plain.properties.headers).toMatchObject(hostile);
      expect(theirs(retried.properties)).toEqual({ kept: 'yes' });
    });

    test.concurrent('CC and BCC: no copies go anywhere', async () => {
      const [queue, cc, bcc] = await Promise.all([
        scene().queue(),
        scene().queue(),
        scene().queue(),
      ]);
      const id = await scene().retry(
        { original_queue: queue.name },
        { headers: { CC: [cc.name], BCC: [bcc.name] } },
      );
      const { properties } = await queue.of(id);
      expect(theirs(properties)).toEqual({});
      await scene().service.taskThat(id, ({ status }) => status === 'retried');
      // Of the message to Redrive itself, and of nothing else: what came later would be behind this.
      for (const { name } of [cc, bcc]) await scene().put(name, Buffer.from('end'));
      for (const box of [cc, bcc]) {
        const [first, second] = await box.count(2);
        expect(first!.content.toString()).toContain(id);
        expect(second!.content.toString()).toBe('end');
      }
    });
  });

  describe('many headers', () => {
    test.concurrent('60 KiB of them go to review, with their message, and harm nobody', async () => {
      const queue = await scene().queue();
      const headers = Object.fromEntries(
        Array.from({ length: 60 }, (_, n) => [`h${n}`, 'x'.repeat(1000)]),
      );
      const bad = await scene().retry({ original_queue: queue.name }, { headers });
      const good = await scene().retry({ original_queue: queue.name });
      expect((await scene().review(bad)).headers).toMatchObject({
        'x-review-reason': 'HEADERS_TOO_LARGE',
      });
      const item = await scene().service.item(bad);
      expect(item.reason).toBe('HEADERS_TOO_LARGE');
      expect(item.headers).toEqual(headers);
      await queue.of(good);
      expect(queue.letters).toHaveLength(1);
    });

    test.concurrent('just under 32 KiB theirs are whole, and ours give way', async () => {
      const queue = await scene().queue();
      const headers = { large: 'x'.repeat(31_900) };
      const id = await scene().retry(
        { original_queue: queue.name, error_reason: 'e'.repeat(1024) },
        { headers },
      );
      const { properties } = await queue.of(id);
      expect(properties.headers).toMatchObject({ ...headers, 'x-message-id': id });
      const error = (properties.headers?.['x-original-error'] ?? '') as string;
      expect(error.length).toBeLessThan(1024);
      expect('e'.repeat(1024)).toContain(error);
    });
  });
});

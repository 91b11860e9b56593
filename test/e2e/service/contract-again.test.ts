/** Contract section 1: the same message again, in every state that it can be in. */
import { randomUUID } from 'node:crypto';
import { describeService } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import { startDeafProxy } from './deaf-proxy.ts';
import { eventually } from './redrive-process.ts';
import { json } from './retry-wire.ts';
import { Scene, SLOW, useScene } from './scene.ts';

const HOUR_MS = 3_600_000;

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  describe('on one service', () => {
    const scene = useScene(() => Scene.open({ RETRY_POLL_INTERVAL_MS: '500' }));

    test.concurrent('waiting: only the later error is kept, and the wait is not shortened', async () => {
      const queue = await scene().deafQueue();
      const dueMs = Date.now() + HOUR_MS;
      const message_id = await scene().retry({
        original_queue: queue,
        error_reason: 'the first',
        next_retry_at_ms: dueMs,
        original_payload: Buffer.from('"first"'),
      });
      await scene().service.taskThat(message_id, () => true);
      await scene().retry({
        message_id,
        original_queue: queue,
        error_reason: 'the second',
        retry_count: 1,
        original_payload: Buffer.from('"second"'),
      });
      const task = await scene().service.taskThat(
        message_id,
        ({ error }) => error?.message === 'the second',
      );
      expect(task).toMatchObject({ status: 'pending', retry_count: 0, payload: 'first' });
      expect(Date.parse(task.due_at)).toBe(dueMs);
    });

    test.concurrent('retried: it waits again, with the payload, headers and error that arrived, and the count goes on', async () => {
      const queue = await scene().queue();
      const fields = { original_queue: queue.name, retry_count: 0, max_retries: 5 };
      const message_id = await scene().retry(
        { ...fields, error_reason: 'one', original_payload: Buffer.from('a') },
        { headers: { first: '1', both: 'old' }, correlationId: 'one' },
      );
      await queue.next();
      await scene().service.taskThat(message_id, ({ status }) => status === 'retried');
      await scene().retry(
        { ...fields, message_id, error_reason: 'two', original_payload: Buffer.from('b') },
        { headers: { second: '2', both: 'new' }, correlationId: 'two' },
      );
      const { content, properties, headers } = await queue.next();
      expect(content.toString()).toBe('b');
      expect(properties.correlationId).toBe('two');
      expect(headers).toMatchObject({
        second: '2',
        both: 'new',
        'x-retry-count': 2,
        'x-original-error': 'two',
      });
      expect(headers).not.toHaveProperty('first');
      expect((await scene().service.task(message_id))?.attempts).toMatchObject([
        { attempt: 1, error: { message: 'one' } },
        { attempt: 2, error: { message: 'two' } },
      ]);
    });

    test.concurrent('a producer that always sends 0 still exhausts', async () => {
      const message_id = randomUUID();
      const failed = (queue: string) =>
        json({
          message_id,
          original_payload: Buffer.from('x'),
          original_queue: queue,
          retry_count: 0,
        });
      const queue = await scene().queue({
        answer: (message, channel) => {
          channel.ack(message);
          channel.sendToQueue(scene().retryQueue, failed(queue.name));
        },
      });
      await scene().put(scene().retryQueue, failed(queue.name));
      const { body, headers } = await scene().review(message_id);
      expect(body).toMatchObject({ retry_count: 3, max_retries: 3 });
      expect(headers).toMatchObject({ 'x-max-retries-exceeded': 'true' });
      expect(queue.counts).toEqual([1, 2, 3]);
    });

    test.concurrent('failed: one more occurrence of the open item, and no delivery', async () => {
      const queue = await scene().queue();
      const fields = { original_queue: queue.name, retry_count: 3 };
      const message_id = await scene().retry({ ...fields, error_reason: 'once' });
      await scene().service.item(message_id);
      await scene().retry({ ...fields, message_id, retry_count: 0, error_reason: 'twice' });
      const item = await scene().service.item(message_id, ({ occurrences }) => occurrences === 2);
      expect(item).toMatchObject({ reason: 'EXHAUSTED', state: 'open' });
      expect(await scene().service.items({ message_id, state: 'all' })).toHaveLength(1);
      expect(await scene().service.task(message_id)).toMatchObject({ status: 'failed' });
      expect(queue.letters).toHaveLength(0);
    });

    test.concurrent.for(['resolve', 'discard'] as const)(
      'closed by %s: a new open item, CAME_BACK, and it is told again',
      async (action) => {
        const queue = await scene().queue();
        const fields = { original_queue: queue.name, retry_count: 3 };
        const message_id = await scene().retry({ ...fields, error_reason: 'before' });
        const { id } = await scene().service.item(message_id);
        await scene().service.ask('POST', `/api/v1/review/${id}/${action}`, {});
        await scene().retry({ ...fields, message_id, error_reason: 'after' });
        const item = await scene().service.item(message_id);
        expect(item).toMatchObject({ reason: 'CAME_BACK', error: { message: 'after' } });
        expect(item.id).not.toBe(id);
        const { body } = await scene().review(message_id, 'CAME_BACK');
        expect(body.error_reason).toBe('after');
        expect(queue.letters).toHaveLength(0);
      },
    );

    test.concurrent('after a replay the count begins anew, whatever was counted before', async () => {
      const queue = await scene().queue();
      const fields = { original_queue: queue.name, retry_count: 3 };
      const message_id = await scene().retry(fields);
      const { id } = await scene().service.item(message_id);
      await scene().service.ask('POST', `/api/v1/review/${id}/replay`, {});
      await queue.next();
      await scene().service.taskThat(message_id, ({ status }) => status === 'retried');
      await scene().retry({ ...fields, message_id, retry_count: 0 });
      expect((await queue.next()).headers).toMatchObject({ 'x-retry-count': 1 });
      expect(await scene().service.items({ message_id })).toEqual([]);
    });

    test.concurrent('cancelled: a new open item, CAME_BACK', async () => {
      const queue = await scene().queue();
      const message_id = await scene().retry({
        original_queue: queue.name,
        next_retry_at_ms: Date.now() + HOUR_MS,
      });
      await scene().service.taskThat(message_id, () => true);
      const cancelled = await scene().service.ask('DELETE', `/api/v1/retries/${message_id}`);
      expect(cancelled.status).toBe(200);
      expect(await scene().service.task(message_id)).toMatchObject({ status: 'cancelled' });
      await scene().retry({ message_id, original_queue: queue.name, error_reason: 'again' });
      const { headers } = await scene().review(message_id);
      expect(headers).toMatchObject({ 'x-review-reason': 'CAME_BACK' });
      expect(await scene().service.item(message_id)).toMatchObject({ reason: 'CAME_BACK' });
      expect(queue.letters).toHaveLength(0);
    });

    test.concurrent('one message that failed in two queues is two', async () => {
      const [first, second] = [await scene().queue(), await scene().queue()];
      const message_id = await scene().retry({ original_queue: first.name, retry_count: 0 });
      await scene().retry({ message_id, original_queue: second.name, retry_count: 1 });
      const sent = await Promise.all([first.next(), second.next()]);
      expect(sent.map(({ headers }) => headers['x-retry-count'])).toEqual([1, 2]);
      const both = await scene().service.ask('GET', `/api/v1/retries/${message_id}`);
      expect(both.status).toBe(409);
      const rows = await scene().sql('SELECT FROM retry_queue WHERE message_id = $1', [message_id]);
      expect(rows).toHaveLength(2);
    });

    test.concurrent('retried rows are kept for more than a day, and not for ever', async () => {
      const queue = await scene().queue();
      const send = () => scene().retry({ original_queue: queue.name });
      const [young, old] = [await send(), await send()];
      const isRetried = ({ status }: { status: string }) => status === 'retried';
      await scene().service.taskThat(young, isRetried);
      await scene().service.taskThat(old, isRetried);
      const age = 'UPDATE retry_queue SET finished_at = now() - $2::interval WHERE message_id = $1';
      await scene().sql(age, [young, '25 hours']);
      await scene().sql(age, [old, '8 days']);
      await eventually(
        () => scene().service.task(old),
        (task) => task === undefined,
      );
      expect(await scene().service.task(young)).toMatchObject({ status: 'retried' });
    });
  });

  test(
    'in delivery: it is written on the row, and the settle that follows makes it wait with the new count',
    SLOW,
    async () => {
      await using scene = await Scene.prepare();
      await using broker = await startDeafProxy(scene.env['RABBITMQ_URL']!);
      const queue = await scene.queue();
      await scene.start({ RABBITMQ_URL: broker.url }, '--only', 'dispatch');
      // From here on it hears of no confirm.
      broker.hold();
      const message_id = randomUUID();
      await scene.sql(
        `INSERT INTO retry_queue (message_id, original_payload, original_queue, error_reason, next_retry_at)
       VALUES ($1, 'x', $2, 'first', now())`,
        [message_id, queue.name],
      );
      const first = await queue.next();
      const intake = await scene.start({}, '--only', 'intake');
      // What is claimed is still pending.
      await eventually(
        () => intake.metric('retry_queue_depth'),
        (depth) => depth === 1,
      );
      await scene.retry({ message_id, original_queue: queue.name, error_reason: 'second' });
      const [row] = await eventually(
        () =>
          scene.sql('SELECT * FROM retry_queue WHERE message_id = $1 AND arrived', [message_id]),
        ({ length }) => length === 1,
      );
      // Nothing is settled before its confirm.
      expect(row).toMatchObject({ status: 'pending', lease: expect.any(String) as string });
      expect(queue.letters).toHaveLength(1);

      broker.release();
      const second = await queue.next();
      expect([first, second].map(({ headers }) => headers)).toMatchObject([
        { 'x-retry-count': 1, 'x-original-error': 'first' },
        { 'x-retry-count': 2, 'x-original-error': 'second' },
      ]);
      await eventually(
        () => scene.sql<{ status: string }>('SELECT status FROM retry_queue'),
        ([only]) => only?.status === 'retried',
      );
      expect(queue.letters).toHaveLength(2);
    },
  );
});

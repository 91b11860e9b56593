/** Contract section 1, Flow and manual-review.pending. */
import { randomUUID } from 'node:crypto';
import { startProxy } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import { eventually } from './redrive-process.ts';
import { Scene, SLOW, useScene } from './scene.ts';

const BASE_MS = 100_000;
const CAP_MS = 300_000;
const JITTER_MS = 1000;

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  describe('a service with short delays', () => {
    const scene = useScene();

    test.concurrent('a message goes again to its queue, by the default exchange, and never early', async () => {
      const orders = await scene().queue();
      const id = await scene().retry({ original_queue: orders.name, error_reason: 'timeout' });
      const { fields, properties, content, atMs } = await orders.of(id);
      expect(content.toString()).toBe('payload');
      expect(fields).toMatchObject({ exchange: '', routingKey: orders.name });
      expect(properties.deliveryMode).toBe(2);
      const task = await scene().service.taskThat(id, ({ status }) => status === 'retried');
      expect(atMs).toBeGreaterThanOrEqual(Date.parse(task.due_at));
      expect(orders.letters).toHaveLength(1);
    });

    test.concurrent('what has no retries left is decided on arrival: it is told for review, and not sent again', async () => {
      const orders = await scene().queue();
      const sentAtMs = Date.now();
      const id = await scene().retry({
        original_queue: orders.name,
        original_payload: Buffer.from([0, 255, 7]),
        error_reason: 'the last straw',
        retry_count: 2,
        max_retries: 2,
      });
      const { body, headers } = await scene().review(id);
      expect(body).toEqual({
        message_id: id,
        original_queue: orders.name,
        original_payload: 'AP8H',
        error_reason: 'the last straw',
        retry_count: 2,
        max_retries: 2,
        classification: 'TRANSIENT',
        failed_at: new Date(body.failed_at).toISOString(),
      });
      expect(Date.parse(body.failed_at)).toBeGreaterThanOrEqual(sentAtMs);
      expect(headers).toMatchObject({
        'x-max-retries-exceeded': 'true',
        'x-original-queue': orders.name,
      });
      expect(headers).not.toHaveProperty('x-review-reason');
      expect(await scene().service.item(id)).toMatchObject({
        reason: 'EXHAUSTED',
        queue: orders.name,
        payload_base64: 'AP8H',
        retry_count: 2,
        max_retries: 2,
      });
      expect(await scene().service.task(id)).toMatchObject({ status: 'failed', retry_count: 2 });
      expect(orders.letters).toHaveLength(0);
    });

    test.concurrent('a count past the limit is used up as well', async () => {
      const queue = scene().name();
      const id = await scene().retry({ original_queue: queue, retry_count: 9, max_retries: 2 });
      const { body, headers } = await scene().review(id);
      expect(body).toMatchObject({ retry_count: 9, max_retries: 2, error_reason: null });
      expect(headers).toMatchObject({ 'x-max-retries-exceeded': 'true' });
    });

    test.concurrent('another way into review has its reason in a header', async () => {
      const id = await scene().retry({ original_queue: scene().name(), error_reason: 'gone' });
      const { body, headers } = await scene().review(id);
      expect(headers).toMatchObject({ 'x-review-reason': 'UNROUTABLE' });
      expect(headers).not.toHaveProperty('x-max-retries-exceeded');
      expect(body.classification).toBe('TECHNICAL');
    });

    test.concurrent('what a review message does not know is null', async () => {
      const raw = Buffer.from(`no message ${randomUUID()}`);
      await scene().put(scene().retryQueue, raw);
      const { body, headers } = await scene().reviewOfRaw(raw);
      expect(body).toMatchObject({
        original_queue: null,
        original_payload: raw.toString('base64'),
        retry_count: null,
        max_retries: null,
        classification: 'TECHNICAL',
      });
      expect(headers).toMatchObject({ 'x-review-reason': 'UNREADABLE' });
      expect(headers).not.toHaveProperty('x-original-queue');
    });
  });

  test(
    'the delay after retry_count r is that of attempt r + 1: twice as long each time, capped, up to a second more',
    SLOW,
    async () => {
      await using scene = await Scene.open({
        BASE_DELAY_MS: `${BASE_MS}`,
        MAX_DELAY_MS: `${CAP_MS}`,
      });
      const queue = await scene.deafQueue();
      const delaysMs = new Map([
        [0, BASE_MS],
        [1, 2 * BASE_MS],
        [2, CAP_MS],
        [40, CAP_MS],
      ]);
      const jitters = new Set<number>();
      for (const [count, delayMs] of delaysMs) {
        const fromMs = Date.now();
        const id = await scene.retry({
          original_queue: queue,
          retry_count: count,
          max_retries: 100,
        });
        const task = await scene.service.taskThat(id, () => true);
        const dueMs = Date.parse(task.due_at);
        expect(dueMs).toBeGreaterThanOrEqual(fromMs + delayMs);
        expect(dueMs).toBeLessThanOrEqual(Date.now() + delayMs + JITTER_MS);
        jitters.add(dueMs - Date.parse(task.created_at) - delayMs);
      }
      // Four equal draws of a thousand would be no draws.
      expect(jitters.size).toBeGreaterThan(1);
    },
  );

  test(
    'nothing is acknowledged before it is committed, and what is committed outlives the process',
    SLOW,
    async () => {
      await using scene = await Scene.prepare();
      await using database = await startProxy(scene.database.url);
      const orders = await scene.queue();
      const first = await scene.start({ DATABASE_URL: database.url });
      const depth = async () => (await scene.channel.checkQueue(scene.retryQueue)).messageCount;

      const committed = await scene.retry({
        original_queue: orders.name,
        next_retry_at_ms: Date.now() + 1500,
      });
      await first.taskThat(committed, () => true);
      database.stall();
      const held = await scene.retry({ original_queue: orders.name });
      // The service has it, and cannot store it.
      await eventually(depth, (count) => count === 0);
      await first.kill();
      await eventually(depth, (count) => count === 1);

      const second = await scene.start();
      await Promise.all([orders.of(committed), orders.of(held)]);
      expect(orders.letters).toHaveLength(2);
      // All of it is acknowledged in the end, what cannot be read too: nothing goes back.
      const raw = Buffer.from('what?');
      await scene.put(scene.retryQueue, raw);
      await scene.reviewOfRaw(raw);
      await second.stop();
      expect(await depth()).toBe(0);
    },
  );

  test(
    'a review message that nobody takes is tried without end, shown as not well, and no item itself',
    SLOW,
    async () => {
      await using scene = await Scene.prepare();
      // Full, and it says no.
      await scene.channel.assertQueue(scene.reviewQueue, {
        maxLength: 1,
        arguments: { 'x-overflow': 'reject-publish' },
      });
      await scene.put(scene.reviewQueue, Buffer.from('in the way'));
      const service = await scene.start();
      const id = await scene.retry({ original_queue: scene.name(), retry_count: 3 });
      await service.item(id);
      const { checks } = await eventually(
        () => service.readiness(),
        (readiness) => readiness.checks.some(({ name, detail }) => name === 'outbox' && detail),
      );
      expect(checks.find(({ name }) => name === 'outbox')?.detail).toContain('1 review message');
      expect(await service.metric('redrive_outbox_stuck')).toBe(1);
      expect(await service.items({})).toHaveLength(1);

      await scene.channel.purgeQueue(scene.reviewQueue);
      // So long it is left alone after a refusal.
      await scene.sql('UPDATE redrive_outbox SET visible_at = now()');
      await scene.retry({ original_queue: scene.name(), retry_count: 3 });
      const { body } = await scene.review(id);
      expect(body.message_id).toBe(id);
    },
  );
});

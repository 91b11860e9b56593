/** Contract section 1, Republish: queues and connections that do not take what is sent. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProxy } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import type { Options } from 'amqplib';
import { describe, expect, test } from 'vitest';
import { startDeafProxy } from './deaf-proxy.ts';
import { eventually, TemporaryFolder } from './redrive-process.ts';
import { Scene, SLOW, useScene } from './scene.ts';

interface Lane {
  lane: string;
  state: string;
}

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  describe('on one service', () => {
    const scene = useScene();

    test.concurrent('a queue that does not exist: to review as UNROUTABLE', async () => {
      const queue = scene().name();
      const id = await scene().retry({ original_queue: queue, error_reason: 'before' });
      expect((await scene().review(id)).headers).toMatchObject({
        'x-review-reason': 'UNROUTABLE',
        'x-original-queue': queue,
      });
      expect(await scene().service.item(id)).toMatchObject({
        reason: 'UNROUTABLE',
        error: { code: 'UNROUTABLE', class: 'technical' },
      });
      expect(
        await scene().service.metric('retries_executed_total', { queue, status: 'failed' }),
      ).toBe(1);
      expect(await scene().service.metric('retries_exhausted_total', { queue })).toBe(0);
    });

    test.concurrent('a queue deleted while its message waits: to review, and back when it is there again', async () => {
      const queue = await scene().deafQueue();
      const id = await scene().retry({ original_queue: queue });
      await scene().service.taskThat(id, () => true);
      await scene().channel.deleteQueue(queue);
      const item = await scene().service.item(id);
      expect(item.reason).toBe('UNROUTABLE');

      const again = await scene().queue({ name: queue });
      const replay = await scene().service.ask('POST', `/api/v1/review/${item.id}/replay`, {});
      expect(replay.status).toBe(202);
      expect((await again.of(id)).content.toString()).toBe('payload');
    });

    test.concurrent('one bad among many takes no other along', async () => {
      const queue = await scene().queue();
      const bad: string[] = [];
      const good: string[] = [];
      const due = { next_retry_at_ms: Date.now() + 800 };
      const put = (name: string, properties: Options.Publish = {}) =>
        scene().retry({ original_queue: name, ...due }, properties);
      for (let n = 0; n < 100; n++) {
        good.push(await put(queue.name));
        if (n % 25 === 0) bad.push(await put(scene().name()));
        // No client could write it again.
        if (n % 25 === 1) bad.push(await put(queue.name, { headers: { 'x-nested': nested(200) } }));
      }
      await Promise.all(good.map((id) => queue.of(id)));
      for (const id of bad) await scene().service.item(id);
      expect(queue.letters).toHaveLength(good.length);
    });
  });

  test(
    'a queue that refuses: no attempt is burnt, its lane backs off, others go on, and all of it arrives',
    SLOW,
    async () => {
      using folder = new TemporaryFolder();
      await using scene = await Scene.open({
        REDRIVE_CONFIG: configFile(folder, { lane: { openFor: '1s' } }),
        RETRY_POLL_INTERVAL_MS: '200',
      });
      const { service } = scene;
      const full = await scene.deafQueue({
        maxLength: 1,
        arguments: { 'x-overflow': 'reject-publish' },
      });
      const other = await scene.queue();
      await scene.put(full, Buffer.from('in the way'));
      const ids = await Promise.all(
        Array.from({ length: 8 }, () => scene.retry({ original_queue: full, retry_count: 1 })),
      );
      const stateOf = async (queue: string) => {
        const { body } = await service.ask<{ items: Lane[] }>('GET', '/api/v1/lanes');
        return body.items.find(({ lane }) => lane === `queue:${queue}`)?.state;
      };
      await eventually(
        () => stateOf(full),
        (state) => state === 'open' || state === 'probing',
      );
      await other.of(await scene.retry({ original_queue: other.name }));
      for (const id of ids) {
        expect(await service.task(id)).toMatchObject({ status: 'pending', retry_count: 1 });
      }
      expect(await service.metric('redrive_publish_total', { outcome: 'refused' })).toBeGreaterThan(
        0,
      );

      await scene.channel.purgeQueue(full);
      await scene.channel.deleteQueue(full);
      const box = await scene.queue({ name: full });
      await box.count(ids.length);
      expect(box.counts).toEqual(ids.map(() => 2));
      expect(await service.items({})).toEqual([]);
    },
  );

  test(
    'a confirm that does not come: no attempt is burnt, and it is sent again',
    SLOW,
    async () => {
      using folder = new TemporaryFolder();
      await using scene = await Scene.prepare({
        REDRIVE_CONFIG: configFile(folder, { lane: { timeout: '500ms' } }),
      });
      await using broker = await startDeafProxy(scene.env['RABBITMQ_URL']!);
      const service = await scene.start({ RABBITMQ_URL: broker.url });
      const queue = await scene.queue();
      const id = await scene.retry({ original_queue: queue.name });
      await service.taskThat(id, () => true);
      broker.hold();
      await queue.next();
      const unknown = () => service.metric('redrive_publish_total', { outcome: 'unknown' });
      await eventually(unknown, (count) => count > 0);
      expect(await service.task(id)).toMatchObject({ status: 'pending', retry_count: 0 });
      broker.release();
      await service.taskThat(id, ({ status }) => status === 'retried');
      expect(queue.letters.length).toBeGreaterThan(1);
      expect(new Set(queue.counts)).toEqual(new Set([1]));
      expect(await service.items({})).toEqual([]);
    },
  );

  test(
    'a connection cut in the midst of publishing: no attempt is burnt, and all of it arrives',
    SLOW,
    async () => {
      await using scene = await Scene.prepare();
      await using broker = await startProxy(scene.env['RABBITMQ_URL']!);
      const service = await scene.start({ RABBITMQ_URL: broker.url });
      const queue = await scene.queue();
      const dueMs = Date.now() + 1500;
      const ids = await Promise.all(
        Array.from({ length: 200 }, () =>
          scene.retry({
            original_queue: queue.name,
            next_retry_at_ms: dueMs,
            original_payload: Buffer.alloc(1000, 'x'),
          }),
        ),
      );
      await eventually(
        () => service.metric('retries_scheduled_total', { queue: queue.name }),
        (count) => count === ids.length,
      );
      // Some of them are with the broker by then, and most are not.
      await broker.cutAfter(60_000);
      await Promise.all(ids.map((id) => queue.of(id)));
      await eventually(
        () => scene.sql(`SELECT FROM retry_queue WHERE status <> 'retried'`),
        (rows) => rows.length === 0,
      );
      expect(new Set(queue.counts)).toEqual(new Set([1]));
      expect(await service.items({})).toEqual([]);
      // Only what was on its way twice came twice.
      const lost = await service.metric('redrive_publish_total', { outcome: 'lost' });
      expect(queue.letters.length - ids.length).toBeLessThanOrEqual(lost);
    },
  );
});

/** A configuration file for what no variable says. */
function configFile(folder: TemporaryFolder, config: object): string {
  const path = join(folder.path, 'redrive.config.json');
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/** Deeper than any sane message. */
function nested(depth: number): object {
  let value: object = {};
  for (let n = 0; n < depth; n++) value = { n: value };
  return value;
}

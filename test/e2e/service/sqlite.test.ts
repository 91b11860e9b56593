/** The same rules on a file: without any server, and with RabbitMQ alone. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describeService } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import { TemporaryFolder } from './redrive-process.ts';
import { Scene, SLOW, useServers } from './scene.ts';
import { Service } from './service.ts';

const shortDelays = { BASE_DELAY_MS: '50', MAX_DELAY_MS: '1000' };

/** Takes what is delivered by HTTP, and keeps the requests. */
async function receiver() {
  const requests: { headers: IncomingMessage['headers']; atMs: number }[] = [];
  const server = createServer(({ headers }, response) => {
    requests.push({ headers, atMs: Date.now() });
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    requests,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe('on a file, without any server', () => {
  test('a failure told by HTTP is retried by the rules of the contract', async () => {
    using target = await receiver();
    await using service = await Service.start(shortDelays);
    const destination = `${target.origin}/orders`;
    const tell = (fields: object) =>
      service.ask<{ message_id: string; status_of_request: string }>('POST', '/api/v1/retries', {
        destination,
        payload: { order: 7 },
        error_reason: 'timeout',
        ...fields,
      });

    const fromMs = Date.now();
    const { status, body } = await tell({ retry_count: 0 });
    expect([status, body.status_of_request]).toEqual([202, 'accepted']);
    const task = await service.taskThat(body.message_id, () => true);
    const dueMs = Date.parse(task.due_at);
    expect(dueMs).toBeGreaterThanOrEqual(fromMs + 50);
    expect(dueMs).toBeLessThanOrEqual(Date.now() + 50 + 1000);
    await service.taskThat(body.message_id, (one) => one.status === 'done');
    expect(target.requests).toHaveLength(1);
    expect(target.requests[0]!.atMs).toBeGreaterThanOrEqual(dueMs);

    const used = await tell({ retry_count: 3 });
    expect(used.body.status_of_request).toBe('failed');
    expect(await service.item(used.body.message_id)).toMatchObject({ reason: 'EXHAUSTED' });
    const wrong = await tell({ retry_count: 0, classification: 'BUSINESS' });
    expect(wrong.body.status_of_request).toBe('failed');
    expect(await service.item(wrong.body.message_id)).toMatchObject({ reason: 'PERMANENT' });

    const queue = target.origin;
    expect(await service.metric('retries_scheduled_total', { queue })).toBe(1);
    expect(await service.metric('retries_executed_total', { queue, status: 'success' })).toBe(1);
    expect(await service.metric('retries_exhausted_total', { queue })).toBe(1);
    expect((await service.readiness()).checks.map(({ name }) => name)).not.toContain('broker');
    expect(await service.stop()).toBe(0);
  });
});

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  useServers();

  test(
    'on a file, with RabbitMQ: what waits outlives a crash, and all goes its way',
    SLOW,
    async () => {
      await using scene = await Scene.prepare();
      using folder = new TemporaryFolder();
      // Empty is as good as not set.
      const env = { ...scene.env, DATABASE_URL: '', REDRIVE_DATA_DIR: folder.path };
      const queue = await scene.queue();
      const first = await Service.start(env);
      const waiting = await scene.retry({
        original_queue: queue.name,
        original_payload: Buffer.from([0, 255]),
        next_retry_at_ms: Date.now() + 1000,
      });
      await first.taskThat(waiting, () => true);
      await first[Symbol.asyncDispose]();

      await using second = await Service.start(env);
      const { content, properties } = await queue.of(waiting);
      expect(content).toEqual(Buffer.from([0, 255]));
      expect(properties.headers).toMatchObject({ 'x-retry-count': 1, 'x-message-id': waiting });
      await second.taskThat(waiting, ({ status }) => status === 'retried');
      // A producer that always sends 0, and has no retries left.
      await scene.retry({ message_id: waiting, original_queue: queue.name, max_retries: 1 });
      expect((await scene.review(waiting)).body).toMatchObject({ retry_count: 1, max_retries: 1 });
      expect(queue.letters).toHaveLength(1);
    },
  );
});

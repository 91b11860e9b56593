/** Contract section 1: a message of more than 16 MiB. On a broker of its own, since redrive.oversized has one name for all. */
import { randomBytes, randomUUID } from 'node:crypto';
import { type RabbitmqServer, startRabbitmq } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import type { GetMessage } from 'amqplib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eventually } from './redrive-process.ts';
import { Scene, SLOW } from './scene.ts';

const MiB = 1024 * 1024;
const QUEUE = 'redrive.oversized';
const DEAD_LETTERS = 'redrive.dead-letters';
/** Servers, large messages, and pauses between tries that grow. */
const LONG = { timeout: 120_000 };

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  let rabbitmq: RabbitmqServer;
  beforeAll(async () => {
    rabbitmq = await startRabbitmq();
  }, SLOW.timeout);
  afterAll(async () => {
    await rabbitmq.stop();
  }, SLOW.timeout);
  afterEach(async () => {
    await using scene = await Scene.prepare({ RABBITMQ_URL: rabbitmq.url });
    for (const name of [QUEUE, DEAD_LETTERS]) await scene.channel.deleteQueue(name);
  });

  const open = (env: Record<string, string> = {}) =>
    Scene.open({ RABBITMQ_URL: rabbitmq.url, ...env });

  /** What lies in redrive.oversized, as soon as there is something. */
  async function oversized(scene: Scene): Promise<GetMessage> {
    const found = await eventually(
      async () => {
        const channel = await scene.riskyChannel();
        // Until it is made, the broker closes the channel for asking.
        const message = await channel.get(QUEUE, { noAck: true }).catch(() => false as const);
        await channel.close().catch(() => undefined);
        return message;
      },
      (message) => message !== false,
    );
    return found as GetMessage;
  }

  const sources = async ({ service }: Scene) => {
    const { ready, checks } = await service.readiness();
    return { ready, ...checks.find(({ name }) => name === 'sources') };
  };
  const sourceMetric = ({ service, retryQueue: source }: Scene, state: string) =>
    service.metric('redrive_source_state', { source, state });

  test(
    'is in redrive.oversized, whole, with all that came with it and why, and intake goes on',
    LONG,
    async () => {
      await using scene = await open();
      const { service, retryQueue: source } = scene;
      const queue = await scene.queue();
      const raw = randomBytes(17 * MiB);
      await scene.put(source, raw, {
        contentType: 'text/plain',
        correlationId: 'c-17',
        expiration: '600000',
        headers: { 'x-tenant': 'acme', 'x-number': 7, 'x-retry-count': 2 },
      });
      const next = await scene.retry({ original_queue: queue.name });
      await queue.of(next);
      const { content, properties } = await oversized(scene);
      expect(content.equals(raw)).toBe(true);
      expect(properties).toMatchObject({
        contentType: 'text/plain',
        correlationId: 'c-17',
        deliveryMode: 2,
        headers: {
          'x-tenant': 'acme',
          'x-number': 7,
          'x-retry-count': 2,
          'x-redrive-source': source,
          'x-redrive-reason': `The message has ${17 * MiB} bytes, and Redrive stores at most 16777216.`,
        },
      });
      expect(properties.expiration).toBeUndefined();
      await eventually(
        () => scene.channel.checkQueue(source),
        ({ messageCount }) => messageCount === 0,
      );
      expect(await sources(scene)).toEqual({ ready: true, name: 'sources', ok: true });
      const counted = () =>
        service.metric('redrive_intake_messages_total', { source, result: 'oversized' });
      await eventually(counted, (count) => count === 1);
      expect(await service.metric('redrive_expiration_dropped_total', { source })).toBe(1);
      expect(await service.items({})).toEqual([]);
    },
  );

  test('of the dead-letter queue says where it died', LONG, async () => {
    await using scene = await Scene.prepare({ RABBITMQ_URL: rabbitmq.url });
    const exchange = scene.name();
    await scene.start({ DEAD_LETTER_EXCHANGE: exchange });
    const name = await scene.deafQueue({ deadLetterExchange: exchange });
    const raw = randomBytes(17 * MiB);
    await scene.put(name, raw);
    const taken = await scene.channel.get(name);
    scene.channel.nack(taken as GetMessage, false, false);
    const { content, properties } = await oversized(scene);
    expect(content.equals(raw)).toBe(true);
    expect(properties.headers).toMatchObject({
      'x-original-queue': name,
      'x-redrive-source': DEAD_LETTERS,
      'x-redrive-death-reason': 'rejected',
    });
  });

  test.for([
    [
      'refuses it',
      (scene: Scene) =>
        scene.channel.assertQueue(QUEUE, {
          maxLength: 0,
          arguments: { 'x-overflow': 'reject-publish' },
        }),
      () => rabbitmq.url,
      (scene: Scene) => scene.channel.deleteQueue(QUEUE),
      'did not take the message',
    ],
    [
      'is missing, and may not be made',
      async () => {
        await rabbitmq.ctl('add_user', 'narrow', 'narrow');
        await rabbitmq.ctl('set_permissions', 'narrow', '^(?!redrive\\.oversized)', '.*', '.*');
      },
      () => rabbitmq.url.replace('guest:guest', 'narrow:narrow'),
      (scene: Scene) => scene.channel.assertQueue(QUEUE),
      `Queue ${QUEUE} does not exist, and could not be created.`,
    ],
  ] as const)(
    'stops its source, and nothing else, while its queue %s; then it goes on without a restart',
    LONG,
    async ([, prepare, url, mend, why]) => {
      await using scene = await Scene.prepare({ RABBITMQ_URL: rabbitmq.url });
      await prepare(scene);
      const service = await scene.start({ RABBITMQ_URL: url() });
      const queue = await scene.queue();
      const raw = randomBytes(17 * MiB);
      await scene.put(scene.retryQueue, raw);
      await eventually(
        () => sourceMetric(scene, 'stopped'),
        (stopped) => stopped === 1,
      );
      const { ready, ok, detail } = await sources(scene);
      expect([ready, ok]).toEqual([true, true]);
      expect(detail).toContain(`${scene.retryQueue}: A message of ${17 * MiB} bytes`);
      expect(detail).toContain(why);
      // Nobody reads the queue, and the message is not lost: it is with the service, unacknowledged.
      await eventually(
        () => scene.channel.checkQueue(scene.retryQueue),
        ({ consumerCount }) => consumerCount === 0,
      );
      const next = await scene.retry({ original_queue: queue.name });
      const submitted = await service.ask<{ message_id: string }>('POST', '/api/v1/retries', {
        destination: `queue:${queue.name}`,
        payload: 1,
        message_id: randomUUID(),
      });
      expect(submitted.status).toBe(202);
      await queue.of(submitted.body.message_id);
      expect(queue.letters).toHaveLength(1);

      await mend(scene);
      await queue.of(next);
      expect((await oversized(scene)).content.equals(raw)).toBe(true);
      await eventually(
        () => sourceMetric(scene, 'consuming'),
        (consuming) => consuming === 1,
      );
      expect(await sources(scene)).toEqual({ ready: true, name: 'sources', ok: true });
    },
  );

  test('is not lost by a crash while it has no place', LONG, async () => {
    await using scene = await Scene.prepare({ RABBITMQ_URL: rabbitmq.url });
    const overflow = { 'x-overflow': 'reject-publish' };
    await scene.channel.assertQueue(QUEUE, { maxLength: 0, arguments: overflow });
    await scene.start();
    const raw = randomBytes(17 * MiB);
    await scene.put(scene.retryQueue, raw);
    await eventually(
      () => sourceMetric(scene, 'stopped'),
      (stopped) => stopped === 1,
    );
    await scene.service.kill();
    await scene.channel.deleteQueue(QUEUE);
    await scene.start();
    expect((await oversized(scene)).content.equals(raw)).toBe(true);
  });

  test('comes by the dozen, and each is published once', LONG, async () => {
    await using scene = await open();
    const queue = await scene.queue();
    const last = Buffer.alloc(17 * MiB);
    for (let n = 0; n < 12; n++) {
      last[0] = n;
      await scene.put(scene.retryQueue, last);
    }
    await queue.of(await scene.retry({ original_queue: queue.name }));
    const numbers: number[] = [];
    for (let n = 0; n < 12; n++) numbers.push((await oversized(scene)).content[0]!);
    expect(numbers).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(await scene.channel.checkQueue(QUEUE)).toMatchObject({ messageCount: 0 });
  });
});

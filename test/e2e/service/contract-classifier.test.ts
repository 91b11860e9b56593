/**
 * Contract section 1 on a RabbitMQ of its own: everything by its default name, the classifier of dead letters, and a
 * broker that takes nothing for a while.
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RabbitmqServer, startRabbitmq } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, TemporaryFolder } from './redrive-process.ts';
import { Scene, SLOW } from './scene.ts';
import { Service } from './service.ts';

const EXCHANGE = 'dlx';

/** The words of the contract, and its traps. */
const texts = {
  transient: [
    'timeout',
    'connect ETIMEDOUT 10.0.0.1:443',
    'connect ECONNREFUSED',
    'read ECONNRESET',
    'ENETUNREACH',
    'EHOSTUNREACH',
    'write EPIPE',
    'getaddrinfo EAI_AGAIN db',
    'Connection terminated unexpectedly',
    'connection refused',
    'connection closed',
    'connection lost',
    'status 408',
    'code: 425',
    '429',
    'HTTP/1.1 502 Bad Gateway',
    'http 503',
    '504',
    'Too Many Requests',
    'rate limit reached',
    'throttled',
    'ENOMEM',
    'EMFILE',
    'resource temporarily unavailable',
    'Service Unavailable',
    'try again later',
    'circuit open',
    'circuit breaker',
    // Before business, and before technical.
    'validation timeout',
    'TypeError: connection lost',
  ],
  business: [
    'validation failed',
    'schema mismatch',
    'business rule 7',
    'duplicate key',
    'order already exists',
    'already submitted',
    'Unauthorized',
    'forbidden',
    '400',
    'status=401',
    'HTTP 403',
    'code 404',
    '409',
    'http 422',
    'order 503 already exists',
    'TypeError in the validation',
    // By a rule of the configuration, before all that is built in.
    'timeout: Credit  Frozen',
  ],
  technical: [
    'TypeError: x',
    'ReferenceError',
    'RangeError',
    'SyntaxError: bad',
    'f is not a function',
    'cannot read property x',
    "Cannot read properties of undefined (reading 'x')",
    'Unexpected token <',
    'assertion failed',
    'invariant',
    'unreachable',
    'JavaScript heap out of memory',
  ],
  // Neither a word of the list, nor a number where numbers count.
  unknown: ['annulled', 'private', 'syntaxerrors', 'order 503', 'timeouts', 'it broke'],
} as const;

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  let rabbitmq: RabbitmqServer;
  let scene: Scene;
  let service: Service;
  const folder = new TemporaryFolder();
  beforeAll(async () => {
    rabbitmq = await startRabbitmq();
    const config = join(folder.path, 'redrive.config.json');
    const rules = [{ words: ['credit frozen'], class: 'business' }];
    writeFileSync(config, JSON.stringify({ rules }));
    scene = await Scene.prepare({
      RABBITMQ_URL: rabbitmq.url,
      RETRY_QUEUE: 'retry.scheduled',
      MANUAL_REVIEW_QUEUE: 'manual-review.pending',
    });
    service = await Service.start({
      RABBITMQ_URL: rabbitmq.url,
      DATABASE_URL: scene.database.url,
      DEAD_LETTER_EXCHANGE: EXCHANGE,
      REDRIVE_CONFIG: config,
    });
  }, SLOW.timeout);
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await scene?.[Symbol.asyncDispose]();
    await rabbitmq?.stop();
    folder[Symbol.dispose]();
  }, SLOW.timeout);

  /** A dead letter, with the text of its error where the given header has it. Answers its id. */
  async function dead(text: string, header = 'x-exception-stacktrace'): Promise<string> {
    const id = randomUUID();
    const headers = {
      'x-death': [{ queue: 'orders', reason: 'rejected', exchange: '', count: 1 }],
      [header]: text,
    };
    await scene.publish(EXCHANGE, 'orders', Buffer.from(text), { messageId: id, headers });
    return id;
  }

  test('by default it reads retry.scheduled, tells manual-review.pending, and waits two seconds and up to one more', async () => {
    const queue = await scene.queue();
    const fromMs = Date.now();
    const id = await scene.retry({ original_queue: queue.name });
    const task = await service.taskThat(id, () => true);
    expect(Date.parse(task.due_at)).toBeGreaterThanOrEqual(fromMs + 2000);
    expect(Date.parse(task.due_at)).toBeLessThanOrEqual(Date.now() + 3000);
    const used = await scene.retry({ original_queue: queue.name, retry_count: 3 });
    expect((await scene.review(used)).body).toMatchObject({ max_retries: 3 });
    expect((await queue.of(id)).atMs).toBeGreaterThanOrEqual(fromMs + 2000);
  });

  test('a dead letter is judged by whole words of its error', async () => {
    await scene.channel.assertQueue(scene.owns('orders'));
    const expected: [string, string, string][] = [];
    for (const [kind, some] of Object.entries(texts)) {
      for (const text of some) expected.push([await dead(text), kind, text]);
    }
    const found: [string, string, string][] = [];
    for (const [id, , text] of expected) {
      const task = await service.taskThat(id, () => true);
      found.push([id, task.error!.class, text]);
      expect([text, task.status === 'failed']).toEqual([text, task.error!.class !== 'transient']);
    }
    expect(found).toEqual(expected);
  });

  test('the text stands in one of three headers', async () => {
    for (const header of ['x-exception-stacktrace', 'x-death-reason', 'x-original-error']) {
      const { error } = await service.taskThat(await dead('duplicate', header), () => true);
      expect([header, error]).toMatchObject([header, { class: 'business', message: 'duplicate' }]);
    }
  });

  test(
    'a broker that takes nothing for a while: no attempt is burnt, and nothing is lost',
    SLOW,
    async () => {
      const queue = await scene.queue();
      const id = randomUUID();
      await rabbitmq.setMemoryAlarm(true);
      // Whoever publishes is blocked now, this test too.
      await scene.sql(
        `INSERT INTO retry_queue (message_id, original_payload, original_queue, next_retry_at)
       VALUES ($1, 'x', $2, now())`,
        [id, queue.name],
      );
      const { checks } = await eventually(
        () => service.readiness(),
        ({ ready }) => !ready,
      );
      expect(checks.find(({ ok }) => !ok)).toMatchObject({ name: 'broker' });
      expect(await service.task(id)).toMatchObject({ status: 'pending', retry_count: 0 });
      await rabbitmq.setMemoryAlarm(false);
      expect((await queue.of(id)).properties.headers).toMatchObject({ 'x-retry-count': 1 });
      await eventually(
        () => service.readiness(),
        ({ ready }) => ready,
      );
      expect(await service.items({ message_id: id })).toEqual([]);
    },
  );
});

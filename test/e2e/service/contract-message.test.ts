/** Contract section 1, RetryMessage: every field of the table, in both formats, and the headers that count. */
import { randomBytes, randomUUID } from 'node:crypto';
import { describeService } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import { json, protobuf, type RetryFields } from './retry-wire.ts';
import { useScene } from './scene.ts';

const YEAR_MS = 366 * 86_400_000;
const DAY_MS = 86_400_000;
const bytes = randomBytes(300);

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  const scene = useScene();

  const fieldsFor = (queue: string): RetryFields => ({
    message_id: randomUUID(),
    original_payload: bytes,
    original_queue: queue,
    error_reason: 'timeout',
  });

  describe('the format', () => {
    test.concurrent.for([
      ['protobuf, declared', protobuf, 'application/x-protobuf'],
      ['protobuf, declared by its other name', protobuf, 'application/protobuf'],
      ['protobuf, declared with parameters', protobuf, 'Application/X-Protobuf; proto=retry'],
      ['protobuf, declared as JSON', protobuf, 'application/json'],
      ['protobuf, undeclared', protobuf, undefined],
      ['protobuf, declared as something else', protobuf, 'application/octet-stream'],
      ['JSON, declared', json, 'application/json'],
      ['JSON, declared with parameters', json, 'application/json; charset=utf-8'],
      ['JSON, declared as protobuf', json, 'application/x-protobuf'],
      ['JSON, undeclared', json, undefined],
      ['JSON, undeclared, after blanks', spaced, undefined],
      ['JSON with a Buffer as Node writes it', asNode, 'application/json'],
    ] as const)('%s: the payload comes again byte for byte', async ([, write, contentType]) => {
      const queue = await scene().queue();
      const fields = fieldsFor(queue.name);
      await scene().put(scene().retryQueue, write(fields), { ...(contentType && { contentType }) });
      expect((await queue.of(fields.message_id)).content).toEqual(bytes);
    });

    test.concurrent('an empty payload is a payload', async () => {
      const queue = await scene().queue();
      const id = await scene().retry({ original_queue: queue.name, original_payload: Buffer.of() });
      expect((await queue.of(id)).content).toHaveLength(0);
    });
  });

  describe('original_queue', () => {
    test.concurrent.for(['http://127.0.0.1:1/orders', 'handler:orders', 'ü'.repeat(127) + 'x'])(
      '%s is the name of a queue, and nothing else',
      async (name) => {
        const queue = await scene().queue({ name: scene().owns(name) });
        const id = await scene().retry({ original_queue: name });
        expect((await queue.of(id)).fields.routingKey).toBe(name);
      },
    );

    test.concurrent('a header names it where the body does not', async () => {
      const queue = await scene().queue();
      const id = await scene().retry({}, { headers: { 'x-original-queue': queue.name } });
      expect((await queue.of(id)).fields.routingKey).toBe(queue.name);
    });
  });

  describe('the counts', () => {
    test.concurrent.for([
      ['JSON without max_retries has the default', (f: RetryFields) => json(f), 3],
      ['protobuf without max_retries has the default', (f: RetryFields) => protobuf(f), 3],
      ['protobuf 0 is absent', (f: RetryFields) => protobuf({ ...f, max_retries: 0 }), 3],
      ['JSON null is absent', (f: RetryFields) => json(f, { max_retries: null }), 3],
      ['one of its own', (f: RetryFields) => protobuf({ ...f, max_retries: 7 }), 7],
    ] as const)('%s', async ([, write, most]) => {
      const queue = await scene().deafQueue();
      const fields = fieldsFor(queue);
      await scene().put(scene().retryQueue, write(fields));
      const task = await scene().service.taskThat(fields.message_id, () => true);
      expect(task.max_retries).toBe(most);
    });

    test.concurrent('JSON 0: no retry', async () => {
      const id = await scene().retry({ original_queue: scene().name(), max_retries: 0 });
      const { body, headers } = await scene().review(id);
      expect(body).toMatchObject({ retry_count: 0, max_retries: 0 });
      expect(headers).toMatchObject({ 'x-max-retries-exceeded': 'true' });
    });

    test.concurrent.for([
      ['the body where it is larger', 2, 1, 3],
      ['the header where it is larger', 0, 2, 3],
      ['the header also as a text', 0, '2', 3],
      ['the body where the header is no count', 1, 'many', 2],
    ] as const)(
      'of body and header the larger counts: %s',
      async ([, body, header, sent], { expect: expected }) => {
        const queue = await scene().queue();
        const id = await scene().retry(
          { original_queue: queue.name, retry_count: body, max_retries: 5 },
          { headers: { 'x-retry-count': header } },
        );
        const { properties } = await queue.of(id);
        expected(properties.headers).toMatchObject({ 'x-retry-count': sent });
      },
    );

    test.concurrent('a header that has reached the limit exhausts on arrival', async () => {
      const id = await scene().retry(
        { original_queue: scene().name() },
        { headers: { 'x-retry-count': 3 } },
      );
      expect((await scene().review(id)).body).toMatchObject({ retry_count: 3, max_retries: 3 });
    });
  });

  describe('next_retry_at_ms', () => {
    const write = {
      'JSON number': (f: RetryFields) => json(f),
      'JSON text': (f: RetryFields) => json(f, { next_retry_at_ms: `${f.next_retry_at_ms}` }),
      protobuf: (f: RetryFields) => protobuf(f),
    };

    test.concurrent.for(Object.keys(write) as (keyof typeof write)[])(
      'in the future it is the due time, as %s',
      async (format) => {
        const queue = await scene().queue();
        const dueMs = Date.now() + 1300;
        const fields = { ...fieldsFor(queue.name), next_retry_at_ms: dueMs };
        await scene().put(scene().retryQueue, write[format](fields));
        const { due_at: due } = await scene().service.taskThat(fields.message_id, () => true);
        expect(Date.parse(due)).toBe(dueMs);
        expect((await queue.of(fields.message_id)).atMs).toBeGreaterThanOrEqual(dueMs);
      },
    );

    test.concurrent.for(Object.keys(write) as (keyof typeof write)[])(
      'in the past the due time is computed, as %s',
      async (format) => {
        const fromMs = Date.now();
        const queue = await scene().queue();
        const fields = { ...fieldsFor(queue.name), next_retry_at_ms: fromMs - DAY_MS };
        await scene().put(scene().retryQueue, write[format](fields));
        const { due_at: due } = await scene().service.taskThat(fields.message_id, () => true);
        expect(Date.parse(due)).toBeGreaterThanOrEqual(fromMs + 50);
        expect((await queue.of(fields.message_id)).atMs).toBeGreaterThanOrEqual(Date.parse(due));
      },
    );

    test.concurrent('up to a year is honoured', async () => {
      const dueMs = Date.now() + YEAR_MS - DAY_MS;
      const id = await scene().retry({
        original_queue: await scene().deafQueue(),
        next_retry_at_ms: dueMs,
      });
      const { due_at: due, status } = await scene().service.taskThat(id, () => true);
      expect([Date.parse(due), status]).toEqual([dueMs, 'pending']);
    });

    test.concurrent('further than a year it goes to review, microseconds for example', async () => {
      const id = await scene().retry({
        original_queue: await scene().deafQueue(),
        next_retry_at_ms: Date.now() * 1000,
      });
      const { headers } = await scene().review(id);
      expect(headers).toMatchObject({ 'x-review-reason': 'TOO_FAR' });
      expect(await scene().service.item(id)).toMatchObject({ reason: 'TOO_FAR' });
    });
  });

  describe('classification', () => {
    test.concurrent.for([
      ['absent', undefined],
      ['TRANSIENT', 'TRANSIENT'],
      ['0', 0],
    ] as const)('%s is retried', async ([, classification]) => {
      const queue = await scene().queue();
      const fields = fieldsFor(queue.name);
      await scene().put(scene().retryQueue, json(fields, { classification }));
      const { headers } = await queue.of(fields.message_id);
      expect(headers).toMatchObject({ 'x-retry-count': 1 });
    });

    test.concurrent.for([
      ['BUSINESS', (f: RetryFields) => json(f, { classification: 'BUSINESS' }), 'BUSINESS'],
      ['TECHNICAL', (f: RetryFields) => json(f, { classification: 'TECHNICAL' }), 'TECHNICAL'],
      ['UNKNOWN', (f: RetryFields) => json(f, { classification: 'UNKNOWN' }), 'UNKNOWN'],
      ['1 in JSON', (f: RetryFields) => json(f, { classification: 1 }), 'BUSINESS'],
      ['2 on protobuf', (f: RetryFields) => protobuf({ ...f, classification: 2 }), 'TECHNICAL'],
      ['3 on protobuf', (f: RetryFields) => protobuf({ ...f, classification: 3 }), 'UNKNOWN'],
      ['a name nobody knows', (f: RetryFields) => json(f, { classification: 'ODD' }), 'UNKNOWN'],
      [
        'a number past the list',
        (f: RetryFields) => protobuf({ ...f, classification: 9 }),
        'UNKNOWN',
      ],
    ] as const)('%s goes straight to review', async ([, write, classification]) => {
      const queue = await scene().queue();
      const fields = fieldsFor(queue.name);
      await scene().put(scene().retryQueue, write(fields));
      const { body, headers } = await scene().review(fields.message_id);
      expect(body).toMatchObject({ classification, retry_count: 0, max_retries: 3 });
      expect(headers).toMatchObject({ 'x-review-reason': 'PERMANENT' });
      expect(queue.letters).toHaveLength(0);
    });
  });
});

function spaced(fields: RetryFields): Buffer {
  return Buffer.concat([Buffer.from(' \r\n\t'), json(fields)]);
}

/** What `JSON.stringify` makes of a Buffer. */
function asNode(fields: RetryFields): Buffer {
  return Buffer.from(JSON.stringify(fields));
}

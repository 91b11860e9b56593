/** Contract section 1: a message that cannot be understood, and one that is too large. */
import { randomBytes, randomUUID } from 'node:crypto';
import { describeService } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import { json, protobuf, type RetryFields } from './retry-wire.ts';
import { Scene, SLOW, useScene } from './scene.ts';

const MiB = 1024 * 1024;

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  describe('with the default limits', () => {
    const scene = useScene();

    const fieldsFor = (others: Partial<RetryFields> = {}): RetryFields => ({
      message_id: randomUUID(),
      original_payload: randomBytes(20),
      original_queue: 'orders',
      ...others,
    });

    /** The item of these bytes, which the review message leads to. */
    async function itemOf(raw: Buffer) {
      const { body } = await scene().reviewOfRaw(raw);
      return scene().service.item(body.message_id);
    }

    test.concurrent.for([
      ['neither JSON nor protobuf', () => randomBytes(64)],
      ['nothing at all', () => Buffer.of()],
      ['JSON that is no object', () => Buffer.from(`["${randomUUID()}"]`)],
      ['JSON cut short', () => json(fieldsFor()).subarray(0, -4)],
      ['protobuf cut short', () => protobuf(fieldsFor()).subarray(0, -4)],
      ['protobuf of something else', () => protobuf({ message_id: randomUUID() })],
      ['a message_id that is no UUID', () => json(fieldsFor({ message_id: `n-${randomUUID()}` }))],
      ['the same on protobuf', () => protobuf(fieldsFor({ message_id: `n-${randomUUID()}` }))],
      ['a negative retry_count', () => json(fieldsFor({ retry_count: -1 }))],
      ['the same on protobuf, with its sign', () => protobuf(fieldsFor({ retry_count: -1 }))],
      ['no original_queue', () => json(fieldsFor({ original_queue: '' }))],
      ['a name over 255 bytes', () => json(fieldsFor({ original_queue: 'ü'.repeat(128) }))],
      ['a payload that is no base64', () => json(fieldsFor(), { original_payload: 'a$b' })],
    ] as const)('%s: in review, as it came', async ([, write]) => {
      const raw = write();
      await scene().put(scene().retryQueue, raw, { headers: { 'x-tenant': 'acme' } });
      const item = await itemOf(raw);
      expect(item).toMatchObject({
        reason: 'UNREADABLE',
        state: 'open',
        error: { class: 'technical', code: 'UNREADABLE', message: expect.any(String) as string },
        occurrences: 1,
        headers: { 'x-tenant': 'acme' },
      });
      const shown =
        item.payload_base64 ?? Buffer.from(JSON.stringify(item.payload)).toString('base64');
      expect(shown).toBe(raw.toString('base64'));
    });

    test.concurrent('the same bytes again are one more occurrence, under a UUIDv5, and no row', async () => {
      const raw = Buffer.from(`what is ${randomUUID()}?`);
      await scene().put(scene().retryQueue, raw);
      const { message_id: id } = await itemOf(raw);
      expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
      await scene().put(scene().retryQueue, raw);
      await scene().put(scene().retryQueue, raw);
      const item = await scene().service.item(id, ({ occurrences }) => occurrences === 3);
      expect(item.payload_base64).toBe(raw.toString('base64'));
      expect(await scene().service.items({ message_id: id, state: 'all' })).toHaveLength(1);
      expect(await scene().sql('SELECT FROM retry_queue WHERE message_id = $1', [id])).toEqual([]);
    });

    test.concurrent('one among many is acknowledged like the others, which go their way', async () => {
      const queue = await scene().queue();
      const raw = Buffer.from(`bad ${randomUUID()}`);
      const ids: string[] = [];
      for (let n = 0; n < 20; n++) {
        ids.push(await scene().retry({ original_queue: queue.name }));
        if (n === 10) await scene().put(scene().retryQueue, raw);
      }
      await Promise.all([itemOf(raw), ...ids.map((id) => queue.of(id))]);
      expect(queue.letters).toHaveLength(ids.length);
    });

    test.concurrent.for([
      ['base64', (fields: RetryFields) => json(fields)],
      [
        "Node's Buffer",
        (fields: RetryFields) => json(fields, { original_payload: fields.original_payload }),
      ],
      ['protobuf', protobuf],
    ] as const)('a payload of 1 MiB is sent again byte for byte, from %s', async ([, write]) => {
      const queue = await scene().queue();
      const fields = fieldsFor({ original_payload: randomBytes(MiB), original_queue: queue.name });
      await scene().put(scene().retryQueue, write(fields));
      const { content } = await queue.of(fields.message_id);
      expect(content.equals(fields.original_payload)).toBe(true);
    });

    test.concurrent('a payload of one byte more is kept whole with its message, as TOO_LARGE', async () => {
      const raw = protobuf(fieldsFor({ original_payload: randomBytes(MiB + 1) }));
      await scene().put(scene().retryQueue, raw, { contentType: 'application/x-protobuf' });
      const item = await itemOf(raw);
      expect(item.reason).toBe('TOO_LARGE');
      expect(Buffer.from(item.payload_base64!, 'base64').equals(raw)).toBe(true);
    });

    test.concurrent('10 MB too, in the inbox as in the review message', async () => {
      const raw = randomBytes(10_000_000);
      await scene().put(scene().retryQueue, raw);
      const item = await itemOf(raw);
      expect(item.reason).toBe('TOO_LARGE');
      expect(Buffer.from(item.payload_base64!, 'base64').equals(raw)).toBe(true);
    });
  });

  test('10 MB are sent again byte for byte where the limit allows it', SLOW, async () => {
    await using scene = await Scene.open({ REDRIVE_MAX_PAYLOAD_BYTES: `${16 * MiB}` });
    const queue = await scene.queue();
    const fields = {
      message_id: randomUUID(),
      original_payload: randomBytes(10_000_000),
      original_queue: queue.name,
    };
    await scene.put(scene.retryQueue, protobuf(fields));
    const { content } = await queue.of(fields.message_id);
    expect(content.equals(fields.original_payload)).toBe(true);
  });
});

/** Contract section 1, Table: what stands in the document, as SQL sees it. */
import { randomUUID } from 'node:crypto';
import { describeService } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import { Scene, SLOW, useScene } from './scene.ts';
import { Service } from './service.ts';

/** As the document prints it. */
const documentTable = `
  CREATE TABLE retry_queue (
    id BIGSERIAL PRIMARY KEY,
    message_id UUID UNIQUE NOT NULL,
    original_payload BYTEA NOT NULL,
    original_queue VARCHAR(255) NOT NULL,
    error_reason TEXT,
    retry_count INT NOT NULL DEFAULT 0,
    max_retries INT NOT NULL DEFAULT 3,
    next_retry_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP DEFAULT NOW(),
    status VARCHAR(50) DEFAULT 'pending' -- pending, retried, failed
  );
  CREATE INDEX idx_retry_next_retry ON retry_queue(next_retry_at, status)`;

const insert = `
  INSERT INTO retry_queue (message_id, original_payload, original_queue, error_reason, retry_count, max_retries, next_retry_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

interface Row {
  status: string;
  retry_count: number;
  error_reason: string | null;
}

async function rowOf(scene: Scene, id: string): Promise<Row | undefined> {
  const [row] = await scene.sql<Row>('SELECT * FROM retry_queue WHERE message_id = $1', [id]);
  return row;
}

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  describe('a table that Redrive made', () => {
    const scene = useScene(() => Scene.open({ RETRY_POLL_INTERVAL_MS: '60000' }));

    test.concurrent("has the document's columns, types and defaults", async () => {
      const columns = await scene().sql<Record<string, unknown>>(
        `SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type, attnotnull AS required,
           pg_get_expr(adbin, adrelid) AS fallback
         FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
         WHERE attrelid = 'retry_queue'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
      );
      expect(columns.slice(0, 10)).toMatchObject([
        { name: 'id', type: 'bigint', fallback: expect.stringContaining('nextval') as string },
        { name: 'message_id', type: 'uuid', required: true },
        { name: 'original_payload', type: 'bytea', required: true },
        { name: 'original_queue', type: 'character varying(255)', required: true },
        { name: 'error_reason', type: 'text', required: false },
        { name: 'retry_count', type: 'integer', fallback: '0' },
        { name: 'max_retries', type: 'integer', fallback: '3' },
        { name: 'next_retry_at', type: 'timestamp with time zone', required: true },
        { name: 'created_at', type: 'timestamp with time zone', fallback: 'now()' },
        { name: 'status', type: 'character varying(50)', fallback: "'pending'::character varying" },
      ]);
    });

    test.concurrent("the document's own INSERT works, and is delivered when it is due", async () => {
      const queue = await scene().queue();
      const id = randomUUID();
      const dueMs = Date.now() + 300;
      const values = [id, Buffer.from([0, 255]), queue.name, 'timeout', 1, 3, new Date(dueMs)];
      await scene().sql(insert, values);
      const { content, properties, atMs } = await queue.of(id);
      expect(content).toEqual(Buffer.from([0, 255]));
      expect(properties.headers).toMatchObject({
        'x-retry-count': 2,
        'x-original-error': 'timeout',
      });
      expect(atMs).toBeGreaterThanOrEqual(dueMs);
      const task = await scene().service.taskThat(id, ({ status }) => status === 'retried');
      expect(task.retry_count).toBe(2);
      expect(await rowOf(scene(), id)).toMatchObject({ status: 'retried', retry_count: 2 });
      // Its consumer tells that it worked.
      await scene().service.ask('POST', `/api/v1/retries/${id}/succeeded`, {});
      expect(await rowOf(scene(), id)).toMatchObject({ status: 'done' });
    });

    test.concurrent('the shortest INSERT has the defaults of the document', async () => {
      const queue = await scene().queue();
      const id = randomUUID();
      await scene().sql(
        `INSERT INTO retry_queue (message_id, original_payload, original_queue, next_retry_at)
         VALUES ($1, $2, $3, now())`,
        [id, Buffer.from('x'), queue.name],
      );
      expect((await queue.of(id)).properties.headers).toMatchObject({ 'x-retry-count': 1 });
      expect(await scene().service.task(id)).toMatchObject({ max_retries: 3 });
    });

    test.concurrent('an INSERT whose retries are used up goes to review', async () => {
      const queue = await scene().deafQueue();
      const id = randomUUID();
      await scene().sql(insert, [id, Buffer.from('x'), queue, 'why', 3, 3, new Date()]);
      const { body } = await scene().review(id);
      expect(body).toMatchObject({ retry_count: 3, max_retries: 3, error_reason: 'why' });
      expect(await rowOf(scene(), id)).toMatchObject({ status: 'failed', retry_count: 3 });
    });

    test.concurrent('what comes through the queue can be read with the words of the document', async () => {
      const queue = await scene().deafQueue();
      const dueMs = Date.now() + 3_600_000;
      const id = await scene().retry({
        original_queue: queue,
        original_payload: Buffer.from('seen'),
        error_reason: 'timeout',
        retry_count: 1,
        max_retries: 4,
        next_retry_at_ms: dueMs,
      });
      await scene().service.taskThat(id, () => true);
      expect(await rowOf(scene(), id)).toMatchObject({
        original_queue: queue,
        original_payload: Buffer.from('seen'),
        error_reason: 'timeout',
        retry_count: 1,
        max_retries: 4,
        next_retry_at: new Date(dueMs),
        status: 'pending',
      });
      await scene().service.ask('DELETE', `/api/v1/retries/${id}`);
      expect(await rowOf(scene(), id)).toMatchObject({ status: 'cancelled' });
    });
  });

  test(
    'a table made from the document is adopted with its rows, its times read as UTC',
    SLOW,
    async () => {
      await using scene = await Scene.prepare();
      const queue = await scene.queue();
      const [due, later, retried, failed] = [
        randomUUID(),
        randomUUID(),
        randomUUID(),
        randomUUID(),
      ];
      const hourMs = Date.now() + 3_600_000;
      await scene.sql(documentTable);
      // Whatever zone the database is set to.
      await scene.sql(
        `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''America/New_York''', current_database()); END $$`,
      );
      const utc = (ms: number) => new Date(ms).toISOString().replace('Z', '');
      const put = (id: string, status: string, ms: number) =>
        scene.sql(
          `INSERT INTO retry_queue (message_id, original_payload, original_queue, error_reason, retry_count, next_retry_at, status)
         VALUES ($1, $2, $3, 'timeout', 1, $4, $5)`,
          [id, Buffer.from(id), queue.name, utc(ms), status],
        );
      await put(due, 'pending', Date.now() - 1000);
      await put(later, 'pending', hourMs);
      await put(retried, 'retried', Date.now() - 60_000);
      await put(failed, 'failed', Date.now() - 60_000);

      const service = await scene.start();
      expect((await queue.of(due)).properties.headers).toMatchObject({ 'x-retry-count': 2 });
      expect(Date.parse((await service.task(later))!.due_at)).toBe(hourMs);
      expect(await service.task(retried)).toMatchObject({ status: 'retried' });
      expect(await service.item(failed)).toMatchObject({ reason: 'EXHAUSTED' });
      // Nothing stands in the way of one message in two queues any more, and the INSERT still works.
      const other = await scene.queue();
      await scene.sql(insert, [due, Buffer.from('x'), other.name, null, 0, 3, new Date()]);
      await other.of(due);
      expect(queue.letters).toHaveLength(1);
    },
  );

  test('any other table of that name is refused, and left as it is', SLOW, async () => {
    await using scene = await Scene.prepare();
    await scene.sql('CREATE TABLE retry_queue (id bigserial PRIMARY KEY, what text)');
    await scene.sql(`INSERT INTO retry_queue (what) VALUES ('mine')`);
    await using service = await Service.listening(scene.env);
    const { code, said } = await service.ended();
    expect(code).toBe(78);
    expect(said).toContain('retry_queue');
    expect(said).toContain('it has no column message_id');
    expect(await scene.sql('SELECT * FROM retry_queue')).toEqual([{ id: '1', what: 'mine' }]);
  });
});

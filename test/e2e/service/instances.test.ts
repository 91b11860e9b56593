/** Several instances on one PostgreSQL: they share the work, any may be killed, and each may do one part only. */
import { randomUUID } from 'node:crypto';
import { describeService } from '@redrive/services/vitest';
import { expect, test } from 'vitest';
import { eventually } from './redrive-process.ts';
import { Scene, SLOW, useServers } from './scene.ts';

const MESSAGES = 1500;

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  useServers();

  test(
    'of three that share the work one is killed: everything arrives, and twice only what the killed one held',
    SLOW,
    async () => {
      await using scene = await Scene.prepare({ RETRY_POLL_INTERVAL_MS: '200' });
      const [victim, ...survivors] = await Promise.all([
        scene.start(),
        scene.start(),
        scene.start(),
      ]);
      const queues = await Promise.all(Array.from({ length: 3 }, () => scene.queue()));
      const ids = await Promise.all(
        Array.from({ length: MESSAGES }, (_, n) =>
          scene.retry({ original_queue: queues[n % queues.length]!.name }),
        ),
      );
      // In the midst of it: some are delivered, most are not.
      await queues[0]!.count(50);
      await victim.kill();

      const pending = () =>
        scene.sql<{ message_id: string; lease: string | null }>(
          `SELECT message_id, lease FROM retry_queue WHERE status = 'pending'`,
        );
      const heldNow = async () => {
        const counts = await Promise.all(survivors.map((one) => one.metric('redrive_tasks_held')));
        return counts.reduce((sum, count) => sum + count, 0);
      };
      const taken = async () => {
        const [row] = await scene.sql<{ count: number }>('SELECT count(*)::int FROM retry_queue');
        return row!.count;
      };
      await eventually(taken, (count) => count === MESSAGES);
      // What is left then, and nobody alive holds, the killed one held.
      await eventually(
        async () => ({ rows: await pending(), held: await heldNow() }),
        ({ rows, held }) => held === 0 && rows.every(({ lease }) => lease !== null),
      );
      const orphans = new Set((await pending()).map(({ message_id: id }) => id));
      // Its leases have ended, as they would have by themselves in half a minute.
      await scene.sql(`UPDATE retry_queue SET visible_at = now() WHERE status = 'pending'`);
      await eventually(pending, (rows) => rows.length === 0);

      const counts = new Map<unknown, unknown[]>();
      for (const { headers } of queues.flatMap((queue) => queue.letters)) {
        const id = headers['x-message-id'];
        counts.set(id, [...(counts.get(id) ?? []), headers['x-retry-count']]);
      }
      expect(counts.size).toBe(MESSAGES);
      expect(ids.filter((id) => !counts.has(id))).toEqual([]);
      // It may have sent what it had leased.
      const sentTwice = Array.from(counts.keys()).filter((id) => String(counts.get(id)) === '1,1');
      expect(sentTwice.filter((id) => !orphans.has(String(id)))).toEqual([]);
      // It may have stored what it had not acknowledged: to the others that is one more failure, and has the next count.
      const takenTwice = Array.from(counts.values()).filter((some) => some.includes(2));
      const sum = async (cause: string) => {
        const all = survivors.map((one) => one.metric('redrive_duplicates_total', { cause }));
        return (await Promise.all(all)).reduce((total, count) => total + count, 0);
      };
      expect(takenTwice.length).toBeLessThanOrEqual(await sum('redelivered'));
      expect(sentTwice.length).toBeLessThanOrEqual(await sum('unsettled'));
      // Nothing else came twice, and nothing three times for one reason. What the killed one had both leased and not
      // acknowledged came once, with the next count.
      const known = new Set(['1', '2', '1,1', '1,2', '1,1,2', '1,2,2']);
      expect(Array.from(counts.values(), String).filter((some) => !known.has(some))).toEqual([]);
      // They worked side by side.
      for (const one of survivors) {
        expect(await one.metric('retries_executed_total', { status: 'success' })).toBeGreaterThan(
          0,
        );
      }
    },
  );

  test(
    'one that answers, one that takes in and one that delivers are a whole service',
    SLOW,
    async () => {
      await using scene = await Scene.prepare();
      const [api, intake] = await Promise.all([
        scene.start({}, '--only', 'api'),
        scene.start({}, '--only', 'intake'),
      ]);
      const queue = await scene.queue();
      const [byQueue, byHttp] = [await scene.retry({ original_queue: queue.name }), randomUUID()];
      const used = await scene.retry({ original_queue: queue.name, retry_count: 3 });
      const posted = await api.ask('POST', '/api/v1/retries', {
        message_id: byHttp,
        destination: `queue:${queue.name}`,
        payload: { by: 'http' },
      });
      expect(posted.status).toBe(202);
      // The item and its review message are there together; somebody who delivers has to take it from there.
      await api.item(used);
      expect(await scene.sql('SELECT FROM redrive_outbox')).toHaveLength(1);
      expect(queue.letters).toHaveLength(0);
      const dispatch = await scene.start({}, '--only', 'dispatch');
      await Promise.all([queue.of(byQueue), queue.of(byHttp), scene.review(used)]);
      await api.taskThat(byQueue, ({ status }) => status === 'retried');
      for (const one of [api, intake, dispatch]) expect((await one.readiness()).ready).toBe(true);
      // Who does not answer requests still says how it is.
      for (const one of [intake, dispatch]) {
        expect(await one.ask('GET', `/api/v1/retries/${byQueue}`)).toMatchObject({ status: 404 });
      }
      // Each did its own part, and nothing else.
      const parts = async (name: string) =>
        Promise.all([api, intake, dispatch].map((one) => one.metric(name)));
      expect(await parts('retries_executed_total')).toEqual([0, 0, 2]);
      expect(await parts('redrive_intake_messages_total')).toEqual([0, 2, 0]);
      expect(await parts('retries_scheduled_total')).toEqual([1, 1, 0]);
      const { consumerCount } = await scene.channel.checkQueue(scene.retryQueue);
      expect(consumerCount).toBe(1);
    },
  );
});

/**
 * The limit of `report-http`: fastify, JSON, and the bare writes on Redrive's own tables. No schema, no checks, no reads,
 * no decisions: whatever comes is stored and answered with what Redrive would say.
 */
import { once } from 'node:events';
import { postgres } from '@redrive/engine/postgres';
import { sqlite } from '@redrive/engine/sqlite';
import { postgresNotifications } from '@redrive/notifications/postgres';
import { sqliteNotifications } from '@redrive/notifications/sqlite';
import fastify from 'fastify';
import { barePostgres } from './bare-postgres.ts';
import { bareSqlite } from './bare-sqlite.ts';
import { rowMaker, startReports } from './reported.ts';

interface Item {
  notification_id: string;
  device_id: string;
  attempt_number: number;
}

const file = 'bare.db';
const { DATABASE_URL: url } = process.env;
const store = url === undefined ? sqlite(file) : postgres({ url });
const repository = url === undefined ? sqliteNotifications(file) : postgresNotifications({ url });
const service = await startReports(store, repository);
const rowsOf = await rowMaker(service);
await service.stop();
await store.close();
const writes = url === undefined ? bareSqlite(file) : barePostgres(url);

const app = fastify();
app.post<{ Body: { items: Item[] } }>('/api/v1/notifications/failures', async ({ body }) => {
  const rows = rowsOf(
    body.items.map((item) => ({
      notificationId: item.notification_id,
      deviceId: item.device_id,
      attemptNumber: item.attempt_number,
    })),
  );
  if (!(await writes.write(rows))) throw new Error('a row was there already, or a record was not');
  const accepted = rows.map(({ id, deviceId, attempt, dueAtMs, updatedAtMs }, index) => ({
    index,
    notification_id: id,
    device_id: deviceId,
    attempt_number: attempt,
    decision: 'scheduled',
    lane: 'urgent',
    due_at: new Date(dueAtMs).toISOString(),
    delay_ms: dueAtMs - updatedAtMs,
    retry_count: attempt,
    status: 'retrying',
    explanation: 'It is scheduled again.',
  }));
  return { accepted, rejected: [] };
});
console.log(
  JSON.stringify({ msg: 'listening', url: await app.listen({ host: '127.0.0.1', port: 0 }) }),
);
console.log('{"msg":"ready"}');
await once(process, 'SIGTERM');
await app.close();
await writes.close();

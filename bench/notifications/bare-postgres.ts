import pg from 'pg';
import type { BareWrites } from './reported.ts';

/** The bare statements on the tables of Redrive itself. Prepared, which those of Redrive are not. */
export function barePostgres(url: string): BareWrites {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const run = async (name: string, text: string, values: unknown[]): Promise<number> =>
    (await pool.query({ name, text, values })).rowCount ?? 0;
  return {
    async write(rows) {
      const due = rows.map(({ dueAtMs }) => dueAtMs);
      const counts = [
        await run('records', writeRecords, [
          rows.map(({ id }) => id),
          rows.map(({ version }) => version),
          due,
          rows.map(({ updatedAtMs }) => updatedAtMs),
          rows.map(({ recordText }) => recordText),
          rows.map(({ deviceId }) => deviceId),
          rows.map(({ attempt }) => attempt),
          rows.map(({ attemptText }) => attemptText),
        ]),
        await run('entries', insertEntries, [
          rows.map(({ entryId }) => entryId.toString('hex')),
          due,
          rows.map(({ context }) => context),
          rows.map(({ payload }) => payload),
        ]),
      ];
      return counts.every((count) => count === rows.length);
    },
    close: () => pool.end(),
  };
}

const writeRecords = `WITH added AS (INSERT INTO notification_attempts (notification_id, device_id, attempt_number, document)
    SELECT id, device, attempt, document FROM unnest($1::text[], $6::text[], $7::int[], $8::json[]) AS a(id, device, attempt, document)
    ON CONFLICT DO NOTHING)
  UPDATE notifications AS stored SET version = stored.version + 1, status = 'retrying',
    wake_at = to_timestamp(u.due / 1000.0), updated_at = to_timestamp(u.updated / 1000.0), document = u.document
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::json[]) AS u(id, version, due, updated, document)
  WHERE stored.id = u.id AND stored.version = u.version`;

const insertEntries = `INSERT INTO retry_queue
    (message_id, original_payload, original_queue, kind, lane, context, created_at, next_retry_at, visible_at)
  SELECT id, payload, 'urgent', 'delay-queue', 'delay-queue:urgent', context, now(),
    to_timestamp(due / 1000.0), to_timestamp(due / 1000.0)
  FROM unnest($1::uuid[], $2::bigint[], $3::json[], $4::bytea[]) AS u(id, due, context, payload)
  ON CONFLICT (message_id, original_queue, kind) DO NOTHING`;

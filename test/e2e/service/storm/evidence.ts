/** What the service and its database say at the end. */
import type pg from 'pg';
import type { Instance } from './instance.ts';
import type { Stage } from './stage.ts';

/** As the API shows it. */
export interface ReviewItem {
  readonly id: number;
  readonly message_id: string;
  readonly reason: string;
  readonly state: string;
  readonly queue?: string;
  readonly occurrences: number;
}

export interface Row {
  readonly messageId: string;
  readonly queue: string;
  readonly status: string;
  readonly dueAtMs: number;
}

interface Page {
  items: ReviewItem[];
  next_cursor: string | null;
}

export async function allItems(service: Instance): Promise<ReviewItem[]> {
  const found: ReviewItem[] = [];
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams({
      limit: '100',
      state: 'all',
      ...(cursor ? { cursor } : {}),
    });
    const { body }: { body: Page } = await service.get(`/api/v1/review?${query.toString()}`);
    found.push(...body.items);
    cursor = body.next_cursor;
  } while (cursor !== null);
  return found;
}

export async function allRows({ pool }: Stage): Promise<Row[]> {
  const { rows } = await pool.query<Row>(
    `SELECT message_id AS "messageId", original_queue AS queue, status,
       (extract(epoch FROM next_retry_at) * 1000)::float8 AS "dueAtMs" FROM retry_queue`,
  );
  return rows;
}

/** Nothing waits, neither in the table nor in the outbox. */
export async function isWorkedOff(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ left: number }>(
    `SELECT (SELECT count(*) FROM retry_queue WHERE status = 'pending')::int
       + (SELECT count(*) FROM redrive_outbox)::int AS left`,
  );
  return rows[0]!.left === 0;
}

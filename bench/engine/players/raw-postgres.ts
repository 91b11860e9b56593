import { postgres } from '@redrive/engine/postgres';
import pg from 'pg';
import { BATCH, batchesOf, type Player, timed, type Work, workOf } from '../player.ts';
import { Tally } from '../tally.ts';
import { arrayOf } from './binary-array.ts';
import { uuidBytes } from './uuid.ts';

const LANE = 'handler:work';
const LEASE = 1;

/** By trial, from 1 to 4. */
const LOOPS = 3;

/** The limit: the bare statements on the table of Redrive itself, with all of its indexes. Prepared, which Redrive is not. */
export class RawPostgresPlayer implements Player {
  #pool: pg.Pool | undefined;

  async open(url: string): Promise<void> {
    const store = postgres({ url });
    await store.open();
    await store.close();
    this.#pool = new pg.Pool({ connectionString: url, max: 4 });
  }

  async schedule(tasks: number): Promise<number> {
    const batches = batchesOf(tasks, (n) => workOf(n));
    return timed(batches, async (batch) => {
      const payloads = batch.map((work) => Buffer.from(JSON.stringify(work)));
      const values = [arrayOf('uuid', batch.map(uuidBytes)), arrayOf('bytea', payloads)];
      await this.#query('insert', insertText, values);
    });
  }

  async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    await Promise.all(Array.from({ length: LOOPS }, () => this.#work(tally)));
    await tally.all;
    return tally.elapsedMs;
  }

  async close(): Promise<void> {
    await this.#pool?.end();
    this.#pool = undefined;
  }

  async #work(tally: Tally): Promise<void> {
    for (;;) {
      const rows = (await this.#query('claim', claimText)) as [string, Buffer][];
      if (rows.length === 0) return;
      for (const [, payload] of rows) tally.did(JSON.parse(payload.toString()) as Work);
      await this.#query('settle', settleText, [rows.map(([id]) => id)]);
    }
  }

  async #query(name: string, text: string, values: unknown[] = []): Promise<unknown[][]> {
    const query = { name, text, values, rowMode: 'array' as const };
    const answer = await this.#pool?.query<unknown[]>(query);
    return answer?.rows ?? [];
  }
}

const insertText = `INSERT INTO retry_queue
    (message_id, original_payload, original_queue, kind, lane, attempt, next_retry_at, visible_at)
  SELECT id, payload, 'work', 'handler', '${LANE}', 0, now(), now()
  FROM unnest($1::uuid[], $2::bytea[]) AS u(id, payload)
  ON CONFLICT (message_id, original_queue, kind) DO NOTHING`;

const claimText = `UPDATE retry_queue AS q
  SET visible_at = now() + INTERVAL '30 seconds', lease = ${LEASE}, claims = claims + 1
  WHERE id = ANY (ARRAY(
    SELECT id FROM retry_queue
    WHERE status = 'pending' AND NOT blocked AND claims = 0 AND lane = '${LANE}' AND visible_at <= now()
    ORDER BY visible_at, id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  )) RETURNING id, original_payload`;

const settleText = `UPDATE retry_queue SET status = 'done', finished_at = now(), lease = NULL, claims = 0
  WHERE id = ANY ($1::bigint[]) AND lease = ${LEASE} AND status = 'pending'`;

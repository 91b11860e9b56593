/**
 * The database half of a bare pipeline, for every broker: inserted in batches, claimed, settled; on Redrive's own table with all
 * of its indexes. No policy, no lanes, no inbox, no outage that it would survive.
 */
import { postgres } from '@redrive/engine/postgres';
import pg from 'pg';
import { arrayOf } from '../../engine/players/binary-array.ts';

const BATCH = 500;
const INSERTS = 2;
export const LOOPS = 3;
const LEASE = 1;

export interface RetryFields {
  message_id: string;
  original_payload: string;
  original_queue: string;
  error_reason: string;
  retry_count: number;
  max_retries: number;
}

export interface Claimed {
  id: string;
  message_id: string;
  original_payload: Buffer;
  original_queue: string;
  error_reason: string;
  attempt: number;
}

const insertText = `INSERT INTO retry_queue (message_id, original_payload, original_queue, kind, lane, error_reason,
    attempt, retry_count, max_retries, next_retry_at, visible_at)
  SELECT id, payload, queue, $7, $7 || ':' || queue, reason, attempt, attempt - 1, most, now(), now()
  FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::text[], $5::int[], $6::int[])
    AS u(id, payload, queue, reason, attempt, most)
  ON CONFLICT (message_id, original_queue, kind) DO NOTHING`;

const claimText = `UPDATE retry_queue
  SET visible_at = now() + INTERVAL '30 seconds', lease = ${LEASE}, claims = claims + 1
  WHERE id = ANY (ARRAY(
    SELECT id FROM retry_queue
    WHERE status = 'pending' AND NOT blocked AND claims = 0 AND visible_at <= now()
    ORDER BY lane, visible_at, id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  )) RETURNING id, message_id, original_payload, original_queue, error_reason, attempt`;

const settleText = `UPDATE retry_queue
  SET status = 'retried', retry_count = attempt, finished_at = now(), lease = NULL, claims = 0
  WHERE id = ANY ($1::bigint[]) AND lease = ${LEASE} AND status = 'pending'`;

export interface BareBroker<M> {
  kind: 'queue' | 'nats';
  read(message: M): RetryFields;
  /** After the commit. Called in the order in which messages came. */
  acknowledge(messages: readonly M[]): void;
}

export class BareStore<M> {
  readonly #broker: BareBroker<M>;
  readonly #pool: pg.Pool;
  readonly #waiting: M[] = [];
  readonly #idle: (() => void)[] = [];
  #inserts = 0;
  #acknowledged: Promise<unknown> = Promise.resolve();
  /** Stored since a claim last came back empty. */
  #isMore = false;

  private constructor(url: string, broker: BareBroker<M>) {
    this.#broker = broker;
    this.#pool = new pg.Pool({ connectionString: url, max: INSERTS + LOOPS });
  }

  static async open<M>(url: string, broker: BareBroker<M>): Promise<BareStore<M>> {
    const store = postgres({ url });
    await store.open();
    await store.close();
    return new BareStore(url, broker);
  }

  take(message: M): void {
    this.#waiting.push(message);
    if (this.#waiting.length === 1) setImmediate(() => this.#takeIn());
  }

  /** Hands over what is due, for ever. It is settled when it is published. */
  async deliver(publish: (rows: readonly Claimed[]) => Promise<unknown>): Promise<never> {
    for (;;) {
      this.#isMore = false;
      const { rows } = await this.#pool.query<Claimed>({ name: 'claim', text: claimText });
      if (rows.length === 0) {
        if (!this.#isMore) await this.#woken();
        continue;
      }
      await publish(rows);
      const values = [rows.map(({ id }) => id)];
      await this.#pool.query({ name: 'settle', text: settleText, values });
    }
  }

  #takeIn(): void {
    while (this.#inserts < INSERTS && this.#waiting.length > 0) {
      this.#inserts += 1;
      void this.#insert(this.#waiting.splice(0, BATCH)).finally(() => {
        this.#inserts -= 1;
        this.#takeIn();
      });
    }
  }

  async #insert(messages: readonly M[]): Promise<void> {
    const fields = messages.map((message) => this.#broker.read(message));
    const before = this.#acknowledged;
    const stored = this.#pool.query({
      name: 'insert',
      text: insertText,
      values: [
        arrayOf(
          'uuid',
          fields.map((one) => Buffer.from(one.message_id.replaceAll('-', ''), 'hex')),
        ),
        arrayOf(
          'bytea',
          fields.map((one) => Buffer.from(one.original_payload, 'base64')),
        ),
        fields.map((one) => one.original_queue),
        fields.map((one) => one.error_reason),
        fields.map((one) => one.retry_count + 1),
        fields.map((one) => one.max_retries),
        this.#broker.kind,
      ],
    });
    this.#acknowledged = Promise.all([before, stored]).then(() =>
      this.#broker.acknowledge(messages),
    );
    await stored;
    this.#isMore = true;
    for (const wake of this.#idle.splice(0)) wake();
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }
}

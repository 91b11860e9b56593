import type { NatsConnection } from '@nats-io/transport-node';
import { freshId } from 'redrive/internal';
import { EngineError } from '../../../errors.ts';
import { WRONG_SEQUENCE } from '../idempotency/faults.ts';
import { OPERATION } from '../idempotency/value.ts';
import { faultOf, hasCode, isUnanswered, isUndone } from './faults.ts';
import { streamOf, subjectOf } from './kv-names.ts';
import { lastOf } from './kv-read.ts';
import { type OperationOptions, underCategory } from './operation.ts';
import { jetstream, headers } from '../library.ts';

export interface KvWriteOptions extends OperationOptions {
  /** Writes only where the key is at this revision. 0: only where the key has no value. */
  revision?: number;
}

/**
 * Writes a value under `KV_PUT`, and answers its revision. An attempt whose answer was lost is recognised by the next one,
 * so that no write counts twice.
 *
 * @example await kvPut(connection, 'switches', 'all-execution', 'off', { revision: found.revision });
 */
export async function kvPut(
  connection: NatsConnection,
  bucket: string,
  key: string,
  value: Uint8Array | string,
  options: KvWriteOptions = {},
): Promise<number> {
  const { revision, ...rest } = options;
  const doing = `put ${key} of bucket ${bucket}`;
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  const write = new Write(connection, { bucket, key, bytes, revision, doing });
  return underCategory('KV_PUT', doing, rest, ({ timeoutMs }) => write.attempt(timeoutMs));
}

/** Deletes a key under `KV_DELETE`. A mark stays in the bucket, so that revisions go on. */
export async function kvDelete(
  connection: NatsConnection,
  bucket: string,
  key: string,
  options: KvWriteOptions = {},
): Promise<void> {
  const { revision, ...rest } = options;
  const doing = `delete ${key} of bucket ${bucket}`;
  const write = new Write(connection, { bucket, key, bytes: undefined, revision, doing });
  await underCategory('KV_DELETE', doing, rest, ({ timeoutMs }) => write.attempt(timeoutMs));
}

interface Wish {
  bucket: string;
  key: string;
  /** Undefined deletes. */
  bytes: Uint8Array | undefined;
  revision: number | undefined;
  doing: string;
}

/** Tells the own write from that of others, also where the server does not remember ids for so long. */
const WRITER = 'Redrive-Write';

/** One write over all of its attempts. */
class Write {
  readonly #connection: NatsConnection;
  readonly #wish: Wish;
  readonly #subject: string;
  readonly #id = freshId();
  #expected: number | undefined;
  /** An attempt was sent, and nobody said what became of it. */
  #isUnsure = false;

  constructor(connection: NatsConnection, wish: Wish) {
    this.#connection = connection;
    this.#wish = wish;
    this.#subject = subjectOf(wish.bucket, wish.key);
    this.#expected = wish.revision;
  }

  async attempt(timeoutMs: number): Promise<number> {
    const { doing } = this.#wish;
    try {
      return (await this.#publish(timeoutMs)) ?? (await this.#afterConflict(timeoutMs));
    } catch (error) {
      throw faultOf(error, this.#connection, doing);
    }
  }

  /** Undefined: the key is at another revision. */
  async #publish(timeoutMs: number): Promise<number | undefined> {
    const { bucket, bytes } = this.#wish;
    const written = headers();
    written.set(WRITER, this.#id);
    if (!bytes) written.set(OPERATION, 'DEL');
    const client = jetstream(this.#connection, { timeout: timeoutMs });
    const expected = this.#expected;
    const wasUnsure = this.#isUnsure;
    this.#isUnsure = true;
    try {
      const { seq } = await client.publish(this.#subject, bytes ?? new Uint8Array(), {
        headers: written,
        // The stream answers a second copy with the sequence of the first one.
        msgID: this.#id,
        expect: {
          streamName: streamOf(bucket),
          ...(expected === undefined ? {} : { lastSubjectSequence: expected }),
        },
      });
      return seq;
    } catch (error) {
      if (isUndone(error)) this.#isUnsure = wasUnsure;
      if (hasCode(error, ...WRONG_SEQUENCE)) return undefined;
      // Nobody answers also where there is no such bucket.
      if (isUnanswered(error)) await this.#last(timeoutMs);
      throw error;
    }
  }

  async #afterConflict(timeoutMs: number): Promise<number> {
    const last = await this.#last(timeoutMs);
    if (last?.header?.get(WRITER) === this.#id) return last.seq;
    const { doing, revision } = this.#wish;
    const now = last?.seq ?? 0;
    if (this.#isUnsure) {
      throw new EngineError(
        'NATS_OUTCOME_UNKNOWN',
        `Cannot ${doing}: the answer to an earlier attempt was lost, and the key is at revision ${now} of somebody else. Whether the write happened before that is not known. Read the key, and decide anew.`,
      );
    }
    // A key without a value may have the mark of a deletion, whose revision is not 0.
    if (revision === 0 && last?.header?.get(OPERATION) && this.#expected !== last.seq) {
      this.#expected = last.seq;
      return (await this.#publish(timeoutMs)) ?? this.#afterConflict(timeoutMs);
    }
    throw new EngineError(
      'NATS_WRONG_REVISION',
      `Cannot ${doing}: the key is at revision ${now}, not ${revision}. Read the key, and decide anew.`,
    );
  }

  #last(timeoutMs: number) {
    return lastOf(this.#connection, this.#wish.bucket, this.#subject, timeoutMs);
  }
}

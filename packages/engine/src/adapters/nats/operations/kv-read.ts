import type { StoredMsg } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { EngineError } from '../../../errors.ts';
import { OPERATION } from '../idempotency/value.ts';
import { STREAM_NOT_FOUND } from '../idempotency/faults.ts';
import { faultOf, hasCode } from './faults.ts';
import { streamOf, subjectOf } from './kv-names.ts';
import { type OperationOptions, underCategory } from './operation.ts';
import { jetstreamManager } from '../library.ts';

export interface KvValue {
  value: Uint8Array;
  /** Grows with each write to the bucket. */
  revision: number;
  writtenAtMs: number;
}

/**
 * The value of a key under `KV_GET`; undefined where there is none. It is read from the leader of the bucket, never from
 * a replica that may lag behind.
 *
 * @example const found = await kvGet(connection, 'switches', 'all-execution');
 */
export async function kvGet(
  connection: NatsConnection,
  bucket: string,
  key: string,
  options: OperationOptions = {},
): Promise<KvValue | undefined> {
  const subject = subjectOf(bucket, key);
  const doing = `get ${key} of bucket ${bucket}`;
  return underCategory('KV_GET', doing, options, async ({ timeoutMs }) => {
    try {
      const found = await lastOf(connection, bucket, subject, timeoutMs);
      if (!found || found.header?.get(OPERATION)) return undefined;
      return { value: found.data, revision: found.seq, writtenAtMs: found.time.getTime() };
    } catch (error) {
      throw faultOf(error, connection, doing);
    }
  });
}

/** The last message of a key, a mark of its deletion too. */
export async function lastOf(
  connection: NatsConnection,
  bucket: string,
  subject: string,
  timeoutMs: number,
): Promise<StoredMsg | undefined> {
  const manager = await jetstreamManager(connection, { timeout: timeoutMs, checkAPI: false });
  try {
    const query = { last_by_subj: subject };
    return (await manager.streams.getMessage(streamOf(bucket), query)) ?? undefined;
  } catch (error) {
    if (hasCode(error, STREAM_NOT_FOUND)) throw noBucket(bucket);
    throw error;
  }
}

function noBucket(bucket: string): EngineError {
  return new EngineError(
    'NATS_NO_STREAM',
    `Bucket ${bucket} does not exist. Create it with kvCreate, or: nats kv add ${bucket}`,
  );
}

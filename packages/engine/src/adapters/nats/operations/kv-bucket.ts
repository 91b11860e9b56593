import type { JetStreamManager, StreamConfig, StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { EngineError } from '../../../errors.ts';
import { STREAM_NOT_FOUND } from '../idempotency/faults.ts';
import { faultOf, hasCode } from './faults.ts';
import { checkBucketName, streamOf } from './kv-names.ts';
import { type OperationOptions, underCategory } from './operation.ts';
import {
  DiscardPolicy,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  nanos,
} from '../library.ts';

export interface KvBucketOptions extends OperationOptions {
  /** Servers of a cluster that hold a copy (1). */
  replicas?: number;
  /** Values of each key that are kept, from 1 to 64 (1). */
  history?: number;
  /** How long a value is kept (for ever). */
  ttlMs?: number;
}

type Wish = Required<Pick<KvBucketOptions, 'replicas' | 'history' | 'ttlMs'>>;

/**
 * Creates a bucket of JetStream KV on disk under `KV_CREATE`. One that exists is used, and refused where its settings are
 * others.
 *
 * @example await kvCreate(connection, 'switches', { replicas: 3 });
 */
export async function kvCreate(
  connection: NatsConnection,
  bucket: string,
  options: KvBucketOptions = {},
): Promise<void> {
  const { replicas = 1, history = 1, ttlMs = 0, ...rest } = options;
  checkBucketName(bucket);
  const doing = `create bucket ${bucket}`;
  await underCategory('KV_CREATE', doing, rest, async ({ timeoutMs }) => {
    try {
      const manager = await jetstreamManager(connection, { timeout: timeoutMs, checkAPI: false });
      const wish = { replicas, history, ttlMs };
      const { config } = await manager.streams.info(streamOf(bucket)).catch((error: unknown) => {
        if (!hasCode(error, STREAM_NOT_FOUND)) throw error;
        return create(manager, bucket, wish);
      });
      const faults = [...faultsOf(bucket, config, wish)];
      if (faults.length > 0) {
        const message = `Bucket ${bucket} exists with other settings. ${faults.join(' ')}`;
        throw new EngineError('NATS_REFUSED', message);
      }
    } catch (error) {
      throw faultOf(error, connection, doing);
    }
  });
}

function create(manager: JetStreamManager, bucket: string, wish: Wish): Promise<StreamInfo> {
  return manager.streams.add({
    name: streamOf(bucket),
    subjects: [`$KV.${bucket}.>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: wish.history,
    num_replicas: wish.replicas,
    max_age: nanos(wish.ttlMs),
    // As all clients of KV expect it.
    allow_rollup_hdrs: true,
    deny_delete: true,
  });
}

/** Each with the command that mends it. */
function* faultsOf(bucket: string, config: StreamConfig, wish: Wish): Iterable<string> {
  const edit = (flag: string) => `Run: nats stream edit ${streamOf(bucket)} --force ${flag}`;
  const { max_msgs_per_subject: history, max_age: age, num_replicas: replicas, storage } = config;
  if (history !== wish.history) {
    yield `Its history is ${history}, not ${wish.history}. ${edit(`--max-msgs-per-subject=${wish.history}`)}`;
  }
  if (age !== nanos(wish.ttlMs)) {
    yield `Its TTL is ${age / 1e6} ms, not ${wish.ttlMs} ms. ${edit(`--max-age=${wish.ttlMs}ms`)}`;
  }
  if (replicas < wish.replicas) {
    yield `It has ${replicas} replicas, not ${wish.replicas}. ${edit(`--replicas=${wish.replicas}`)}`;
  }
  if (storage !== StorageType.File) {
    yield `It is kept in memory, and a restart of the server loses it. Name another bucket, or, when no key in it matters: nats kv del ${bucket} --force`;
  }
}

/**
 * A bucket of JetStream KV: a stream with one message per key, whose sequence is the revision. It is read from the leader
 * of the stream alone, since a replica may lag behind what this process wrote before.
 */
import type { JetStreamClient, JetStreamManager, StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { checkBucket, hasCode, STREAM_NOT_FOUND, WRONG_SEQUENCE } from './faults.ts';
import { bytesOf, EXPIRES, type KeyValue, nameOf, OPERATION, parseValue } from './value.ts';
import {
  DiscardPolicy,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  headers,
} from '../library.ts';

export interface BucketOptions {
  bucket: string;
  replicas: number;
  timeoutMs: number;
}

interface Stored {
  /** 0: there was never anything under the key, or it was pruned. */
  revision: number;
  /** Absent after a deletion. */
  value?: KeyValue;
  expiresAtMs: number;
}

interface Mark {
  subject: string;
  revision: number;
}

const DELETED = 'DEL';
/** Beside the value there are headers and the subject. */
const FRAME_BYTES = 1024;
const BATCH = 500;
/** By one call. */
const MAX_PRUNED = 10_000;
const BATCH_WAIT_MS = 1000;

export class Bucket {
  readonly #options: BucketOptions;
  readonly #manager: JetStreamManager;
  readonly #client: JetStreamClient;
  readonly #stream: string;
  readonly #maxBytes: number;

  private constructor(
    options: BucketOptions,
    manager: JetStreamManager,
    client: JetStreamClient,
    maxBytes: number,
  ) {
    this.#options = options;
    this.#manager = manager;
    this.#client = client;
    this.#stream = `KV_${options.bucket}`;
    this.#maxBytes = maxBytes;
  }

  /** Creates the bucket where it is missing. */
  static async open(connection: NatsConnection, options: BucketOptions): Promise<Bucket> {
    const { bucket, replicas, timeoutMs } = options;
    const settings = { timeout: timeoutMs, checkAPI: false };
    const manager = await jetstreamManager(connection, settings);
    const info = await manager.streams.info(`KV_${bucket}`).catch((error: unknown) => {
      if (!hasCode(error, [STREAM_NOT_FOUND])) throw error;
      return create(manager, options);
    });
    const maxPayload = connection.info?.max_payload ?? Infinity;
    checkBucket(bucket, info, replicas, maxPayload);
    const { max_msg_size: size } = info.config;
    const maxBytes = Math.min(maxPayload, size > 0 ? size : Infinity) - FRAME_BYTES;
    return new Bucket(options, manager, jetstream(connection, settings), maxBytes);
  }

  async read(key: string): Promise<Stored> {
    const query = { last_by_subj: this.#subject(nameOf(key)) };
    const message = await this.#manager.streams.getMessage(this.#stream, query);
    if (!message) return { revision: 0, expiresAtMs: Infinity };
    const { seq: revision, header } = message;
    if (header?.get(OPERATION)) return { revision, expiresAtMs: Infinity };
    const value = parseValue(this.#options.bucket, message);
    return { revision, value, expiresAtMs: expiryOf(header?.get(EXPIRES)) };
  }

  /** Answers the new revision; undefined: the key is not at this revision any more. */
  put(
    key: string,
    revision: number,
    value: KeyValue,
    expiresAtMs: number,
  ): Promise<number | undefined> {
    const more: [string, string][] =
      expiresAtMs === Infinity ? [] : [[EXPIRES, String(Math.ceil(expiresAtMs))]];
    return this.#publish(key, revision, bytesOf(value, this.#maxBytes), more);
  }

  /** The mark that stays keeps revisions growing for whoever still has an old one. */
  async delete(key: string, revision: number): Promise<boolean> {
    const bytes = new Uint8Array();
    return (await this.#publish(key, revision, bytes, [[OPERATION, DELETED]])) !== undefined;
  }

  /** Removes what has expired, and the marks of deletions. */
  async prune(limit: number, nowMs: number): Promise<number> {
    let pruned = 0;
    for (const { subject, revision } of await this.#prunable(Math.min(limit, MAX_PRUNED), nowMs)) {
      // Nothing but this very revision: a newer one stays.
      const query = { filter: subject, seq: revision + 1 };
      pruned += (await this.#manager.streams.purge(this.#stream, query)).purged;
    }
    return pruned;
  }

  /**
   * Headers alone are read: values may be large, and there may be many. Nothing is removed meanwhile, since servers up to
   * 2.9 would lose count of what is left to read.
   */
  async #prunable(limit: number, nowMs: number): Promise<Mark[]> {
    const { state } = await this.#manager.streams.info(this.#stream);
    const found: Mark[] = [];
    if (state.messages === 0 || limit <= 0) return found;
    const consumer = await this.#client.consumers.get(this.#stream, { headers_only: true });
    try {
      for (let last = 0, before = -1; last < state.last_seq && last !== before;) {
        before = last;
        const batch = await consumer.fetch({ max_messages: BATCH, expires: BATCH_WAIT_MS });
        for await (const { subject, seq, headers: header } of batch) {
          last = seq;
          const isOver = expiryOf(header?.get(EXPIRES)) <= nowMs;
          if (isOver || header?.get(OPERATION)) found.push({ subject, revision: seq });
          if (found.length >= limit) return found;
          if (seq >= state.last_seq) break;
        }
      }
      return found;
    } finally {
      // Where this fails the server removes it after a while.
      await consumer.delete().catch(() => false);
    }
  }

  async #publish(
    key: string,
    revision: number,
    bytes: Uint8Array,
    more: readonly [string, string][],
  ): Promise<number | undefined> {
    const header = headers();
    for (const [name, text] of more) header.set(name, text);
    try {
      const { seq } = await this.#client.publish(this.#subject(nameOf(key)), bytes, {
        headers: header,
        expect: { streamName: this.#stream, lastSubjectSequence: revision },
        timeout: this.#options.timeoutMs,
      });
      return seq;
    } catch (error) {
      if (hasCode(error, WRONG_SEQUENCE)) return undefined;
      throw error;
    }
  }

  #subject(name: string): string {
    return `$KV.${this.#options.bucket}.${name}`;
  }
}

function expiryOf(text: string | undefined): number {
  return text ? Number(text) : Infinity;
}

function create(
  manager: JetStreamManager,
  { bucket, replicas }: BucketOptions,
): Promise<StreamInfo> {
  return manager.streams.add({
    name: `KV_${bucket}`,
    subjects: [`$KV.${bucket}.>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: 1,
    num_replicas: replicas,
    // As all clients of KV expect it.
    allow_rollup_hdrs: true,
    deny_delete: true,
  });
}

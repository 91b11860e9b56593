import type { NatsConnection } from '@nats-io/transport-node';
import { EngineError } from '../../../errors.ts';
import { connectOnce, discoveredBy } from '../connect.ts';
import type { NatsSettings } from '../options.ts';
import { whyNoConnection } from '../session.ts';
import { Bucket, type BucketOptions } from './bucket.ts';
import { faultOf, hasCode, STREAM_NOT_FOUND } from './faults.ts';
import { loadNats } from '../library.ts';

/** The bucket, by a connection that is made at the first use, and again when it was lost. */
export class Link {
  readonly #settings: NatsSettings;
  readonly #options: BucketOptions;
  readonly #lent: NatsConnection | undefined;
  #connection: NatsConnection | undefined;
  #discovered: readonly string[] = [];
  #opening: Promise<Bucket> | undefined;

  constructor(settings: NatsSettings, options: BucketOptions, lent: NatsConnection | undefined) {
    this.#settings = settings;
    this.#options = options;
    this.#lent = lent;
  }

  async run<T>(work: (bucket: Bucket) => Promise<T>): Promise<T> {
    await loadNats();
    if (this.#connection?.isClosed()) this.#opening = undefined;
    const opening = (this.#opening ??= this.#open());
    try {
      return await work(await opening);
    } catch (error) {
      // The bucket is looked for anew: somebody may have deleted it, or mended it.
      const isGone = hasCode(error, [STREAM_NOT_FOUND]) || (await isFailed(opening));
      if (isGone && this.#opening === opening) this.#opening = undefined;
      throw faultOf(error, this.#connection);
    }
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    await opening?.catch(() => undefined);
    if (!this.#lent) await this.#connection?.close();
  }

  async #open(): Promise<Bucket> {
    if (!this.#connection || this.#connection.isClosed()) {
      this.#connection = this.#lent ?? (await this.#connect());
    }
    return Bucket.open(this.#connection, this.#options);
  }

  async #connect(): Promise<NatsConnection> {
    try {
      const connection = await connectOnce(this.#settings, this.#discovered);
      this.#discovered = discoveredBy(connection);
      return connection;
    } catch (error) {
      const why = whyNoConnection(error, this.#settings);
      throw new EngineError('STORE_UNAVAILABLE', `${why} Trying again is safe.`, { cause: error });
    }
  }
}

function isFailed(opening: Promise<unknown>): Promise<boolean> {
  return opening.then(
    () => false,
    () => true,
  );
}

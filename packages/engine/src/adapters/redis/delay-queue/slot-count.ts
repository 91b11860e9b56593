import { EngineError } from '../../../errors.ts';
import type { RedisDelaySettings } from './options.ts';
import type { RedisServer } from './server.ts';

const CLUSTER_SLOTS = 16;
/** The key is looked at so often at most. */
const CHECK_MS = 1000;

/**
 * How many slots the queue has: a key in Redis says so, by which all instances agree. One that counts otherwise would look for
 * entries in the wrong place.
 *
 * Redis may lose the key, by FLUSHALL or by a restart without persistence. So running instances write it again. Where another
 * instance was faster with another number, they take no new entries, and go on handing over those that they have.
 */
export class SlotCount {
  readonly #server: RedisServer;
  readonly #settings: RedisDelaySettings;
  readonly #key: string;
  #count: number | undefined;
  /** By the monotonic clock. */
  #checkedMs = -Infinity;
  #mismatch: EngineError | undefined;
  #hasWarned = false;

  constructor(server: RedisServer, settings: RedisDelaySettings) {
    this.#server = server;
    this.#settings = settings;
    this.#key = `${settings.prefix}meta`;
  }

  /** As many as the queue was made with. */
  async agree(): Promise<number> {
    const { slots, isCluster } = this.#settings;
    const found = await this.#read(slots ?? (isCluster ? CLUSTER_SLOTS : 1));
    if (slots !== undefined && slots !== found) {
      const message = `The delay queue in Redis has ${found} slots, and this instance wants ${slots}. Set slots to ${found}, or leave it out. For another number give the queue another prefix, and consume the old one until it is empty.`;
      throw new EngineError('QUEUE_MISMATCH', message);
    }
    return (this.#count = found);
  }

  /** Throws `QUEUE_MISMATCH` where the key has changed. Writes it again where it is gone. */
  async check(): Promise<void> {
    const nowMs = this.#settings.host.clock.monotonic();
    if (nowMs - this.#checkedMs >= CHECK_MS) {
      this.#mismatch = this.#mismatchWith(await this.#read(this.#count!));
      this.#checkedMs = nowMs;
    }
    if (this.#mismatch) throw this.#mismatch;
    this.#hasWarned = false;
  }

  #mismatchWith(found: number): EngineError | undefined {
    const count = this.#count!;
    if (found === count) return undefined;
    const message = `The delay queue in Redis has ${found} slots now, and this instance opened it with ${count}. Redis lost the key ${this.#key}, and an instance with another number wrote it. This instance takes no new entries. Stop the instances with ${found} slots, delete that key, and start them with slots set to ${count}.`;
    return new EngineError('QUEUE_MISMATCH', message);
  }

  /** As `check`, for those who only hand entries over. Never rejects. */
  async keep(): Promise<void> {
    try {
      await this.check();
    } catch (err) {
      const { code, message } = err as EngineError;
      // A server that is away is reported by those who wait for its answer.
      if (this.#hasWarned || code?.startsWith('STORE_')) return;
      this.#hasWarned = true;
      this.#settings.host.log.error({ err }, message);
    }
  }

  async #read(wanted: number): Promise<number> {
    const key = this.#key;
    await this.#server.checkTypes([key]);
    const text = await this.#server.onNode(key, async (client) => {
      const known = await client.get(key);
      // A Redis without memory answers, and takes nothing: whoever starts then must still hand over what waits.
      if (known !== null) return known;
      await client.set(key, `slots=${wanted}`, { condition: 'NX' });
      return client.get(key);
    });
    const found = Number(/^slots=(\d+)$/.exec(text ?? '')?.[1]);
    if (Number.isSafeInteger(found) && found >= 1) return found;
    const message = `The key ${key} in Redis is ${JSON.stringify(text)}, and the delay queue keeps its number of slots there. Delete that key, or give the queue another prefix.`;
    throw new EngineError('KEY_NOT_OURS', message);
  }
}

import type { Host } from '../../../host.ts';
import type { RedisServer } from './server.ts';

type Listener = (slot: number, inMs: number) => void;

/** Tells the consumers of this process what may be due earlier than they know: by this process, or by others. */
export class Wakes {
  readonly #server: RedisServer;
  readonly #channel: string;
  readonly #host: Host;
  readonly #listeners = new Set<Listener>();
  #subscription: Promise<() => void> | undefined;

  constructor(server: RedisServer, channel: string, host: Host) {
    this.#server = server;
    this.#channel = channel;
    this.#host = host;
  }

  tell(slot: number, inMs: number): void {
    for (const listener of this.#listeners) listener(slot, inMs);
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    this.#subscribe();
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    await subscription?.then(
      (end) => end(),
      () => undefined,
    );
  }

  /** Without it consumers look by themselves, only less often. */
  #subscribe(): void {
    if (this.#subscription) return;
    const subscription = this.#server.subscribe(this.#channel, (message) => {
      const [slot, inMs] = message.split(' ').map(Number);
      if (Number.isSafeInteger(slot) && Number.isFinite(inMs)) this.tell(slot!, inMs!);
    });
    this.#subscription = subscription;
    subscription.catch((error: unknown) => {
      if (this.#subscription === subscription) this.#subscription = undefined;
      this.#host.log.warn(
        { err: error },
        'the delay queue cannot subscribe in Redis: entries of other processes may be a second late',
      );
    });
  }
}

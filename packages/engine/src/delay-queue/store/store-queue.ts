import type { Clock, Random } from 'redrive';
import { EngineError } from '../../errors.ts';
import { type Host, hostOf, type Log } from '../../host.ts';
import type {
  DelayConsumer,
  DelayedEntry,
  DelayHandler,
  DelayLimits,
  DelayQueue,
  DelayQueueCapabilities,
} from '../../ports/delay-queue.ts';
import type { Store } from '../../ports/store.ts';
import { checkEntries, checkIds } from '../checks.ts';
import { closedError } from '../faults.ts';
import { LeaseConsumer } from '../lease-consumer.ts';
import { cancel, keyOf, newTask, placeOf, type QueuePlace, schedule } from './entry-task.ts';
import { StoreSource } from './store-source.ts';
import { checkNames } from 'redrive/internal';

export interface StoreDelayQueueOptions {
  /** Queues of other names on the same store have other entries (`default`). */
  name?: string;
  /** How long an entry stays with a consumer that gives no sign of life, in ms (30 000). */
  leaseMs?: number;
  log?: Log;
  /** For waits in this process. Due times are by the store's own clock. */
  clock?: Clock;
  random?: Random;
}

const names = ['name', 'leaseMs', 'log', 'clock', 'random'];

/** Rows in one statement. */
const STEP = 1000;

/**
 * A delay queue on the engine's own store: SQLite, PostgreSQL or memory. An engine may run on the same store: neither sees
 * the other's work. The store stays yours to close.
 */
export function storeDelayQueue(store: Store, options: StoreDelayQueueOptions = {}): DelayQueue {
  if (typeof (store as Store | undefined)?.claim !== 'function') {
    const message =
      "A delay queue needs a store: storeDelayQueue(sqlite('tasks.db')), or postgres({ url }), or memory().";
    throw new EngineError('INVALID_ENGINE', message);
  }
  checkNames('The options of storeDelayQueue', options, names);
  const { name = 'default', leaseMs = 30_000 } = options;
  if (typeof name !== 'string' || !/^[\w.-]{1,100}$/.test(name)) {
    const message = `The name of a delay queue is ${JSON.stringify(name)}. Allowed: 1 to 100 letters, digits, dots, dashes and underscores.`;
    throw new EngineError('INVALID_ENGINE', message);
  }
  if (!Number.isSafeInteger(leaseMs) || leaseMs < 100) {
    const message = `The leaseMs of a delay queue is ${String(leaseMs)}. Allowed: whole ms from 100 on.`;
    throw new EngineError('INVALID_ENGINE', message);
  }
  return new StoreDelayQueue(store, placeOf(name), leaseMs, hostOf(options));
}

class StoreDelayQueue implements DelayQueue {
  readonly capabilities: DelayQueueCapabilities;
  readonly #store: Store;
  readonly #place: QueuePlace;
  readonly #leaseMs: number;
  readonly #host: Host;
  readonly #consumers = new Set<DelayConsumer>();
  #opening: Promise<void> | undefined;
  #isOpen = false;

  constructor(store: Store, place: QueuePlace, leaseMs: number, host: Host) {
    const { durable, listing } = store.capabilities;
    this.capabilities = { deduplicates: true, cancels: true, counts: listing, durable };
    this.#store = store;
    this.#place = place;
    this.#leaseMs = leaseMs;
    this.#host = host;
  }

  open(): Promise<void> {
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #open(): Promise<void> {
    await this.#store.open();
    this.#isOpen = true;
  }

  async schedule(entries: readonly DelayedEntry[]): Promise<void> {
    this.#assertOpen();
    checkEntries(entries);
    for (const some of inSteps(entries)) await this.#insert(some);
  }

  async consume(handler: DelayHandler, limits: DelayLimits): Promise<DelayConsumer> {
    this.#assertOpen();
    const source = new StoreSource(this.#store, this.#place, this.#leaseMs, this.#host);
    const consumer = new LeaseConsumer(source, handler, limits, this.#host);
    this.#consumers.add(consumer);
    return {
      get trouble() {
        return consumer.trouble;
      },
      stop: async () => {
        await consumer.stop();
        this.#consumers.delete(consumer);
      },
    };
  }

  async cancel(ids: readonly string[]): Promise<boolean[]> {
    this.#assertOpen();
    checkIds(ids);
    const results: boolean[] = [];
    for (const some of inSteps(ids)) {
      const keys = some.map((id) => keyOf(this.#place, id));
      results.push(...(await this.#store.change(keys, cancel)));
    }
    return results;
  }

  /** Reads all of them, page by page: ask seldom. */
  async depth(): Promise<number> {
    this.#assertOpen();
    const { lane } = this.#place;
    let count = 0;
    for (let before: number | undefined; ;) {
      const from = before === undefined ? {} : { before };
      const page = await this.#store.list({ status: 'pending', lane, limit: STEP, ...from });
      count += page.length;
      before = page.at(-1)?.id;
      if (page.length < STEP || before === undefined) return count;
    }
  }

  async close(): Promise<void> {
    // Otherwise it would be open after that.
    await this.#opening?.catch(() => undefined);
    this.#isOpen = false;
    const consumers = [...this.#consumers];
    this.#consumers.clear();
    await Promise.all(consumers.map((consumer) => consumer.stop()));
  }

  async #insert(entries: readonly DelayedEntry[]): Promise<void> {
    const tasks = entries.map((entry) => newTask(this.#place, entry));
    const ids = await this.#store.insert(tasks);
    // Known ids: what waits or is in hand stays as it is, what is over waits anew.
    const known = tasks.filter((_, i) => ids[i] === undefined);
    if (known.length === 0) return;
    await this.#store.change(known, (task, nowMs, i) => schedule(known[i]!, task, nowMs));
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw closedError();
  }
}

function* inSteps<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < all.length; i += STEP) yield all.slice(i, i + STEP);
}

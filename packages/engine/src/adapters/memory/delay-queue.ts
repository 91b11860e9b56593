import type { Clock, Random } from 'redrive';
import { checkEntries, checkIds } from '../../delay-queue/checks.ts';
import { closedError, incapable } from '../../delay-queue/faults.ts';
import { LeaseConsumer } from '../../delay-queue/lease-consumer.ts';
import { type Host, hostOf, type Log } from '../../host.ts';
import type {
  DelayConsumer,
  DelayedEntry,
  DelayHandler,
  DelayLimits,
  DelayQueue,
  DelayQueueCapabilities,
} from '../../ports/delay-queue.ts';
import { DelayTable, type MemoryLease } from './delay-table.ts';
import { checkNames } from 'redrive/internal';

export interface MemoryDelayQueueOptions {
  /** The queue's time (the system's). A virtual clock works. */
  clock?: Clock;
  random?: Random;
  log?: Log;
  /** How long an entry stays with a consumer that gives no sign of life, in ms (30 000). */
  leaseMs?: number;
  /** Entries that it holds before it refuses more with `STORE_FULL` (1 000 000). */
  maxEntries?: number;
  /** Capabilities that it shall not have, so that tests can stand in for a queue without them. */
  lacks?: readonly ('deduplicates' | 'cancels' | 'counts')[];
}

export interface MemoryDelayQueue extends DelayQueue {
  /** The same entries, as another process would see them: with its own consumers, opened and closed by itself. */
  another(): MemoryDelayQueue;
  /** What a killed process does: its calls take no effect any more, and its entries come again after their lease. */
  crash(): void;
  /** Ends all leases at once, as if their time were over. */
  expireLeases(): void;
  /** The ids of all entries that wait or are in hand. */
  ids(): string[];
}

/** A delay queue in this process alone: gone when the process ends. For tests and development. */
export function memoryDelayQueue(options: MemoryDelayQueueOptions = {}): MemoryDelayQueue {
  checkNames('The options of memoryDelayQueue', options, names);
  const host = hostOf(options);
  const { leaseMs = 30_000, maxEntries = 1_000_000, lacks = [] } = options;
  const capabilities: DelayQueueCapabilities = {
    deduplicates: !lacks.includes('deduplicates'),
    cancels: !lacks.includes('cancels'),
    counts: !lacks.includes('counts'),
    durable: false,
  };
  const table = new DelayTable(host.clock, maxEntries, capabilities.deduplicates);
  return new InProcessDelayQueue(table, capabilities, leaseMs, host);
}

const names = ['clock', 'random', 'log', 'leaseMs', 'maxEntries', 'lacks'];

/** In one turn of the event loop. */
const MAX_TAKES = 64;

class InProcessDelayQueue implements MemoryDelayQueue {
  readonly capabilities: DelayQueueCapabilities;
  readonly #table: DelayTable;
  readonly #leaseMs: number;
  readonly #host: Host;
  readonly #consumers = new Set<DelayConsumer>();
  #isOpen = false;
  #hasCrashed = false;

  constructor(
    table: DelayTable,
    capabilities: DelayQueueCapabilities,
    leaseMs: number,
    host: Host,
  ) {
    this.capabilities = capabilities;
    this.#table = table;
    this.#leaseMs = leaseMs;
    this.#host = host;
  }

  async open(): Promise<void> {
    this.#isOpen = true;
  }

  async schedule(entries: readonly DelayedEntry[]): Promise<void> {
    this.#assertOpen();
    checkEntries(entries);
    await this.#unlessCrashed(() => this.#table.add(entries));
  }

  async consume(handler: DelayHandler, limits: DelayLimits): Promise<DelayConsumer> {
    this.#assertOpen();
    const table = this.#table;
    const leaseMs = this.#leaseMs;
    let takes = 0;
    const source = {
      leaseMs,
      take: async (limit: number) => {
        // A handler that wants all again at once must not hold up the process.
        takes = (takes + 1) % MAX_TAKES;
        if (takes === 0)
          await new Promise<void>((resolve) => {
            this.#host.defer(resolve);
          });
        return this.#unlessCrashed(() => table.take(limit, leaseMs));
      },
      renew: (leased: readonly MemoryLease[]) =>
        this.#unlessCrashed(() => table.renew(leased, leaseMs)),
      end: (...args: Parameters<DelayTable['end']>) =>
        this.#unlessCrashed(() => table.end(...args)),
      watch: (listener: (inMs: number) => void) => table.watch(listener),
    };
    const consumer = new LeaseConsumer(source, handler, limits, this.#host);
    this.#consumers.add(consumer);
    return {
      get trouble() {
        return consumer.trouble;
      },
      stop: async () => {
        if (this.#hasCrashed) return;
        await consumer.stop();
        this.#consumers.delete(consumer);
      },
    };
  }

  async cancel(ids: readonly string[]): Promise<boolean[]> {
    this.#assertOpen();
    if (!this.capabilities.cancels) throw incapable('cancel', 'cancels');
    checkIds(ids);
    return this.#unlessCrashed(() => ids.map((id) => this.#table.cancel(id)));
  }

  async depth(): Promise<number> {
    this.#assertOpen();
    if (!this.capabilities.counts) throw incapable('depth', 'counts');
    return this.#table.size;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    if (this.#hasCrashed) return;
    const consumers = [...this.#consumers];
    this.#consumers.clear();
    await Promise.all(consumers.map((consumer) => consumer.stop()));
  }

  another(): MemoryDelayQueue {
    return new InProcessDelayQueue(this.#table, this.capabilities, this.#leaseMs, this.#host);
  }

  crash(): void {
    this.#hasCrashed = true;
  }

  expireLeases(): void {
    this.#table.expireLeases();
  }

  ids(): string[] {
    return this.#table.ids();
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw closedError();
  }

  /** Nobody hears an answer of a process that is gone. */
  async #unlessCrashed<T>(work: () => T): Promise<T> {
    return this.#hasCrashed ? Promise.withResolvers<T>().promise : work();
  }
}

import { randomBytes } from 'node:crypto';
import { checkEntries, checkIds } from '../../../delay-queue/checks.ts';
import { closedError } from '../../../delay-queue/faults.ts';
import { LeaseConsumer } from '../../../delay-queue/lease-consumer.ts';
import type {
  DelayConsumer,
  DelayedEntry,
  DelayHandler,
  DelayLimits,
  DelayQueue,
  DelayQueueCapabilities,
} from '../../../ports/delay-queue.ts';
import { findingsOf, readConfiguration, type RedisFinding } from './findings.ts';
import { contentOf, partsBySlot, type SlotKeys, slotKeys, slotOf } from './layout.ts';
import { type RedisDelayQueueOptions, type RedisDelaySettings, readOptions } from './options.ts';
import { scripts } from './scripts.ts';
import { RedisServer } from './server.ts';
import { SlotCount } from './slot-count.ts';
import { POLL_MS, RedisSource } from './source.ts';
import { Wakes } from './wakes.ts';

export interface RedisDelayQueue extends DelayQueue {
  /** What the settings of the server mean for the entries: eviction, persistence. Asks the server. */
  findings(): Promise<RedisFinding[]>;
}

/** A delay queue in Redis 6.2 or later: a single server, or a cluster. */
export function redisDelayQueue(options: RedisDelayQueueOptions): RedisDelayQueue {
  return new SlottedDelayQueue(readOptions(options));
}

class SlottedDelayQueue implements RedisDelayQueue {
  readonly capabilities: DelayQueueCapabilities = {
    deduplicates: true,
    cancels: true,
    counts: true,
    durable: true,
  };
  readonly #settings: RedisDelaySettings;
  readonly #server: RedisServer;
  readonly #slotCount: SlotCount;
  readonly #wakes: Wakes;
  readonly #channel: string;
  readonly #instance = randomBytes(8).toString('base64url');
  readonly #consumers = new Set<DelayConsumer>();
  #tokens = 0;
  #slots: readonly SlotKeys[] = [];
  #opening: Promise<void> | undefined;
  #isOpen = false;

  constructor(settings: RedisDelaySettings) {
    this.#settings = settings;
    this.#channel = `${settings.prefix}wake`;
    this.#server = new RedisServer(settings);
    this.#slotCount = new SlotCount(this.#server, settings);
    this.#wakes = new Wakes(this.#server, this.#channel, settings.host);
  }

  open(): Promise<void> {
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async schedule(entries: readonly DelayedEntry[]): Promise<void> {
    this.#assertOpen();
    checkEntries(entries);
    await this.#slotCount.check();
    const bytesIn = ({ payload }: DelayedEntry) => payload.byteLength;
    const parts = partsBySlot(entries, ({ id }) => slotOf(id, this.#slots.length), bytesIn);
    await all(
      parts.map(async ({ slot, part }) => {
        const { queue, entries: hash, fence } = this.#slots[slot]!;
        const isFenced = this.#settings.minReplicas > 0 ? '1' : '0';
        const args: (string | Buffer)[] = [this.#channel, `${slot}`, `${POLL_MS}`, isFenced];
        for (const one of part) args.push(one.id, `${one.delayMs}`, contentOf(one));
        await this.#server.run(scripts.schedule, [queue, hash, fence], args, true);
        this.#wakes.tell(slot, Math.min(...part.map(({ delayMs }) => delayMs)));
      }),
    );
  }

  async consume(handler: DelayHandler, limits: DelayLimits): Promise<DelayConsumer> {
    this.#assertOpen();
    const source = new RedisSource({
      server: this.#server,
      slots: this.#slots,
      slotCount: this.#slotCount,
      channel: this.#channel,
      leaseMs: this.#settings.leaseMs,
      host: this.#settings.host,
      nextToken: () => `${this.#instance}${(this.#tokens += 1).toString(36)}`,
      wakes: this.#wakes,
    });
    const consumer = new LeaseConsumer(source, handler, limits, this.#settings.host);
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
    await this.#slotCount.check();
    const numbered = ids.map((id, index) => ({ id, index }));
    const results: boolean[] = [];
    await all(
      partsBySlot(numbered, ({ id }) => slotOf(id, this.#slots.length)).map(
        async ({ slot, part }) => {
          const { queue, entries, hands } = this.#slots[slot]!;
          const args = part.map(({ id }) => id);
          const answer = await this.#server.run(scripts.cancel, [queue, entries, hands], args);
          for (const [i, { index }] of part.entries()) {
            results[index] = Number((answer as number[])[i]) === 1;
          }
        },
      ),
    );
    return results;
  }

  async depth(): Promise<number> {
    this.#assertOpen();
    const counts = await Promise.all(
      this.#slots.map(({ queue }) => this.#server.onNode(queue, (client) => client.zCard(queue))),
    );
    return counts.reduce((sum, count) => sum + Number(count), 0);
  }

  async findings(): Promise<RedisFinding[]> {
    const findings: RedisFinding[] = [];
    await this.#server.onPrimaries(async (client, node) => {
      findings.push(...findingsOf(node, await readConfiguration(client)));
    });
    return findings;
  }

  async close(): Promise<void> {
    // Otherwise it would be open after that, and its connections would stay.
    await this.#opening?.catch(() => undefined);
    this.#isOpen = false;
    const consumers = [...this.#consumers];
    this.#consumers.clear();
    await Promise.all(consumers.map((consumer) => consumer.stop()));
    await this.#wakes.close();
    await this.#server.close();
  }

  async #open(): Promise<void> {
    if (this.#isOpen) return;
    const { prefix, host } = this.#settings;
    const count = await this.#slotCount.agree();
    const slots = Array.from({ length: count }, (_, slot) => slotKeys(prefix, slot));
    await this.#server.checkTypes(slots.flatMap((one) => [one.queue, one.entries, one.hands]));
    for (const { level, node, why, todo, what } of await this.findings()) {
      host.log[level]({ node, what }, `the delay queue in Redis at ${node}: ${why} ${todo}`);
    }
    this.#slots = slots;
    this.#isOpen = true;
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw closedError();
  }
}

/** Waits for all of them, also where one fails: nothing may go on behind the caller's back. */
async function all(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
}

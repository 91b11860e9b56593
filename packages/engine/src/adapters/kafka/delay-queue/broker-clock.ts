import { textOf } from '../../../broker/answers.ts';
import type { Cluster } from '../client/cluster.ts';
import type { Producer, Stored } from '../client/producer.ts';

const PROBE_TIMEOUT_MS = 2000;
const RETRY_MS = 200;
const STALE_MS = 10_000;
const PROBE = Buffer.from('?');

/**
 * What time it is for the brokers. No local clock is believed: a record is appended to the topic of the clock, and the
 * acknowledgement has the time at which the broker did it. With several brokers the slowest clock counts, so that an entry
 * is late by their difference, never early.
 */
export class BrokerClock {
  readonly #cluster: Cluster;
  readonly #producer: Producer;
  readonly #topic: string;
  #nowMs = -Infinity;
  #askedAtMs = 0;
  #asking: Promise<void> | undefined;
  #saidWhy = '';

  constructor(cluster: Cluster, producer: Producer, topic: string) {
    this.#cluster = cluster;
    this.#producer = producer;
    this.#topic = topic;
  }

  /** It is at least this late. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** About what time it is, by the local clock since the brokers were asked; they are asked again if that was long ago. */
  estimateMs(): number {
    const passedMs = this.#cluster.settings.host.clock.monotonic() - this.#askedAtMs;
    if (this.#nowMs === -Infinity || passedMs > STALE_MS) void this.ask();
    return this.#nowMs + passedMs;
  }

  /** In how many ms it may be worth to ask again, by the local clock. */
  inMs(timeMs: number): number {
    if (this.#nowMs === -Infinity) return 0;
    const passedMs = this.#cluster.settings.host.clock.monotonic() - this.#askedAtMs;
    return Math.max(0, timeMs - (this.#nowMs + passedMs));
  }

  /** Asks the brokers. Never rejects: where none answers, the time stays as it was, and it takes a while. */
  ask(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { clock } = this.#cluster.settings.host;
    const askedAtMs = clock.monotonic();
    try {
      const times = await this.#probe();
      if (times.length > 0) {
        this.#nowMs = Math.min(...times);
        this.#askedAtMs = askedAtMs;
        this.#saidWhy = '';
        return;
      }
      this.#complain('no partition of it has a leader');
    } catch (error) {
      this.#complain(textOf(error));
    }
    await new Promise<void>((resolve) => {
      clock.setTimer(resolve, RETRY_MS, true);
    });
  }

  #complain(why: string): void {
    const { log } = this.#cluster.settings.host;
    if (this.#saidWhy !== why && !this.#cluster.isClosed) {
      log.warn({ topic: this.#topic, why }, 'Kafka: the time of the brokers is not known');
    }
    this.#saidWhy = why;
  }

  /** The times of all brokers that answer. */
  async #probe(): Promise<number[]> {
    const info = (await this.#cluster.topics([this.#topic])).get(this.#topic)!;
    if (info.state !== 'found') return [];
    const byLeader = new Map<number, number>();
    for (const [partition, { leader }] of info.partitions.entries()) {
      if (leader !== undefined && !byLeader.has(leader)) byLeader.set(leader, partition);
    }
    const records = Array.from(byLeader.values(), (partition) => ({
      topic: this.#topic,
      partition,
      key: null,
      value: PROBE,
      headers: undefined,
      bytes: PROBE.length,
    }));
    if (records.length === 0) return [];
    const answers = await new Promise<Stored[]>((resolve) => {
      const all: Stored[] = [];
      const options = { timeoutMs: PROBE_TIMEOUT_MS, insist: false };
      this.#producer.send(records, options, (_, stored) => {
        if (all.push(stored) === records.length) resolve(all);
      });
    });
    // A leader that is gone is looked for before the next question.
    if (answers.some(({ type }) => type !== 'stored'))
      await this.#cluster.topics([this.#topic], true);
    return answers.flatMap((one) => (one.type === 'stored' ? [one.timestampMs] : []));
  }
}

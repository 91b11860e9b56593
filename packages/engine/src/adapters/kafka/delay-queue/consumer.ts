import { textOf } from '../../../broker/answers.ts';
import { readLimits, type FullLimits } from '../../../delay-queue/checks.ts';
import type { DelayConsumer, DelayHandler, DelayLimits } from '../../../ports/delay-queue.ts';
import { within } from '../../../patience.ts';
import type { Cluster } from '../client/cluster.ts';
import { Code, nameOf } from '../client/errors.ts';
import { Fetcher, type FetchTarget } from '../client/fetcher.ts';
import type { FetchedRecord } from '../client/record-batches.ts';
import { type Assigned, Group } from '../client/group.ts';
import type { TopicPartition } from '../client/offsets.ts';
import type { OutRecord, Producer } from '../client/producer.ts';
import type { BrokerClock } from './broker-clock.ts';
import { DueReader, type Room } from './due-reader.ts';
import { handOver } from './handing.ts';
import type { KafkaDelayQueueSettings } from './options.ts';
import type { Reader, ReaderKit } from './reader.ts';
import { TierReader } from './tier-reader.ts';
import type { Topics } from './topics.ts';
import { deleteRecordsV2 } from '../client/library.ts';

interface Parts {
  readonly settings: KafkaDelayQueueSettings;
  readonly cluster: Cluster;
  readonly producer: Producer;
  readonly clock: BrokerClock;
  readonly topics: Topics;
}

const COMMIT_EVERY_MS = 200;
const LOOK_AGAIN_MS = 100;
const SEND_MS = 30_000;
/** How long handlers may keep a partition that is to go to another consumer. */
const GIVE_UP_MS = 20_000;

/** A member of the group: sends on what has waited in its topics, and hands over what is due. */
export class KafkaDelayConsumer implements DelayConsumer {
  readonly #parts: Parts;
  readonly #handler: DelayHandler;
  readonly #limits: FullLimits;
  readonly #group: Group;
  readonly #fetcher: Fetcher;
  readonly #room: Room;
  readonly #kit: ReaderKit;
  readonly #readers = new Map<string, Reader>();
  readonly #batches = new Set<Promise<void>>();
  #isScheduled = false;
  #isAsking = false;
  #isStopping = false;
  #timer: unknown;
  #commitTimer: unknown;
  #trimTimer: unknown;
  #stopping: Promise<void> | undefined;
  #idle: () => void = () => {};
  #hasWarnedOfTrim = false;
  readonly #trimmed = new WeakMap<object, number>();

  constructor(parts: Parts, handler: DelayHandler, limits: DelayLimits) {
    const { settings, cluster, topics } = parts;
    this.#parts = parts;
    this.#handler = handler;
    this.#limits = readLimits(limits);
    const { maxHeld: maxEntries, maxHeldBytes: maxBytes } = settings;
    this.#room = { entries: 0, bytes: 0, maxEntries, maxBytes };
    this.#kit = {
      nowMs: () => parts.clock.nowMs,
      estimateMs: () => parts.clock.estimateMs(),
      changed: () => this.#changed(),
      setAside: (from, record, why) => this.#setAside(from, record, why),
    };
    this.#fetcher = new Fetcher(cluster);
    this.#group = new Group(cluster, settings.group, topics.tiers.topics, {
      assigned: (partitions) => this.#assigned(partitions),
      revoked: (partitions) => this.#revoked(partitions),
      lost: (why) => this.#lose([...this.#readers.values()], why),
    });
    this.#group.start();
    this.#trimLater();
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  /** As a killed process: nothing is committed and nobody is told. For tests. */
  crash(): void {
    this.#isStopping = true;
    this.#group.abandon();
    this.#halt();
    this.#lose([...this.#readers.values()], 'crashed');
  }

  async #stop(): Promise<void> {
    this.#isStopping = true;
    const { host } = this.#parts.settings;
    const isQuiet = await within(
      host,
      this.#limits.stopTimeoutMs,
      this.#untilIdle(() => true),
    );
    if (!isQuiet) {
      const { stopTimeoutMs } = this.#limits;
      const message =
        'handlers of delayed entries did not end in time; their entries are given back';
      host.log.warn({ batches: this.#batches.size, stopTimeoutMs }, message);
    }
    await this.#commit();
    this.#halt();
    this.#lose([...this.#readers.values()], 'The consumer was stopped.');
    await this.#group.stop();
  }

  #halt(): void {
    const { clock } = this.#parts.settings.host;
    this.#fetcher.stop();
    for (const timer of [this.#timer, this.#commitTimer, this.#trimTimer]) clock.clearTimer(timer);
  }

  #assigned(partitions: readonly Assigned[]): void {
    if (this.#isStopping) return;
    const { producer, topics, clock } = this.#parts;
    const { tiers } = topics;
    void clock.ask();
    for (const at of partitions) {
      const tier = tiers.waits.find(({ topic }) => topic === at.topic);
      const reader: Reader = tier
        ? new TierReader(at, this.#kit, {
            tier,
            tiers,
            send: async (records) =>
              void (await this.#send(producer, records, () => reader.isLost)),
          })
        : new DueReader(at, this.#kit, this.#room);
      this.#readers.set(nameOfPartition(at), reader);
      this.#fetcher.add(reader);
    }
  }

  /** Finishes what is under way of them, commits, and lets them go. */
  async #revoked(partitions: readonly TopicPartition[]): Promise<void> {
    const readers = partitions.flatMap((at) => this.#readers.get(nameOfPartition(at)) ?? []);
    for (const reader of readers) {
      reader.isLeaving = true;
      this.#fetcher.remove(reader);
    }
    const { host } = this.#parts.settings;
    await within(
      host,
      GIVE_UP_MS,
      this.#untilIdle((reader) => readers.includes(reader)),
    );
    await this.#commit();
    this.#lose(readers, 'The partition went to another consumer.');
  }

  #lose(readers: readonly Reader[], why: string): void {
    for (const reader of readers) {
      this.#fetcher.remove(reader);
      reader.lose(why);
      const name = nameOfPartition(reader);
      if (this.#readers.get(name) === reader) this.#readers.delete(name);
    }
    this.#idle();
  }

  async #untilIdle(which: (reader: Reader) => boolean): Promise<void> {
    const isBusy = () => [...this.#readers.values()].some((one) => which(one) && one.isBusy);
    while (isBusy()) {
      await new Promise<void>((resolve) => {
        const before = this.#idle;
        this.#idle = () => {
          before();
          resolve();
        };
      });
    }
  }

  /** Something came, is due, or is done. What happens in one turn of the event loop is looked at once. */
  #changed(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const { host } = this.#parts.settings;
    host.defer(() => {
      this.#isScheduled = false;
      const idle = this.#idle;
      this.#idle = () => {};
      idle();
      this.#commitSoon();
      this.#work();
      this.#fetcher.wake();
    });
  }

  #work(): void {
    if (this.#isStopping) return;
    // Who is not sure to be in the group may have lost its partitions.
    if (!this.#group.isAlive) return this.#workIn(LOOK_AGAIN_MS);
    let nextMs = Infinity;
    for (const reader of this.#readers.values()) {
      if (reader instanceof TierReader) void reader.hop();
      if (reader instanceof TierReader) nextMs = Math.min(nextMs, reader.nextMs);
    }
    while (this.#batches.size < this.#limits.concurrency) {
      const { oldest, soonestMs } = this.#dueReaders();
      if (!oldest) {
        nextMs = Math.min(nextMs, soonestMs);
        break;
      }
      this.#handOver(oldest);
    }
    this.#wakeAt(nextMs);
  }

  /** The reader with what has been due for longest, or when the next one has something. */
  #dueReaders(): { oldest: DueReader | undefined; soonestMs: number } {
    let oldest: DueReader | undefined;
    let soonestMs = Infinity;
    for (const reader of this.#readers.values()) {
      if (!(reader instanceof DueReader)) continue;
      const { nextMs } = reader;
      if (nextMs > -Infinity) soonestMs = Math.min(soonestMs, nextMs);
      else if (!oldest || reader.firstDueMs < oldest.firstDueMs) oldest = reader;
    }
    return { oldest, soonestMs };
  }

  #handOver(reader: DueReader): void {
    const { settings, producer, clock, topics } = this.#parts;
    const batch = reader.takeDue(this.#limits.maxBatch);
    const over = handOver(reader, batch, {
      handler: this.#handler,
      timeoutMs: this.#limits.timeoutMs,
      host: settings.host,
      tiers: topics.tiers,
      clock,
      send: (records, signal) => this.#send(producer, records, () => signal.aborted),
    });
    this.#batches.add(over);
    void over.then(() => {
      this.#batches.delete(over);
      this.#changed();
    });
  }

  #workIn(ms: number): void {
    const { clock } = this.#parts.settings.host;
    clock.clearTimer(this.#timer);
    this.#timer = clock.setTimer(() => this.#work(), ms);
  }

  /** Asks the brokers for their time when the next entry should be due, by the local clock. */
  #wakeAt(timeMs: number): void {
    const { clock, settings } = this.#parts;
    settings.host.clock.clearTimer(this.#timer);
    if (timeMs === Infinity || this.#isAsking) return;
    const inMs = Math.min(clock.inMs(timeMs), MAX_SLEEP_MS);
    if (inMs === 0) return void this.#ask();
    this.#timer = settings.host.clock.setTimer(() => void this.#ask(), inMs);
  }

  async #ask(): Promise<void> {
    if (this.#isAsking || this.#isStopping) return;
    this.#isAsking = true;
    await this.#parts.clock.ask();
    this.#isAsking = false;
    if (!this.#isStopping) this.#work();
  }

  /** Tries until all are durable: false when they are not wanted any more. */
  async #send(
    producer: Producer,
    records: readonly OutRecord[],
    isOver: () => boolean,
  ): Promise<boolean> {
    const { log } = this.#parts.settings.host;
    for (let left = records; ;) {
      if (isOver()) return false;
      const unsent: OutRecord[] = [];
      await new Promise<void>((resolve) => {
        let open = left.length;
        producer.send(left, { timeoutMs: SEND_MS, insist: true }, (i, stored) => {
          if (stored.type !== 'stored') unsent.push(left[i]!);
          open -= 1;
          if (open === 0) resolve();
        });
      });
      if (unsent.length === 0) return true;
      log.warn(
        { count: unsent.length },
        'Kafka: delayed entries could not be written, trying again',
      );
      left = unsent;
      await new Promise<void>((resolve) => {
        this.#parts.settings.host.clock.setTimer(resolve, COMMIT_EVERY_MS, true);
      });
    }
  }

  /** Nothing vanishes: who wrote it may want it back. */
  async #setAside(from: FetchTarget, record: FetchedRecord, why: string): Promise<boolean> {
    const { settings, producer, topics } = this.#parts;
    const { topic, partition } = from;
    const { offset, key, value } = record;
    const at = { topic, partition, offset, why };
    settings.host.log.error(at, `Kafka: a record is no entry, and goes to ${topics.unreadable}`);
    const headers = new Map<Buffer, Buffer>();
    for (const [name, one] of record.headers) headers.set(name ?? Buffer.alloc(0), one as Buffer);
    const facts = { topic, partition, offset, reason: why };
    for (const [name, fact] of Object.entries(facts)) {
      headers.set(Buffer.from(`x-redrive-${name}`), Buffer.from(String(fact)));
    }
    // A tombstone stays one: the library writes null though its types do not say so.
    const copy = { topic: topics.unreadable, key, value: value as Buffer, headers, bytes: 0 };
    const bytes = (key?.length ?? 0) + (value?.length ?? 0) + 1000;
    return this.#send(producer, [{ ...copy, bytes }], () => this.#isStopping);
  }

  #commitSoon(): void {
    const { clock } = this.#parts.settings.host;
    this.#commitTimer ??= clock.setTimer(() => {
      this.#commitTimer = undefined;
      void this.#commit();
    }, COMMIT_EVERY_MS);
  }

  async #commit(): Promise<void> {
    const due = [...this.#readers.values()].flatMap(({ topic, partition, progress }) => {
      const offset = progress.uncommitted;
      return offset === undefined ? [] : [{ topic, partition, offset, progress }];
    });
    if (due.length === 0) return;
    const isCommitted = await this.#group.commit(due);
    for (const { progress, offset } of due) if (isCommitted) progress.committed(offset);
    if (!isCommitted && !this.#isStopping) this.#commitSoon();
  }

  #trimLater(): void {
    const { host, trimEveryMs } = this.#parts.settings;
    this.#trimTimer = host.clock.setTimer(
      () => {
        void this.#trim().then(() => {
          if (!this.#isStopping) this.#trimLater();
        });
      },
      trimEveryMs,
      true,
    );
  }

  /** Deletes what was committed: topics without retention would grow for ever. */
  async #trim(): Promise<void> {
    const { cluster } = this.#parts;
    const trimmable = [...this.#readers.values()].filter(
      ({ progress }) => progress.committedOffset > (this.#trimmed.get(progress) ?? 0),
    );
    const byLeader = Map.groupBy(trimmable, ({ topic, partition }) =>
      cluster.leaderOf(topic, partition),
    );
    for (const [leader, readers] of byLeader) {
      if (leader === undefined || this.#isStopping) continue;
      const offsets = readers.map(({ progress }) => progress.committedOffset);
      const topics = readers.map(({ topic, partition }, i) => ({
        name: topic,
        partitions: [{ partitionIndex: partition, offset: BigInt(offsets[i]!) }],
      }));
      try {
        const answer = await cluster.call('control', leader, deleteRecordsV2.api, topics, SEND_MS);
        const codes = answer.topics.flatMap(({ partitions }) =>
          partitions.map((one) => one.errorCode),
        );
        const bad = codes.find((code) => code !== Code.none);
        if (bad === undefined)
          readers.forEach(({ progress }, i) => this.#trimmed.set(progress, offsets[i]!));
        else this.#warnOfTrim(nameOf(bad));
      } catch (error) {
        this.#warnOfTrim(textOf(error));
      }
    }
  }

  #warnOfTrim(why: string): void {
    if (this.#hasWarnedOfTrim) return;
    this.#hasWarnedOfTrim = true;
    const { log } = this.#parts.settings.host;
    log.warn({ why }, 'Kafka: what is done cannot be deleted from the logs, which grow');
  }
}

/** A timer that is far away is set again now and then. */
const MAX_SLEEP_MS = 60_000;

function nameOfPartition({ topic, partition }: TopicPartition): string {
  return `${topic}:${partition}`;
}

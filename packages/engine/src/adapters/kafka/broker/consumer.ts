import { textOf } from '../../../broker/answers.ts';
import { Backoff } from '../../../broker/backoff.ts';
import type { ConsumeLimits, Consumer, Received } from '../../../ports/broker.ts';
import type { Cluster } from '../client/cluster.ts';
import { nameOf } from '../client/errors.ts';
import { Fetcher, type FetchTarget } from '../client/fetcher.ts';
import type { FetchedRecord } from '../client/record-batches.ts';
import { type Assigned, Group } from '../client/group.ts';
import type { TopicPartition } from '../client/offsets.ts';
import { Progress } from '../client/progress.ts';
import { Held, type Holding, type Tag } from './held.ts';
import type { KafkaSettings } from './options.ts';
import { receivedOf, sizeOf } from './received.ts';

/** `waiting`: for the cluster, or for the topic to be there. */
export interface KafkaConsumer extends Consumer {
  readonly state: { state: 'waiting' | 'consuming' | 'stopped'; why?: string };
}

interface Wish {
  source: string;
  limits: ConsumeLimits;
  receive: (message: Received) => void;
}

/** A partition that this consumer has. */
export interface TopicReader extends FetchTarget {
  readonly progress: Progress;
  isLeaving: boolean;
}

const COMMIT_EVERY_MS = 200;
const MAX_FETCH_BYTES = 1024 * 1024;
/** How long what is handed over of a partition may take before the partition goes to another consumer. */
const GIVE_UP_MS = 20_000;

/** Reads a topic as a member of a group, and commits what was acknowledged: never past what was not. */
export class TopicConsumer implements KafkaConsumer {
  readonly #wish: Wish;
  readonly #settings: KafkaSettings;
  readonly #ended: (consumer: TopicConsumer) => void;
  readonly #backoff: Backoff;
  readonly #held = new Held();
  readonly #readers = new Map<number, TopicReader>();
  #state: KafkaConsumer['state'] = { state: 'waiting' };
  #group: Group | undefined;
  #fetcher: Fetcher | undefined;
  #retry: unknown;
  #commitTimer: unknown;
  #isDraining = false;
  #isHandingOver = false;
  #settled: () => void = () => {};
  #saidWhy: string | undefined;

  constructor(wish: Wish, settings: KafkaSettings, ended: (consumer: TopicConsumer) => void) {
    this.#wish = wish;
    this.#settings = settings;
    this.#ended = ended;
    this.#backoff = new Backoff(settings.policy, settings.host.clock, settings.host.random);
  }

  get state(): KafkaConsumer['state'] {
    return this.#state;
  }

  /** There is a cluster. Resolves after the first try, whatever comes of it. */
  async attach(cluster: Cluster): Promise<void> {
    if (this.#state.state === 'stopped' || this.#group) return;
    const { source } = this.#wish;
    const why = await whyNot(cluster, source);
    if (this.#isOver() || this.#group || cluster.isClosed) return;
    if (why !== undefined) return this.#failed(cluster, why);
    this.#state = { state: 'consuming' };
    this.#saidWhy = undefined;
    this.#backoff.works();
    this.#fetcher = new Fetcher(cluster);
    this.#group = new Group(cluster, `${this.#settings.group}-${source}`, [source], {
      assigned: (partitions) => this.#assigned(partitions),
      revoked: (partitions) => this.#revoked(partitions),
      lost: () => this.#lost(),
    });
    this.#group.start();
  }

  async ack(messages: readonly Received[]): Promise<void> {
    for (const message of messages) {
      const holding = this.#held.settle(message);
      holding?.reader.progress.done(holding.offset);
    }
    this.#commitSoon();
    this.#goOn();
  }

  /** It is kept here and handed over again: a log has no place to put it back to. */
  async requeue(messages: readonly Received[]): Promise<void> {
    for (const message of messages) {
      const holding = this.#held.settle(message);
      if (holding && !holding.reader.isLeaving) this.#held.handAgain(holding);
    }
    this.#goOn();
  }

  drain(): void {
    this.#isDraining = this.#held.handedCount > 0;
  }

  async stop(): Promise<void> {
    if (this.#isOver()) return;
    const wasConsuming = this.#group;
    this.#state = { state: 'stopped' };
    const { clock } = this.#settings.host;
    clock.clearTimer(this.#retry);
    clock.clearTimer(this.#commitTimer);
    this.#fetcher?.stop();
    this.#ended(this);
    await this.#commit();
    await wasConsuming?.stop();
    for (const reader of this.#readers.values()) this.#held.drop(reader);
    this.#readers.clear();
    this.#settled();
  }

  #isOver(): boolean {
    return this.#state.state === 'stopped';
  }

  #failed(cluster: Cluster, why: string): void {
    const { log, clock } = this.#settings.host;
    const { source } = this.#wish;
    this.#state = { state: 'waiting', why };
    // Once per cause: the rest is repetition.
    if (this.#saidWhy !== why) log.warn({ source, why }, 'not consuming: trying again');
    this.#saidWhy = why;
    clock.clearTimer(this.#retry);
    this.#retry = clock.setTimer(() => void this.attach(cluster), this.#backoff.nextDelayMs());
  }

  #assigned(partitions: readonly Assigned[]): void {
    if (this.#isOver()) return;
    for (const { partition, start } of partitions) {
      const reader = this.#readerOf(partition, start);
      this.#readers.set(partition, reader);
      this.#fetcher?.add(reader);
    }
  }

  #readerOf(partition: number, start: number): TopicReader {
    const progress = new Progress(start);
    const topic = this.#wish.source;
    const reader: TopicReader = {
      topic,
      partition,
      progress,
      isLeaving: false,
      maxBytes: Math.max(1, Math.min(MAX_FETCH_BYTES, this.#wish.limits.maxBytes)),
      get next() {
        return progress.next;
      },
      wants: () => !reader.isLeaving && !this.#held.hasWaiting && !this.#isFull(),
      take: (records, next) => this.#take(reader, records, next),
      restart: (offset) => {
        this.#held.drop(reader);
        progress.restart(offset);
      },
    };
    return reader;
  }

  #take(reader: TopicReader, records: readonly FetchedRecord[], next: number): void {
    for (const record of records) {
      const { offset } = record;
      reader.progress.add(offset);
      const holding = { reader, offset, bytes: sizeOf(record) } as Holding;
      const tag: Tag = { holding };
      holding.received = receivedOf(reader, record, tag);
      this.#held.add(holding);
    }
    reader.progress.advance(next);
    this.#handOver();
  }

  #isFull(): boolean {
    return this.#isDraining || this.#held.handedCount >= this.#wish.limits.maxMessages;
  }

  #handOver(): void {
    // A receiver that settles at once calls back into here.
    if (this.#isHandingOver) return;
    this.#isHandingOver = true;
    const { maxMessages, maxBytes } = this.#wish.limits;
    while (!this.#isDraining && !this.#isOver()) {
      const received = this.#held.take(maxMessages, maxBytes);
      if (!received) break;
      this.#wish.receive(received);
    }
    this.#isHandingOver = false;
  }

  #goOn(): void {
    if (this.#held.handedCount === 0) this.#isDraining = false;
    this.#settled();
    this.#handOver();
    this.#fetcher?.wake();
  }

  /** Waits for what is handed over of them, commits, and lets them go. */
  async #revoked(partitions: readonly TopicPartition[]): Promise<void> {
    const readers = partitions.flatMap(({ partition }) => this.#readers.get(partition) ?? []);
    for (const reader of readers) {
      reader.isLeaving = true;
      this.#fetcher?.remove(reader);
      this.#held.dropWaiting(reader);
    }
    const { clock } = this.#settings.host;
    const endMs = clock.monotonic() + GIVE_UP_MS;
    while (readers.some((reader) => this.#held.hasHanded(reader)) && clock.monotonic() < endMs) {
      await new Promise<void>((resolve) => {
        const timer = clock.setTimer(resolve, endMs - clock.monotonic());
        this.#settled = () => {
          clock.clearTimer(timer);
          resolve();
        };
      });
    }
    await this.#commit();
    for (const reader of readers) this.#forget(reader);
    this.#goOn();
  }

  #lost(): void {
    for (const reader of this.#readers.values()) this.#forget(reader);
    this.#goOn();
  }

  #forget(reader: TopicReader): void {
    this.#fetcher?.remove(reader);
    this.#held.drop(reader);
    if (this.#readers.get(reader.partition) === reader) this.#readers.delete(reader.partition);
  }

  #commitSoon(): void {
    const { clock } = this.#settings.host;
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
    if (due.length === 0 || !this.#group) return;
    const isCommitted = await this.#group.commit(due);
    for (const { progress, offset } of due) if (isCommitted) progress.committed(offset);
    if (!isCommitted && !this.#isOver() && this.#readers.size > 0) this.#commitSoon();
  }
}

/** Why a topic cannot be consumed now; undefined when it can. */
async function whyNot(cluster: Cluster, topic: string): Promise<string | undefined> {
  try {
    const info = (await cluster.topics([topic], true)).get(topic)!;
    if (info.state === 'missing') {
      return `Topic ${topic} does not exist. Create it, or correct its name.`;
    }
    return info.state === 'unclear' ? nameOf(info.errorCode) : undefined;
  } catch (error) {
    return textOf(error);
  }
}

import { textOf } from '../../../broker/answers.ts';
import type { Cluster } from './cluster.ts';
import { Code, hasMoved, isUnsure, nameOf, NotSentError } from './errors.ts';
import { murmur2, produceV9 } from './library.ts';

export interface OutRecord {
  readonly topic: string;
  /** Undefined: by the key, as Kafka's own clients do. `any`: one after the other, in runs. */
  readonly partition?: number | 'any';
  readonly key: Buffer | null;
  readonly value: Buffer;
  readonly headers: Map<Buffer, Buffer> | undefined;
  /** Key, value and headers. */
  readonly bytes: number;
}

export type Stored =
  /** The time is the broker's where the topic has LogAppendTime, else -1. */
  | { readonly type: 'stored'; readonly timestampMs: number }
  /** It is not in the log, and trying again would not help. */
  | { readonly type: 'refused'; readonly errorCode: number }
  /** It is not in the log: its time was over before a leader could take it. */
  | { readonly type: 'unsent'; readonly why: string }
  /** It may be in the log. */
  | { readonly type: 'unsure'; readonly why: string; readonly isLost: boolean };

interface SendOptions {
  timeoutMs: number;
  /** Sends again also where a record may be in the log already, so that it may be there twice. */
  insist: boolean;
}

interface Item {
  readonly record: OutRecord;
  readonly insist: boolean;
  readonly settle: (stored: Stored) => void;
  partition: number;
  /** In a batch of its own: together they were too large. */
  isSingle: boolean;
  wasSent: boolean;
  isSettled: boolean;
  why: string;
}

interface Lane {
  readonly nodeId: number;
  queue: Item[];
  isBusy: boolean;
}

/** Below `message.max.bytes` of a broker (1 MiB), which counts a batch as one message. */
const MAX_BATCH_BYTES = 900_000;
const MAX_REQUEST_BYTES = 4_000_000;
const RECORD_OVERHEAD_BYTES = 24;
const RETRY_MS = 100;
/** A topic that was just made is not known to all brokers at once: it is looked for after 0.2, 0.6 and 1.4 s. */
const MAX_MISSES = 4;
const LOOK_AGAIN_MS = 100;
const ACKS_ALL = -1;
/** So many records go to one partition before the next one has its turn. */
const RUN = 256;

/** Sends records to the leaders of their partitions, acknowledged by all replicas in sync. Batches what comes together. */
export class Producer {
  readonly #cluster: Cluster;
  readonly #lanes = new Map<number, Lane>();
  /** By topic: what has no leader yet. Later records of the topic wait behind it. */
  readonly #parked = new Map<string, Item[]>();
  /** How many records of a topic went to any partition: the same one for a while, so that batches are large. */
  readonly #spread = new Map<string, number>();
  #isScheduled = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Calls back once for each record, by its place in the list. */
  send(
    records: readonly OutRecord[],
    { timeoutMs, insist }: SendOptions,
    settled: (index: number, stored: Stored) => void,
  ): void {
    const { clock } = this.#cluster.settings.host;
    let left = records.length;
    const items = records.map((record, i): Item => {
      const item: Item = {
        record,
        insist,
        partition: -1,
        isSingle: false,
        wasSent: false,
        isSettled: false,
        why: 'No leader took it in time.',
        settle: (stored) => {
          if (item.isSettled) return;
          item.isSettled = true;
          left -= 1;
          if (left === 0) clock.clearTimer(timer);
          settled(i, stored);
        },
      };
      return item;
    });
    const timer = clock.setTimer(() => {
      for (const item of items) item.settle(overdue(item));
    }, timeoutMs);
    this.#route(items);
  }

  /** Resolves when all are in the log; rejects with the first that is not. */
  async sendAll(records: readonly OutRecord[], options: SendOptions): Promise<void> {
    if (records.length === 0) return;
    const failed = await new Promise<Stored | undefined>((resolve) => {
      let left = records.length;
      let bad: Stored | undefined;
      this.send(records, options, (_, stored) => {
        left -= 1;
        if (stored.type !== 'stored') bad ??= stored;
        if (left === 0) resolve(bad);
      });
    });
    if (failed) throw new Error(whyOf(failed));
  }

  #route(items: readonly Item[]): void {
    const touched = new Set<string>();
    for (const item of items) {
      const { topic } = item.record;
      if (this.#parked.has(topic) || !this.#place(item)) this.#park(item);
      else touched.add(topic);
    }
    // What is sent next begins with another partition.
    for (const topic of touched) {
      const count = this.#spread.get(topic);
      if (count !== undefined) this.#spread.set(topic, Math.ceil(count / RUN) * RUN);
    }
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // What is sent in one turn of the event loop goes in one request.
    this.#cluster.settings.host.defer(() => {
      this.#isScheduled = false;
      for (const lane of this.#lanes.values()) void this.#pump(lane);
    });
  }

  /** Into the queue of its leader. False: nobody knows it. */
  #place(item: Item): boolean {
    const info = this.#cluster.known(item.record.topic);
    if (info?.state !== 'found' || info.partitions.length === 0) return false;
    if (item.partition < 0) item.partition = this.#partitionOf(item.record, info.partitions.length);
    const leader = info.partitions[item.partition]?.leader;
    if (leader === undefined) return false;
    let lane = this.#lanes.get(leader);
    if (!lane) this.#lanes.set(leader, (lane = { nodeId: leader, queue: [], isBusy: false }));
    lane.queue.push(item);
    return true;
  }

  #partitionOf({ topic, partition, key }: OutRecord, count: number): number {
    if (typeof partition === 'number') return partition;
    if (key === null || partition === 'any') {
      const before = this.#spread.get(topic) ?? 0;
      this.#spread.set(topic, before + 1);
      return Math.floor(before / RUN) % count;
    }
    return (murmur2(key) & 0x7fffffff) % count;
  }

  #park(item: Item): void {
    const { topic } = item.record;
    const parked = this.#parked.get(topic);
    if (parked) return void parked.push(item);
    this.#parked.set(topic, [item]);
    void this.#findLeaders(topic);
  }

  async #findLeaders(topic: string): Promise<void> {
    let misses = 0;
    for (;;) {
      const waiting = this.#parked.get(topic)!.filter(({ isSettled }) => !isSettled);
      this.#parked.set(topic, waiting);
      if (waiting.length === 0 || this.#cluster.isClosed) break;
      const { state, why, errorCode } = await this.#look(topic);
      misses = state === 'missing' ? misses + 1 : 0;
      const isOver = misses === MAX_MISSES || errorCode === Code.invalidTopic;
      const list = this.#parked.get(topic)!;
      for (const item of list) {
        item.why = why;
        if (isOver) item.settle({ type: 'refused', errorCode: errorCode || Code.unknownTopic });
      }
      if (isOver) break;
      if (state === 'found' && list.every((item) => this.#hasLeader(item))) {
        this.#parked.delete(topic);
        return this.#route(list);
      }
      await this.#pause(misses > 0 ? LOOK_AGAIN_MS * 2 ** misses : RETRY_MS);
    }
    for (const item of this.#parked.get(topic) ?? []) item.settle(overdue(item));
    this.#parked.delete(topic);
  }

  async #look(topic: string): Promise<{ state: string; why: string; errorCode: number }> {
    try {
      const info = (await this.#cluster.topics([topic], true)).get(topic)!;
      const errorCode = info.state === 'unclear' ? info.errorCode : 0;
      if (info.state !== 'unclear') return { state: info.state, why: NO_LEADER, errorCode };
      return { state: info.state, why: nameOf(errorCode), errorCode };
    } catch (error) {
      return { state: 'away', why: textOf(error), errorCode: 0 };
    }
  }

  #hasLeader({ partition, record }: Item): boolean {
    const info = this.#cluster.known(record.topic);
    if (info?.state !== 'found') return false;
    const wanted =
      partition < 0 ? info.partitions : info.partitions.slice(partition, partition + 1);
    return wanted.every(({ leader }) => leader !== undefined);
  }

  async #pump(lane: Lane): Promise<void> {
    if (lane.isBusy) return;
    lane.isBusy = true;
    for (;;) {
      const batch = takeBatch(lane);
      if (batch.length === 0) break;
      await this.#sendBatch(lane.nodeId, batch);
    }
    lane.isBusy = false;
  }

  async #sendBatch(nodeId: number, batch: readonly Item[]): Promise<void> {
    const messages = batch.map((item) => {
      item.wasSent = true;
      const { topic, key, value, headers } = item.record;
      return {
        topic,
        partition: item.partition,
        value,
        ...(key && { key }),
        ...(headers && { headers }),
      };
    });
    const timeoutMs = this.#cluster.settings.connection.requestTimeout! - 1000;
    const again: Item[] = [];
    try {
      const response = await this.#cluster.call(
        'produce',
        nodeId,
        produceV9.api,
        ACKS_ALL,
        Math.max(timeoutMs, 500),
        messages,
        {},
      );
      if (typeof response === 'boolean') return;
      const byPartition = Map.groupBy(batch, (item) => `${item.partition} ${item.record.topic}`);
      for (const { name, partitionResponses } of response.responses) {
        for (const { index, errorCode, logAppendTimeMs } of partitionResponses) {
          const items = byPartition.get(`${index} ${name}`) ?? [];
          this.#answered(items, errorCode, Number(logAppendTimeMs), again);
        }
      }
    } catch (error) {
      const isUnsent = error instanceof NotSentError;
      const why = textOf(error);
      for (const item of batch) {
        if (isUnsent) item.wasSent = false;
        if (isUnsent || item.insist) again.push(withWhy(item, why));
        else item.settle({ type: 'unsure', why, isLost: true });
      }
    }
    for (const item of again) if (!item.isSettled) this.#park(item);
  }

  #answered(items: readonly Item[], errorCode: number, timestampMs: number, again: Item[]): void {
    if (errorCode === Code.none) {
      for (const item of items) item.settle({ type: 'stored', timestampMs });
      return;
    }
    const isTooLarge = errorCode === Code.messageTooLarge || errorCode === Code.recordListTooLarge;
    const isUnwritten =
      hasMoved(errorCode) ||
      errorCode === Code.unknownTopic ||
      errorCode === Code.notEnoughReplicas ||
      (isTooLarge && items.length > 1);
    for (const item of items) {
      if (isUnwritten || isUnsure(errorCode)) item.wasSent = !isUnwritten;
      if (isTooLarge) item.isSingle = true;
      if (isUnwritten || (isUnsure(errorCode) && item.insist)) {
        again.push(withWhy(item, nameOf(errorCode)));
      } else if (isUnsure(errorCode)) {
        item.settle({ type: 'unsure', why: nameOf(errorCode), isLost: false });
      } else {
        item.settle({ type: 'refused', errorCode });
      }
    }
  }

  #pause(ms: number): Promise<void> {
    const { clock } = this.#cluster.settings.host;
    return new Promise((resolve) => {
      clock.setTimer(resolve, ms, true);
    });
  }
}

const NO_LEADER = 'The partition has no leader now.';

function whyOf(stored: Stored): string {
  switch (stored.type) {
    case 'stored':
      return '';
    case 'refused':
      return nameOf(stored.errorCode);
    case 'unsent':
    case 'unsure':
      return stored.why;
  }
}

function overdue({ wasSent, why }: Item): Stored {
  return wasSent
    ? { type: 'unsure', why: 'No broker confirmed it in time.', isLost: false }
    : { type: 'unsent', why };
}

function withWhy(item: Item, why: string): Item {
  item.why = why;
  return item;
}

/** As many from the front of the queue as fit in one request. */
function takeBatch(lane: Lane): Item[] {
  const sizes = new Map<string, number>();
  let total = 0;
  let taken = 0;
  for (const item of lane.queue) {
    const { record, partition, isSingle, isSettled } = item;
    const bytes = record.bytes + RECORD_OVERHEAD_BYTES;
    const key = `${partition} ${record.topic}`;
    const size = sizes.get(key) ?? 0;
    const isFull = size > 0 && (isSingle || size + bytes > MAX_BATCH_BYTES);
    if (!isSettled && (isFull || (total > 0 && total + bytes > MAX_REQUEST_BYTES))) break;
    taken += 1;
    if (isSettled) continue;
    // Nothing may follow a single one in its batch.
    sizes.set(key, isSingle ? MAX_BATCH_BYTES : size + bytes);
    total += bytes;
  }
  return lane.queue.splice(0, taken).filter(({ isSettled }) => !isSettled);
}

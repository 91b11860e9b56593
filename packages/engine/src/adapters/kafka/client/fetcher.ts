import type * as Kafka from '@platformatic/kafka';
import { textOf } from '../../../broker/answers.ts';
import type { Cluster, Purpose } from './cluster.ts';
import { Code } from './errors.ts';
import { type FetchedRecord, readBatches } from './record-batches.ts';
import { fetchV12, listOffsetsV7 } from './library.ts';

type FetchResponse = Kafka.fetchV12.FetchResponse;

/** A partition that is read, and whoever reads it. */
export interface FetchTarget {
  readonly topic: string;
  readonly partition: number;
  /** The offset to read from. */
  readonly next: number;
  readonly maxBytes: number;
  /** Whether it takes records now. What was asked for before comes all the same. */
  wants(): boolean;
  /** Records in the order of their offsets, and where to go on. */
  take(records: readonly FetchedRecord[], next: number): void;
  /** The log does not have the offset any more: it begins here. */
  restart(offset: number): void;
}

const MAX_WAIT_MS = 250;
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
const RETRY_MS = 100;
const READ_COMMITTED = 1;
const EARLIEST = -2n;

/** Reads partitions from their leaders, one request under way for each broker. */
export class Fetcher {
  readonly #cluster: Cluster;
  readonly #purpose: Purpose;
  readonly #targets = new Set<FetchTarget>();
  readonly #busy = new Set<number>();
  #retry: unknown;
  #isStopped = false;
  #saidWhy = '';

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#purpose = cluster.purpose('fetch');
  }

  add(target: FetchTarget): void {
    this.#targets.add(target);
    this.wake();
  }

  /** What is on its way for it is dropped. */
  remove(target: FetchTarget): void {
    this.#targets.delete(target);
  }

  stop(): void {
    this.#isStopped = true;
    this.#targets.clear();
    this.#cluster.settings.host.clock.clearTimer(this.#retry);
    void this.#cluster.release(this.#purpose);
  }

  /** Some partition may take records again. */
  wake(): void {
    if (this.#isStopped) return;
    const byLeader = new Map<number, FetchTarget[]>();
    let isLeaderless = false;
    for (const target of this.#targets) {
      if (!target.wants()) continue;
      const leader = this.#cluster.leaderOf(target.topic, target.partition);
      if (leader === undefined) isLeaderless = true;
      else if (!this.#busy.has(leader)) {
        const list = byLeader.get(leader);
        if (list) list.push(target);
        else byLeader.set(leader, [target]);
      }
    }
    for (const [leader, targets] of byLeader) void this.#fetch(leader, targets);
    if (isLeaderless) this.#retryLater();
  }

  async #fetch(nodeId: number, targets: readonly FetchTarget[]): Promise<void> {
    this.#busy.add(nodeId);
    let isWell = true;
    try {
      const response = await this.#request(nodeId, targets);
      if (!this.#isStopped) isWell = await this.#received(response, targets);
      this.#saidWhy = '';
    } catch (error) {
      isWell = false;
      const why = textOf(error);
      // Once per cause: the rest is repetition.
      if (why !== this.#saidWhy && !this.#isStopped) {
        this.#cluster.settings.host.log.warn({ nodeId, why }, 'Kafka: cannot read, trying again');
      }
      this.#saidWhy = why;
    }
    this.#busy.delete(nodeId);
    if (isWell) this.wake();
    else this.#retryLater();
  }

  #request(nodeId: number, targets: readonly FetchTarget[]): Promise<FetchResponse> {
    const byTopic = Map.groupBy(targets, ({ topic }) => topic);
    // The library calls it an id: of this version it is the name.
    const topics = Array.from(byTopic, ([topicId, list]) => ({
      topicId,
      partitions: list.map(({ partition, next, maxBytes }) => ({
        partition,
        currentLeaderEpoch: -1,
        fetchOffset: BigInt(next),
        lastFetchedEpoch: -1,
        partitionMaxBytes: maxBytes,
      })),
    }));
    return this.#cluster.call(
      this.#purpose,
      nodeId,
      fetchV12.api,
      MAX_WAIT_MS,
      1,
      MAX_RESPONSE_BYTES,
      READ_COMMITTED,
      0,
      -1,
      topics,
      [],
      '',
    );
  }

  /** False: some partition has to be looked for again. */
  async #received(response: FetchResponse, targets: readonly FetchTarget[]): Promise<boolean> {
    let isWell = true;
    const byName = new Map(targets.map((one) => [`${one.partition} ${one.topic}`, one]));
    for (const { topicId, partitions } of response.responses) {
      for (const { partitionIndex, errorCode, records, abortedTransactions } of partitions) {
        const target = byName.get(`${partitionIndex} ${topicId}`);
        if (!target || !this.#targets.has(target)) continue;
        if (errorCode === Code.offsetOutOfRange) {
          await this.#restart(target);
        } else if (errorCode !== Code.none) {
          isWell = false;
        } else if (records && records.length > 0) {
          const { list, next } = readBatches(records, abortedTransactions ?? [], target.next);
          target.take(list, next);
        }
      }
    }
    return isWell;
  }

  /** From the beginning of the log, whatever was missed: nothing is skipped. */
  async #restart(target: FetchTarget): Promise<void> {
    const { topic, partition, next } = target;
    const offset = await earliestOffset(this.#cluster, topic, partition);
    if (offset === undefined || !this.#targets.has(target)) return;
    const { log } = this.#cluster.settings.host;
    log.warn(
      { topic, partition, next, offset },
      'Kafka: the log does not have the offset any more',
    );
    target.restart(offset);
  }

  #retryLater(): void {
    const { clock } = this.#cluster.settings.host;
    clock.clearTimer(this.#retry);
    this.#retry = clock.setTimer(() => void this.#findLeaders(), RETRY_MS);
  }

  async #findLeaders(): Promise<void> {
    const topics = new Set(Array.from(this.#targets, ({ topic }) => topic));
    try {
      if (topics.size > 0) await this.#cluster.topics([...topics], true);
    } catch {
      // No broker answers. The next fetch says why.
      return this.#retryLater();
    }
    this.wake();
  }
}

/** Where the log of a partition begins; undefined when its leader does not say. */
export async function earliestOffset(
  cluster: Cluster,
  topic: string,
  partition: number,
): Promise<number | undefined> {
  return offsetAt(cluster, topic, partition, EARLIEST);
}

async function offsetAt(
  cluster: Cluster,
  topic: string,
  partition: number,
  timestamp: bigint,
): Promise<number | undefined> {
  const leader = cluster.leaderOf(topic, partition);
  if (leader === undefined) return undefined;
  const partitions = [{ partitionIndex: partition, currentLeaderEpoch: -1, timestamp }];
  const topics = [{ name: topic, partitions }];
  const { topics: answers } = await cluster.call(
    'control',
    leader,
    listOffsetsV7.api,
    -1,
    READ_COMMITTED,
    topics,
  );
  const answer = answers[0]?.partitions[0];
  return answer?.errorCode === Code.none ? Number(answer.offset) : undefined;
}

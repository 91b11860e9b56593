import type * as Kafka from '@platformatic/kafka';
import { textOf } from '../../../broker/answers.ts';
import { assign } from './assignor.ts';
import { type Cluster, type Purpose, REBALANCE_TIMEOUT_MS } from './cluster.ts';
import { Code, isCoordinatorAway, KafkaError } from './errors.ts';
import { earliestOffset } from './fetcher.ts';
import {
  assignmentIn,
  claimIn,
  difference,
  encodedShares,
  subscription,
} from './group-messages.ts';
import {
  type CommitOffset,
  commitOffsets,
  committedOffsets,
  type TopicPartition,
} from './offsets.ts';
import {
  findCoordinatorV4,
  heartbeatV4,
  joinGroupV7,
  leaveGroupV4,
  syncGroupV5,
} from './library.ts';

type JoinGroupResponse = Kafka.joinGroupV7.JoinGroupResponse;

export interface Assigned extends TopicPartition {
  /** Where to begin: what was committed last, or the beginning of the log. */
  readonly start: number;
}

interface GroupEvents {
  /** They are this member's from now on. */
  assigned(partitions: readonly Assigned[]): void;
  /** Give them up. They are still this member's until the promise resolves. */
  revoked(partitions: readonly TopicPartition[]): Promise<void>;
  /** All of them are gone already: others may have them. */
  lost(why: string): void;
}

const PROTOCOL_TYPE = 'consumer';
/** Of our own: other consumers, which share partitions out in another way, are refused by the group. */
const PROTOCOL = 'redrive-sticky';
const RETRY_MS = 200;
const SHORT_MS = 5000;
const LOOK_FOR_PARTITIONS_MS = 60_000;
const KEY_TYPE_GROUP = 0;
/** The answer to a sign of life tells of members that came and went. */
const MAX_BEAT_MS = 1000;

/** A member of a consumer group: it joins, shows signs of life, and joins again until it is stopped. */
export class Group {
  readonly #cluster: Cluster;
  readonly #groupId: string;
  readonly #topics: readonly string[];
  readonly #events: GroupEvents;
  readonly #purpose: Purpose;
  #owned = new Map<string, number[]>();
  #memberId = '';
  #generation = -1;
  #coordinator: number | undefined;
  /** When the last sign of life was sent that was answered well. */
  #aliveAtMs = -Infinity;
  #isJoining = false;
  /** For an id. */
  #asking: Promise<unknown> | undefined;
  #isStopped = false;
  #isStarted = false;
  #wakeUp: () => void = () => {};
  #partitionCounts = '';
  #looksAtMs = 0;

  constructor(cluster: Cluster, groupId: string, topics: readonly string[], events: GroupEvents) {
    this.#cluster = cluster;
    this.#purpose = cluster.purpose('join');
    this.#groupId = groupId;
    this.#topics = topics;
    this.#events = events;
  }

  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.#run();
  }

  /** Whether its partitions are surely its own: by the local clock, from before its last sign of life was sent. */
  get isAlive(): boolean {
    if (this.#generation < 0) return false;
    const { host, sessionTimeoutMs } = this.#cluster.settings;
    return this.#isJoining || host.clock.monotonic() - this.#aliveAtMs < sessionTimeoutMs;
  }

  /** Leaves the group, after what the caller has committed. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.abandon();
    // The group waits for everybody to whom it has given an id: it has to be known to be given back.
    await this.#asking?.catch(() => undefined);
    if (this.#memberId !== '' && this.#coordinator !== undefined && !this.#cluster.isClosed) {
      const members = [{ memberId: this.#memberId }];
      await this.#cluster
        .call('control', this.#coordinator, leaveGroupV4.api, this.#groupId, members)
        // Then the others wait until its session is over.
        .catch(() => undefined);
    }
    await this.#cluster.release(this.#purpose);
  }

  /** Ends it without a word to the group. */
  abandon(): void {
    this.#isStopped = true;
    this.#wakeUp();
  }

  /** True: durable. False: not now, or never since the partitions are gone. */
  async commit(offsets: readonly CommitOffset[]): Promise<boolean> {
    const coordinator = this.#coordinator;
    if (coordinator === undefined || this.#generation < 0) return false;
    const membership = {
      groupId: this.#groupId,
      generation: this.#generation,
      memberId: this.#memberId,
    };
    try {
      const code = await commitOffsets(this.#cluster, coordinator, membership, offsets);
      if (code !== Code.none) this.#refused(code, membership.generation);
      return code === Code.none;
    } catch {
      // The same offsets are committed with the next ones.
      return false;
    }
  }

  #refused(code: number, generation: number): void {
    if (generation !== this.#generation) return;
    if (isCoordinatorAway(code)) this.#coordinator = undefined;
    if (code === Code.illegalGeneration || code === Code.unknownMember) this.#lose('fenced');
  }

  async #run(): Promise<void> {
    const { log, clock } = this.#cluster.settings.host;
    let [saidWhy, outSinceMs] = ['', clock.monotonic()];
    while (!this.#isStopped) {
      try {
        await this.#joinOnce();
        saidWhy = '';
        await this.#stay();
        outSinceMs = clock.monotonic();
      } catch (error) {
        const why = textOf(error);
        // A group that is new, or whose coordinator moves, takes a moment.
        const isLong = clock.monotonic() - outSinceMs > SHORT_MS;
        if (!this.#isStopped && isLong && why !== saidWhy) {
          log.warn({ group: this.#groupId, why }, 'Kafka: not in the group, trying again');
        }
        if (isLong) saidWhy = why;
        this.#coordinator = undefined;
        await this.#pause(RETRY_MS);
      }
      if (this.#generation >= 0 && !this.isAlive)
        this.#lose('no sign of life was answered in time');
    }
  }

  /** One round: joins, gets its partitions, gives up those that it has to. */
  async #joinOnce(): Promise<void> {
    const coordinator = await this.#findCoordinator();
    const joined = await this.#join(coordinator);
    const assignment = await this.#sync(coordinator, joined);
    if (this.#isStopped) return;
    const gone = difference(this.#owned, assignment);
    const added = difference(assignment, this.#owned);
    const generation = this.#generation;
    const starts = added.length > 0 ? await this.#starts(coordinator, added) : [];
    // Another one may have taken its place meanwhile.
    if (this.#isStopped || generation !== this.#generation) return;
    this.#owned = assignment;
    if (starts.length > 0) this.#events.assigned(starts);
    if (gone.length === 0) return;
    await this.#giveUp(gone);
  }

  /** Signs of life go on meanwhile. Then it joins again, so that others get what it gave up. */
  async #giveUp(gone: readonly TopicPartition[]): Promise<void> {
    const giving = { isOver: false };
    void this.#events.revoked(gone).then(() => {
      giving.isOver = true;
      this.#wakeUp();
    });
    while (!giving.isOver && !this.#isStopped && this.#generation >= 0) {
      await this.#pause(this.#beatMs);
      if (!giving.isOver) await this.#beat();
    }
    if (!this.#isStopped) await this.#joinOnce();
  }

  async #findCoordinator(): Promise<number> {
    // The brokers have to be known, and the topics with their leaders.
    await this.#cluster.topics(this.#topics);
    const { coordinators } = await this.#cluster.callAny(findCoordinatorV4.api, KEY_TYPE_GROUP, [
      this.#groupId,
    ]);
    const { errorCode, nodeId } = coordinators[0]!;
    if (errorCode !== Code.none) throw new KafkaError(errorCode, 'finding the coordinator');
    this.#coordinator = nodeId;
    return nodeId;
  }

  async #join(coordinator: number): Promise<JoinGroupResponse> {
    if (this.#isStopped) throw new Error('stopped');
    const { host, sessionTimeoutMs } = this.#cluster.settings;
    const sentAtMs = host.clock.monotonic();
    this.#isJoining = this.#generation >= 0;
    try {
      const metadata = subscription(this.#topics, this.#owned, this.#generation);
      const asking = this.#cluster.call(
        this.#purpose,
        coordinator,
        joinGroupV7.api,
        this.#groupId,
        sessionTimeoutMs,
        REBALANCE_TIMEOUT_MS,
        this.#memberId,
        null,
        PROTOCOL_TYPE,
        [{ name: PROTOCOL, metadata }],
      );
      if (this.#memberId === '') this.#asking = asking;
      const response = await asking;
      this.#asking = undefined;
      const { errorCode, memberId, generationId } = response;
      if (errorCode === Code.memberIdRequired) {
        this.#memberId = memberId;
        return await this.#join(coordinator);
      }
      if (errorCode === Code.unknownMember) this.#lose('the group does not know it any more');
      if (errorCode !== Code.none) throw new KafkaError(errorCode, 'joining the group');
      this.#memberId = memberId;
      this.#generation = generationId;
      this.#aliveAtMs = Math.max(sentAtMs, host.clock.monotonic() - sessionTimeoutMs / 2);
      return response;
    } finally {
      this.#isJoining = false;
    }
  }

  async #sync(coordinator: number, joined: JoinGroupResponse): Promise<Map<string, number[]>> {
    const isLeader = joined.leader === joined.memberId;
    const assignments = isLeader ? await this.#shareOut(joined) : [];
    const sentAtMs = this.#cluster.settings.host.clock.monotonic();
    const { errorCode, assignment } = await this.#cluster.call(
      this.#purpose,
      coordinator,
      syncGroupV5.api,
      this.#groupId,
      this.#generation,
      this.#memberId,
      null,
      PROTOCOL_TYPE,
      PROTOCOL,
      assignments,
    );
    if (errorCode === Code.unknownMember || errorCode === Code.illegalGeneration) {
      this.#lose('the group went on without it');
    }
    if (errorCode !== Code.none) throw new KafkaError(errorCode, 'getting partitions');
    this.#aliveAtMs = sentAtMs;
    return assignmentIn(assignment);
  }

  async #shareOut({ members }: JoinGroupResponse) {
    const counts = await this.#countPartitions();
    this.#partitionCounts = JSON.stringify([...counts]);
    this.#looksAtMs = this.#cluster.settings.host.clock.monotonic();
    return encodedShares(assign(members.map(claimIn), counts));
  }

  async #countPartitions(): Promise<Map<string, number>> {
    const infos = await this.#cluster.topics(this.#topics, true);
    const found = [...infos].flatMap(([topic, info]): [string, number][] =>
      info.state === 'found' ? [[topic, info.partitions.length]] : [],
    );
    return new Map(found);
  }

  async #starts(coordinator: number, added: readonly TopicPartition[]): Promise<Assigned[]> {
    const all = await committedOffsets(this.#cluster, coordinator, this.#groupId, added);
    const starts: Assigned[] = [];
    for (const { topic, partition, committed } of all) {
      const start = committed ?? (await this.#firstStart(topic, partition));
      starts.push({ topic, partition, start });
    }
    return starts;
  }

  /** Committed at once: a consumer that comes later must not begin anywhere else. */
  async #firstStart(topic: string, partition: number): Promise<number> {
    const offset = await earliestOffset(this.#cluster, topic, partition);
    if (offset === undefined)
      throw new KafkaError(Code.leaderNotAvailable, 'finding the beginning');
    if (!(await this.commit([{ topic, partition, offset }]))) {
      throw new KafkaError(Code.coordinatorNotAvailable, 'committing the beginning');
    }
    return offset;
  }

  /** Shows signs of life until there is a reason to join again. */
  async #stay(): Promise<void> {
    while (!this.#isStopped && this.#generation >= 0) {
      await this.#pause(this.#beatMs);
      if (this.#isStopped || (await this.#beat()) || (await this.#hasNewPartitions())) return;
    }
  }

  get #beatMs(): number {
    return Math.min(this.#cluster.settings.sessionTimeoutMs / 3, MAX_BEAT_MS);
  }

  /** True: it has to join again. */
  async #beat(): Promise<boolean> {
    const { host } = this.#cluster.settings;
    const sentAtMs = host.clock.monotonic();
    const generation = this.#generation;
    try {
      const coordinator = this.#coordinator ?? (await this.#findCoordinator());
      const { errorCode } = await this.#cluster.call(
        'control',
        coordinator,
        heartbeatV4.api,
        this.#groupId,
        generation,
        this.#memberId,
      );
      if (errorCode === Code.none || errorCode === Code.rebalanceInProgress) {
        this.#aliveAtMs = sentAtMs;
      }
      if (errorCode !== Code.none) this.#refused(errorCode, generation);
      return errorCode === Code.rebalanceInProgress;
    } catch {
      this.#coordinator = undefined;
      if (!this.isAlive) this.#lose('no sign of life was answered in time');
      return false;
    }
  }

  /** Somebody may have added partitions: the leader looks now and then. */
  async #hasNewPartitions(): Promise<boolean> {
    const nowMs = this.#cluster.settings.host.clock.monotonic();
    if (this.#partitionCounts === '' || nowMs - this.#looksAtMs < LOOK_FOR_PARTITIONS_MS)
      return false;
    this.#looksAtMs = nowMs;
    const counts = await this.#countPartitions().catch(() => undefined);
    return counts !== undefined && JSON.stringify([...counts]) !== this.#partitionCounts;
  }

  #lose(why: string): void {
    if (this.#generation < 0) return;
    this.#generation = -1;
    this.#memberId = '';
    this.#owned = new Map();
    this.#events.lost(why);
    this.#wakeUp();
  }

  #pause(ms: number): Promise<void> {
    const { clock } = this.#cluster.settings.host;
    return new Promise((resolve) => {
      const timer = clock.setTimer(() => resolve(), ms);
      this.#wakeUp = () => {
        clock.clearTimer(timer);
        resolve();
      };
    });
  }
}

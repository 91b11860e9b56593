/** What a group has committed, at its coordinator. */
import type { Cluster } from './cluster.ts';
import { Code, KafkaError } from './errors.ts';
import { offsetCommitV8, offsetFetchV8 } from './library.ts';

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

export interface CommitOffset extends TopicPartition {
  readonly offset: number;
}

/** Who commits: the coordinator refuses whoever is not in the group any more. */
interface Membership {
  readonly groupId: string;
  readonly generation: number;
  readonly memberId: string;
}

/** The error code of the first that was not committed; 0: all were. */
export async function commitOffsets(
  cluster: Cluster,
  coordinator: number,
  { groupId, generation, memberId }: Membership,
  offsets: readonly CommitOffset[],
): Promise<number> {
  const topics = Array.from(
    Map.groupBy(offsets, ({ topic }) => topic),
    ([name, list]) => ({
      name,
      partitions: list.map(({ partition, offset }) => ({
        partitionIndex: partition,
        committedOffset: BigInt(offset),
        committedLeaderEpoch: -1,
      })),
    }),
  );
  const response = await cluster.call(
    'control',
    coordinator,
    offsetCommitV8.api,
    groupId,
    generation,
    memberId,
    null,
    topics,
  );
  const codes = response.topics.flatMap(({ partitions }) => partitions.map((one) => one.errorCode));
  return codes.find((code) => code !== Code.none) ?? Code.none;
}

/** What was committed last; undefined: nothing ever was. */
export async function committedOffsets(
  cluster: Cluster,
  coordinator: number,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<(TopicPartition & { committed: number | undefined })[]> {
  const topics = Array.from(
    Map.groupBy(partitions, ({ topic }) => topic),
    ([name, list]) => ({ name, partitionIndexes: list.map(({ partition }) => partition) }),
  );
  const groups = [{ groupId, memberEpoch: -1, topics }];
  const response = await cluster.call('control', coordinator, offsetFetchV8.api, groups, true);
  const { errorCode, topics: answers } = response.groups[0]!;
  if (errorCode !== Code.none) throw new KafkaError(errorCode, 'reading committed offsets');
  return answers.flatMap(({ name: topic, partitions: list }) =>
    list.map(({ partitionIndex: partition, committedOffset, errorCode: code }) => {
      if (code !== Code.none) throw new KafkaError(code, 'reading committed offsets');
      const committed = committedOffset >= 0n ? Number(committedOffset) : undefined;
      return { topic, partition, committed };
    }),
  );
}

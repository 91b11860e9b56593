/** What members of a group say to each other, in the format of Kafka's own consumers, so that its tools can read it. Pure. */
import type { assign } from './assignor.ts';
import type { TopicPartition } from './offsets.ts';
import {
  decodeConsumerProtocolAssignment,
  decodeConsumerProtocolSubscription,
  encodeConsumerProtocolAssignment,
  encodeConsumerProtocolSubscription,
} from './library.ts';

type Owned = ReadonlyMap<string, number[]>;

/** What a member wants, and what it has. */
export function subscription(topics: readonly string[], owned: Owned, generation: number): Buffer {
  return encodeConsumerProtocolSubscription({
    version: 2,
    topics: [...topics],
    ownedPartitions: Array.from(owned, ([topic, partitions]) => ({ topic, partitions })),
    generationId: generation,
  });
}

export function claimIn({ memberId, metadata }: { memberId: string; metadata: Buffer }) {
  const { ownedPartitions, generationId } = decodeConsumerProtocolSubscription(metadata);
  const owned = new Map(ownedPartitions.map(({ topic, partitions }) => [topic, partitions]));
  return { memberId, owned, generation: generationId };
}

export function encodedShares(shares: ReturnType<typeof assign>) {
  return Array.from(shares, ([memberId, share]) => ({
    memberId,
    assignment: encodeConsumerProtocolAssignment({
      version: 0,
      assignedPartitions: Array.from(share, ([topic, partitions]) => ({ topic, partitions })),
    }),
  }));
}

export function assignmentIn(bytes: Buffer): Map<string, number[]> {
  const { assignedPartitions } = decodeConsumerProtocolAssignment(bytes);
  return new Map(assignedPartitions.map(({ topic, partitions }) => [topic, partitions]));
}

/** What the first has and the second has not. */
export function difference(
  from: ReadonlyMap<string, readonly number[]>,
  without: ReadonlyMap<string, readonly number[]>,
): TopicPartition[] {
  return [...from].flatMap(([topic, partitions]) => {
    const others = new Set(without.get(topic));
    return partitions
      .filter((partition) => !others.has(partition))
      .map((partition) => ({ topic, partition }));
  });
}

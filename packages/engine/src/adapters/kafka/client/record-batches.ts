/** What a broker sends, as records. Pure. */
import type { RecordsBatch } from '@platformatic/kafka';

export interface FetchedRecord {
  readonly offset: number;
  readonly timestampMs: number;
  /** It changes with the leader of the partition: records of the same epoch have their times from the same clock. */
  readonly leaderEpoch: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly [Buffer | null, Buffer | null][];
}

const CONTROL_BATCH = 0b10_0000;
const TRANSACTIONAL_BATCH = 0b1_0000;
const APPEND_TIME_BATCH = 0b1000;

type Aborted = readonly { producerId: bigint; firstOffset: bigint }[];

/** The records from an offset on, without markers and without what was rolled back. Pure. */
export function readBatches(
  batches: readonly RecordsBatch[],
  aborted: Aborted,
  from: number,
): { list: FetchedRecord[]; next: number } {
  const list: FetchedRecord[] = [];
  const rollbacks = aborted.toSorted((a, b) => Number(a.firstOffset - b.firstOffset));
  const rolledBack = new Set<bigint>();
  let next = from;
  for (const batch of batches) {
    const first = Number(batch.firstOffset);
    const last = first + batch.lastOffsetDelta;
    while (rollbacks[0] && Number(rollbacks[0].firstOffset) <= last) {
      rolledBack.add(rollbacks.shift()!.producerId);
    }
    if (last + 1 > next) next = last + 1;
    if (batch.attributes & CONTROL_BATCH) {
      rolledBack.delete(batch.producerId);
      continue;
    }
    if (batch.attributes & TRANSACTIONAL_BATCH && rolledBack.has(batch.producerId)) continue;
    const { partitionLeaderEpoch: leaderEpoch } = batch;
    const isAppendTime = (batch.attributes & APPEND_TIME_BATCH) !== 0;
    const base = Number(isAppendTime ? batch.maxTimestamp : batch.firstTimestamp);
    for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
      const offset = first + offsetDelta;
      if (offset < from) continue;
      const timestampMs = isAppendTime ? base : base + Number(timestampDelta);
      list.push({ offset, timestampMs, leaderEpoch, key, value, headers });
    }
  }
  return { list, next };
}

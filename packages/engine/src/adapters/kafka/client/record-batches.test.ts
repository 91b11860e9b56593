import type { RecordsBatch } from '@platformatic/kafka';
import { describe, expect, it } from 'vitest';
import { readBatches } from './record-batches.ts';

const [TRANSACTIONAL, CONTROL, APPEND_TIME] = [0b1_0000, 0b10_0000, 0b1000];

function batch(first: number, count: number, more: Partial<RecordsBatch> = {}): RecordsBatch {
  return {
    firstOffset: BigInt(first),
    length: 0,
    partitionLeaderEpoch: 3,
    magic: 2,
    crc: 0,
    attributes: 0,
    lastOffsetDelta: count - 1,
    firstTimestamp: 1000n,
    maxTimestamp: 2000n,
    producerId: -1n,
    producerEpoch: 0,
    firstSequence: 0,
    records: Array.from({ length: count }, (_, i) => ({
      length: 0,
      attributes: 0,
      timestampDelta: BigInt(i),
      offsetDelta: i,
      key: null,
      value: Buffer.from(`${first + i}`),
      headers: [],
    })),
    ...more,
  };
}

function read(batches: readonly RecordsBatch[], from = 0, aborted: [bigint, bigint][] = []) {
  const list = aborted.map(([producerId, firstOffset]) => ({ producerId, firstOffset }));
  const { list: records, next } = readBatches(batches, list, from);
  return { offsets: records.map(({ offset }) => offset), records, next };
}

describe('readBatches', () => {
  it('leaves out what comes before the offset that was asked for', () => {
    expect(read([batch(0, 5), batch(5, 2)], 3)).toMatchObject({ offsets: [3, 4, 5, 6], next: 7 });
  });

  it('goes past gaps that compaction has left', () => {
    const compacted = batch(10, 5);
    compacted.records = compacted.records.filter(({ offsetDelta }) => offsetDelta === 2);
    expect(read([compacted], 10)).toMatchObject({ offsets: [12], next: 15 });
  });

  it('takes the time of the broker where the topic has it, else that of the record', () => {
    const { records } = read([batch(0, 2), batch(2, 2, { attributes: APPEND_TIME })]);
    expect(records.map(({ timestampMs }) => timestampMs)).toEqual([1000, 1001, 2000, 2000]);
    expect(records[0]?.leaderEpoch).toBe(3);
  });

  it('leaves out markers and what was rolled back, and nothing else', () => {
    const of = (producerId: bigint, control = 0) => ({
      attributes: TRANSACTIONAL | control,
      producerId,
    });
    const batches = [
      batch(0, 2, of(7n)),
      batch(2, 2, of(8n)),
      batch(4, 1, of(7n, CONTROL)),
      batch(5, 2, of(7n)),
      batch(7, 1, of(8n, CONTROL)),
      batch(8, 1),
    ];
    expect(read(batches, 0, [[7n, 0n]])).toMatchObject({ offsets: [2, 3, 5, 6, 8], next: 9 });
  });
});

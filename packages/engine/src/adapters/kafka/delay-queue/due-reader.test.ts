import { expect, it } from 'vitest';
import type { FetchedRecord } from '../client/record-batches.ts';
import { DueReader } from './due-reader.ts';
import { recordOf } from './entry.ts';

function setup() {
  const time = { nowMs: -Infinity };
  const room = { entries: 0, bytes: 0, maxEntries: 2, maxBytes: 1e6 };
  const kit = {
    nowMs: () => time.nowMs,
    // For people: nothing may be handed over by it.
    estimateMs: () => time.nowMs + 60_000,
    changed: () => {},
    setAside: async () => true,
  };
  const reader = new DueReader({ topic: 't', partition: 0, start: 0 }, kit, room);
  return { time, room, reader };
}

function record(offset: number, afterMs: number, more: Partial<FetchedRecord> = {}): FetchedRecord {
  const bytes = { id: Buffer.from(`e${offset}`), key: undefined, payload: Buffer.from('x') };
  const { key, value, headers } = recordOf('t', bytes, { afterMs });
  const rest = { offset, timestampMs: 1000, leaderEpoch: 1, key, value, headers: [...headers!] };
  return { ...rest, ...more };
}

it('takes nothing more while the memory is full, and frees it with the answers', () => {
  const { time, room, reader } = setup();
  reader.take([record(0, 0), record(1, 0)], 2);
  expect([reader.wants(), room.entries]).toEqual([false, 2]);
  time.nowMs = 2000;
  const [first, second] = reader.takeDue(10);
  expect(reader.wants()).toBe(false);
  reader.finish(first!);
  expect([reader.wants(), room.entries, reader.progress.safe]).toEqual([true, 1, 1]);
  reader.lose('gone');
  expect([reader.wants(), room.entries, room.bytes]).toEqual([false, 0, 0]);
  // Too late.
  reader.finish(second!);
  expect([room.entries, reader.progress.safe]).toEqual([0, 1]);
});

it('hands over by the clock of the brokers, or of the leader that appended the entry', () => {
  const { time, reader } = setup();
  reader.take([record(0, 500)], 1);
  expect(reader.takeDue(10)).toEqual([]);
  time.nowMs = 1499;
  expect(reader.takeDue(10)).toEqual([]);
  // A later append of another leader says nothing: its clock may be ahead.
  reader.take([record(1, 500, { timestampMs: 1600, leaderEpoch: 2 })], 2);
  expect(reader.takeDue(10)).toEqual([]);
  time.nowMs = 1500;
  expect(reader.takeDue(10).map(({ offset }) => offset)).toEqual([0]);
  reader.take([record(2, 5000, { timestampMs: 2100, leaderEpoch: 2 })], 3);
  expect(reader.takeDue(10).map(({ offset }) => offset)).toEqual([1]);
});

it('hands over nothing early by the clock of a leader before', () => {
  const { time, reader } = setup();
  reader.take([record(0, 9000, { timestampMs: 5000 })], 1);
  // The clock of the new leader is behind that of the old one.
  reader.take([record(1, 500, { timestampMs: 1600, leaderEpoch: 2 })], 2);
  expect(reader.takeDue(10)).toEqual([]);
  time.nowMs = 2100;
  expect(reader.takeDue(10).map(({ offset }) => offset)).toEqual([1]);
});

it('waits as long as it is told before it hands over once more', () => {
  const { time, reader } = setup();
  reader.take([record(0, 0)], 1);
  const [held] = reader.takeDue(1);
  reader.putBack(held!, 3000);
  time.nowMs = 2999;
  expect(reader.takeDue(1)).toEqual([]);
  time.nowMs = 3000;
  expect(reader.takeDue(1)).toMatchObject([{ redeliveries: 1 }]);
  reader.putBack(held!, 0);
  expect(reader.nextMs).toBe(Infinity);
});

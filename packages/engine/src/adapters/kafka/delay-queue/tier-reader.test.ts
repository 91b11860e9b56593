import { expect, it } from 'vitest';
import type { OutRecord } from '../client/producer.ts';
import type { FetchedRecord } from '../client/record-batches.ts';
import { recordOf } from './entry.ts';
import { TierReader } from './tier-reader.ts';
import { Tiers } from './tiers.ts';

const HOLD_MS = 1000;

function setup(isSetAside = true) {
  const time = { nowMs: 0 };
  const tiers = new Tiers('p', HOLD_MS, 1);
  const sent: { records: readonly OutRecord[]; stored: () => void }[] = [];
  const kit = {
    nowMs: () => time.nowMs,
    estimateMs: () => time.nowMs,
    changed: () => {},
    setAside: async () => isSetAside,
  };
  const send = (records: readonly OutRecord[]) =>
    new Promise<void>((stored) => {
      sent.push({ records, stored });
    });
  const at = { topic: 'p.wait-1', partition: 0, start: 0 };
  const reader = new TierReader(at, kit, { tier: tiers.waits[0]!, tiers, send });
  return { time, reader, sent };
}

function record(offset: number, more: Partial<FetchedRecord> = {}): FetchedRecord {
  const bytes = { id: Buffer.from(`e${offset}`), key: undefined, payload: Buffer.from('x') };
  const { key, value, headers } = recordOf('t', bytes, { afterMs: 1500 });
  const rest = { offset, timestampMs: 0, leaderEpoch: 1, key, value, headers: [...headers!] };
  return { ...rest, ...more };
}

it('is done with an entry only when it is written to the next topic', async () => {
  const { time, reader, sent } = setup();
  reader.take([record(0), record(1)], 2);
  time.nowMs = HOLD_MS;
  const hop = reader.hop();
  expect(sent[0]!.records).toHaveLength(2);
  expect([reader.progress.safe, reader.isBusy]).toEqual([0, true]);
  sent[0]!.stored();
  await hop;
  expect([reader.progress.safe, reader.isBusy]).toEqual([2, false]);
});

it('leaves to others what was not written before its partition was lost', async () => {
  const { time, reader, sent } = setup();
  reader.take([record(0)], 1);
  time.nowMs = HOLD_MS;
  const hop = reader.hop();
  reader.lose('gone');
  sent[0]!.stored();
  await hop;
  expect(reader.progress.safe).toBe(0);
});

it('keeps what it fetched anew while entries of before were written', async () => {
  const { time, reader, sent } = setup();
  reader.take([record(0)], 1);
  time.nowMs = HOLD_MS;
  const hop = reader.hop();
  // The log begins later than what it had: somebody deleted records.
  reader.restart(5);
  reader.take([record(5)], 6);
  sent[0]!.stored();
  await hop;
  expect(reader.nextMs).toBe(HOLD_MS);
  const next = reader.hop();
  sent[1]!.stored();
  await next;
  expect(reader.progress.safe).toBe(6);
});

it.each([
  [true, 1],
  [false, 0],
])('is done with a record of others only when it is kept (%s)', async (isSetAside, safe) => {
  const { reader } = setup(isSetAside);
  reader.take([record(0, { headers: [] })], 1);
  await Promise.resolve();
  await Promise.resolve();
  expect(reader.progress.safe).toBe(safe);
});

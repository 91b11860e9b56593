import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_DELAY_MS } from '../../../ports/delay-queue.ts';
import type { FetchedRecord } from '../client/record-batches.ts';
import { namesOf, onward, readEntry, recordOf } from './entry.ts';

function appended(record: ReturnType<typeof recordOf>, timestampMs: number): FetchedRecord {
  const { key, value, headers } = record;
  return { offset: 0, timestampMs, leaderEpoch: 0, key, value, headers: [...headers!] };
}

const entry = { id: Buffer.from('id'), key: undefined, payload: Buffer.from('payload') };

describe('an entry as a record', () => {
  it('comes back as it was, over any hops', () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 });
    const options = fc.record({
      id: name,
      key: fc.option(name, { nil: undefined }),
      delayMs: fc.integer({ min: 0, max: MAX_DELAY_MS }),
      payload: fc.uint8Array(),
    });
    fc.assert(
      fc.property(options, fc.nat(3), ({ id, key, delayMs, payload }, hops) => {
        const bytes = {
          id: Buffer.from(id),
          key: key === undefined ? undefined : Buffer.from(key),
          payload: Buffer.from(payload),
        };
        let record = appended(recordOf('t', bytes, { afterMs: delayMs }), 1_000_000);
        for (let hop = 0; hop < hops; hop++) {
          const { dueMs } = readEntry(record) as { dueMs: number };
          record = appended(onward('u', record, { atMs: dueMs }), 2_000_000 + hop);
        }
        expect(readEntry(record)).toEqual({ dueMs: 1_000_000 + delayMs, isFirst: hops === 0 });
        expect(namesOf(record)).toEqual({ id, key: key ?? id });
        expect(Uint8Array.from(record.value!)).toEqual(payload);
      }),
    );
  });

  const good = appended(recordOf('t', entry, { afterMs: 5 }), 100);
  const meta = good.headers[0]![1]!;
  const altered = (change: (bytes: Buffer) => void): FetchedRecord => {
    const copy = Buffer.from(meta);
    change(copy);
    return { ...good, headers: [[good.headers[0]![0], copy]] };
  };

  it.each<[string, FetchedRecord]>([
    ['no headers', { ...good, headers: [] }],
    ['a header more', { ...good, headers: [...good.headers, [Buffer.from('a'), null]] }],
    ['another header', { ...good, headers: [[Buffer.from('other'), meta]] }],
    ['a header without a name', { ...good, headers: [[null, meta]] }],
    ['a header that is null', { ...good, headers: [[good.headers[0]![0], null]] }],
    ['a header that is short', { ...good, headers: [[good.headers[0]![0], meta.subarray(0, 9)]] }],
    ['a header that is long', { ...good, headers: [[good.headers[0]![0], Buffer.alloc(2000, 1)]] }],
    ['another version', altered((bytes) => (bytes[0] = 2))],
    ['another kind', altered((bytes) => (bytes[1] = 2))],
    ['a time that is no number', altered((bytes) => bytes.writeDoubleBE(NaN, 2))],
    ['a time too far', altered((bytes) => bytes.writeDoubleBE(MAX_DELAY_MS + 1, 2))],
    ['a time without end', altered((bytes) => bytes.writeDoubleBE(Infinity, 2))],
    ['a delay below 0', altered((bytes) => bytes.writeDoubleBE(-1, 2))],
    ['no id', { ...good, key: null }],
    ['an empty id', { ...good, key: Buffer.alloc(0) }],
    ['a long id', { ...good, key: Buffer.alloc(766, 65) }],
    ['no payload', { ...good, value: null }],
    ['a large payload', { ...good, value: Buffer.alloc(65_537) }],
  ])('is refused with %s', (_, record) => {
    expect(readEntry(record)).toEqual(expect.any(String));
  });
});

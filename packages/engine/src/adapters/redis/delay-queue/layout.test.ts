import { describe, expect, test } from 'vitest';
import { findingsOf } from './findings.ts';
import { contentOf, partsBySlot, readContent, slotOf } from './layout.ts';

describe('the layout of a delay queue in Redis', () => {
  test('spreads ids that are alike over all slots', () => {
    const counts = Array.from({ length: 16 }, () => 0);
    for (let n = 0; n < 16_000; n++) {
      counts[slotOf(`notification-${n >> 4}:device-${n % 16}:1`, 16)]! += 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(800);
    expect(Math.max(...counts)).toBeLessThan(1200);
  });

  test('gives an id the same slot in every release: entries wait there', () => {
    expect(['a', 'notification:device:1', '€'].map((id) => slotOf(id, 16))).toMatchInlineSnapshot(`
      [
        4,
        3,
        11,
      ]
    `);
  });

  test.each([
    ['', undefined],
    ['x', undefined],
    ['x', 'id'],
    ['', 'other'],
    ['payload', '€'.repeat(255)],
  ])('keeps payload %j and key %j', (text, key) => {
    const payload = Buffer.from(text);
    const content = contentOf({ id: 'id', delayMs: 0, payload, ...(key && { key }) });
    const read = readContent('id', content);
    expect(read).toEqual({ key: key ?? 'id', payload: new Uint8Array(payload) });
    content.fill(0);
    expect(read.payload).toEqual(new Uint8Array(payload));
  });

  test('makes parts that no script is held up by', () => {
    const all = Array.from({ length: 1200 }, (_, n) => n);
    const parts = partsBySlot(all, (n) => n % 2);
    expect(parts.map(({ slot, part }) => [slot, part.length])).toEqual([
      [0, 500],
      [1, 500],
      [0, 100],
      [1, 100],
    ]);
    expect(parts.flatMap(({ part }) => part).toSorted((a, b) => a - b)).toEqual(all);
    expect(
      partsBySlot(
        all.slice(0, 20),
        () => 0,
        () => 65_536,
      ).map(({ part }) => part.length),
    ).toEqual([8, 8, 4]);
  });
});

describe('the findings about a Redis server', () => {
  const whatOf = (configuration: Parameters<typeof findingsOf>[1]) =>
    findingsOf('x', configuration).map(({ what }) => what);

  test.each([
    [{ policy: 'noeviction', maxMemory: 100, appendOnly: true, sync: 'always' }, []],
    [{ policy: 'allkeys-lfu', maxMemory: 100 }, ['evicts']],
    [{ policy: 'allkeys-lfu' }, ['evicts']],
    [{ policy: 'allkeys-lfu', maxMemory: 0 }, []],
    [{ policy: 'volatile-lru', maxMemory: 100 }, []],
    [{ appendOnly: false, snapshots: true }, ['snapshots-only']],
    [{ appendOnly: false, snapshots: false }, ['not-persistent']],
    [{ appendOnly: true, sync: 'everysec' }, ['synced-each-second']],
    [{}, []],
  ])('of %o are %j', (configuration, expected) => {
    expect(whatOf(configuration)).toEqual(expected);
  });
});

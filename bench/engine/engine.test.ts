import { describe, expect, it } from 'vitest';
import { BATCH, batchesOf, dueTimes, timed, workOf } from './player.ts';
import { arrayOf } from './players/binary-array.ts';
import { uuidBytes } from './players/uuid.ts';
import { Tally } from './tally.ts';
import { figureOf, percentile, spreadOf, takeTurns } from './turns.ts';
import { atLeast, bestPeer, share } from './verdicts.ts';

describe('the work', () => {
  it('has 256 bytes whatever its number and due time', () => {
    for (const work of [workOf(0), workOf(19_999), workOf(7, Date.now())]) {
      expect(Buffer.byteLength(JSON.stringify(work))).toBe(256);
    }
  });

  it('comes in batches of a thousand, none left out', () => {
    const batches = batchesOf(2 * BATCH + 1, (n) => n);
    expect(batches.map(({ length }) => length)).toEqual([BATCH, BATCH, 1]);
    expect(batches.flat().at(-1)).toBe(2 * BATCH);
  });

  it('is due evenly over its span', () => {
    const dueAt = dueTimes(3000, 8000);
    expect(dueAt(1500) - dueAt(0)).toBe(4000);
    expect(dueAt(2999) - dueAt(0)).toBe(7997);
  });

  it('is done so many at once, and all of it', async () => {
    let running = 0;
    let most = 0;
    const done: number[] = [];
    const work = async (one: number) => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      running -= 1;
      done.push(one);
    };
    await timed([1, 2, 3, 4, 5], work, 2);
    expect(most).toBe(2);
    expect(done.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('Tally', () => {
  it('is content when each task was done once', async () => {
    const tally = new Tally(3);
    for (const n of [2, 0, 1]) tally.did(workOf(n));
    await expect(tally.all).resolves.toBeUndefined();
  });

  it('objects to a task that was done twice in place of another', async () => {
    const tally = new Tally(3);
    for (const n of [0, 1, 1]) tally.did(workOf(n));
    await expect(tally.all).rejects.toThrow('something else was done');
  });
});

describe('takeTurns', () => {
  it('lets everybody have a turn in every round, and begins each round with another one', async () => {
    let order = '';
    const results = await takeTurns(['a', 'b', 'c'], 3, (name, round) => {
      order += name;
      return Promise.resolve(`${name}${round}`);
    });
    expect(order).toBe('abcbcacab');
    expect(results).toEqual({
      a: ['a0', 'a1', 'a2'],
      b: ['b0', 'b1', 'b2'],
      c: ['c0', 'c1', 'c2'],
    });
  });
});

describe('figures', () => {
  it('are the median, and how far a round usually was from it', () => {
    expect(figureOf([90, 100, 150])).toEqual({ median: 100, spread: 0.1 });
  });

  it('have no spread where there was one round only', () => {
    expect(figureOf([100])).toEqual({ median: 100 });
    expect(spreadOf([['a', figureOf([100])] as const])).toEqual({});
  });

  it('know the value that 99 of 100 stay below', () => {
    const values = Array.from({ length: 200 }, (_, i) => i);
    expect(percentile(values, 0.99)).toBe(198);
    expect(percentile([5], 0.99)).toBe(5);
  });
});

describe('verdicts', () => {
  const peers = { 'redrive-audit': 900, raw: 1000, 'pg-boss': 40, bullmq: 60 };

  it('compare with the best of the others, not with a limit or with ourselves', () => {
    expect(bestPeer({ metric: 'ops/s', redrive: 100, peers })).toBe('bullmq');
    expect(bestPeer({ metric: 'ms', redrive: 100, peers })).toBe('pg-boss');
  });

  it('are met from the target on', () => {
    expect(atLeast(1.5, 150, 100, 'so much')).toMatchObject({ met: true, measured: '1.50 ×' });
    expect(atLeast(1.5, 149, 100, 'so much')).toMatchObject({ met: false });
    expect(share(0.7, 69, 100, 'raw')).toMatchObject({ met: false, measured: '69 %' });
  });
});

describe('what raw sends', () => {
  it('is an array in the form of the server', () => {
    const array = arrayOf('bytea', [Buffer.from('ab'), Buffer.alloc(0)]);
    expect(array.toString('hex')).toBe(
      '0000000100000000000000110000000200000001' + hexOf(2, 'ab') + hexOf(0, ''),
    );
  });

  it('has ids that are UUIDs of version 7, each another one', () => {
    const ids = Array.from({ length: 3000 }, () => uuidBytes().toString('hex'));
    expect(new Set(ids).size).toBe(3000);
    for (const id of ids) expect(id).toMatch(/^.{12}7.{3}[89ab].{15}$/);
  });
});

function hexOf(length: number, text: string): string {
  return length.toString(16).padStart(8, '0') + Buffer.from(text).toString('hex');
}

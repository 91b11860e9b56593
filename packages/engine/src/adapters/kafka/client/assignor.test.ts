import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assign } from './assignor.ts';

type MemberClaim = Parameters<typeof assign>[0][number];
type Shares = ReturnType<typeof assign>;

function member(memberId: string, owned: Record<string, number[]> = {}, generation = 1) {
  return { memberId, owned: new Map(Object.entries(owned)), generation } satisfies MemberClaim;
}

function plain(shares: Shares): Record<string, Record<string, number[]>> {
  return Object.fromEntries(Array.from(shares, ([id, share]) => [id, Object.fromEntries(share)]));
}

describe('assign', () => {
  it('gives all partitions to the only member', () => {
    expect(plain(assign([member('a')], new Map([['t', 3]])))).toEqual({ a: { t: [0, 1, 2] } });
  });

  it('gives no partition away that another member still holds', () => {
    const members = [member('a', { t: [0, 1, 2, 3] }), member('b')];
    expect(plain(assign(members, new Map([['t', 4]])))).toEqual({ a: { t: [0, 1] }, b: {} });
  });

  it('gives them in the next round to the member that has the room', () => {
    const members = [member('a', { t: [0, 1] }), member('b')];
    expect(plain(assign(members, new Map([['t', 4]])))).toEqual({
      a: { t: [0, 1] },
      b: { t: [2, 3] },
    });
  });

  it('believes the later of two claims', () => {
    const members = [member('a', { t: [0, 1] }, 3), member('b', { t: [0, 1] }, 7)];
    expect(plain(assign(members, new Map([['t', 2]])))).toEqual({ a: {}, b: { t: [0] } });
  });

  it('shares topics of one partition among members', () => {
    const counts = new Map(['t', 'u', 'v', 'w'].map((topic) => [topic, 1]));
    const sizes = Array.from(
      assign([member('a'), member('b')], counts).values(),
      ({ size }) => size,
    );
    expect(sizes).toEqual([2, 2]);
  });

  it('ends with every partition at one member, evenly, whatever was held before', () => {
    const owned = fc.dictionary(
      fc.constantFrom('t', 'u'),
      fc.uniqueArray(fc.nat(9), { maxLength: 8 }),
    );
    const claims = fc.array(fc.tuple(owned, fc.nat(3)), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(claims, fc.integer({ min: 1, max: 8 }), (given, count) => {
        const counts = new Map([
          ['t', count],
          ['u', count],
        ]);
        let members = given.map(([one, generation], i) => member(`m${i}`, one, generation));
        for (let round = 0; round < 3; round++) {
          const shares = assign(members, counts);
          const all = [...shares.values()].flatMap((share) =>
            [...share].flatMap(([topic, list]) => list.map((one) => `${topic}${one}`)),
          );
          expect(new Set(all).size).toBe(all.length);
          // Nobody gets what another one holds and has not given up.
          for (const [memberId, share] of shares) {
            for (const [topic, list] of share) {
              for (const one of list) {
                const best = members.filter(({ owned: held }) => held.get(topic)?.includes(one));
                const latest = Math.max(...best.map(({ generation }) => generation));
                const holders = best.filter(({ generation }) => generation === latest);
                const isFree = best.length === 0;
                expect(isFree || holders.some((m) => m.memberId === memberId)).toBe(true);
              }
            }
          }
          members = members.map(({ memberId }) => ({
            memberId,
            owned: shares.get(memberId)!,
            generation: 10 + round,
          }));
        }
        for (const topic of ['t', 'u']) {
          const sizes = members.map(({ owned: held }) => held.get(topic)?.length ?? 0);
          expect(sizes.reduce((a, b) => a + b)).toBe(count);
          expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});

/** Who of a group gets which partitions. Pure. */

interface MemberClaim {
  readonly memberId: string;
  /** What it holds at present, by topic, and since which generation it says so. */
  readonly owned: ReadonlyMap<string, readonly number[]>;
  readonly generation: number;
}

type Shares = Map<string, Map<string, number[]>>;

/**
 * Shares out the partitions of each topic evenly, and leaves them where they are as far as that allows. One that is to move
 * stays without a member for this round: its holder gives it up first, and joins again. So no two members ever hold the
 * same partition.
 */
export function assign(
  members: readonly MemberClaim[],
  partitionCounts: ReadonlyMap<string, number>,
): Shares {
  const sorted = members.toSorted((a, b) => (a.memberId < b.memberId ? -1 : 1));
  const shares: Shares = new Map(sorted.map(({ memberId }) => [memberId, new Map()]));
  const totals = new Map(sorted.map(({ memberId }) => [memberId, 0]));
  for (const [topic, count] of partitionCounts) {
    for (const [memberId, { taken, kept }] of shareOut(sorted, totals, topic, count)) {
      totals.set(memberId, totals.get(memberId)! + taken.length + kept);
      if (taken.length > 0) shares.get(memberId)!.set(topic, taken);
    }
  }
  return shares;
}

interface Share {
  readonly taken: number[];
  /** Places for what its holder has to give up first. */
  kept: number;
}

function shareOut(
  members: readonly MemberClaim[],
  totals: ReadonlyMap<string, number>,
  topic: string,
  count: number,
): Map<string, Share> {
  const holders = holdersOf(members, topic, count);
  const quotas = quotasOf(members, holders, totals, count);
  const shares = new Map(
    members.map(({ memberId }) => [memberId, { taken: [] as number[], kept: 0 }]),
  );
  const homeless: number[] = [];
  for (let partition = 0; partition < count; partition++) {
    const holder = holders.get(partition);
    const share = holder === undefined ? undefined : shares.get(holder);
    if (share && share.taken.length < quotas.get(holder!)!) share.taken.push(partition);
    else homeless.push(partition);
  }
  for (const partition of homeless) {
    const taker = members.find(({ memberId }) => {
      const { taken, kept } = shares.get(memberId)!;
      return taken.length + kept < quotas.get(memberId)!;
    });
    const share = shares.get(taker!.memberId)!;
    if (holders.has(partition)) share.kept += 1;
    else share.taken.push(partition);
  }
  return shares;
}

/** Of two who claim the same, the one of the later generation is right: the other one was away for a while. */
function holdersOf(
  members: readonly MemberClaim[],
  topic: string,
  count: number,
): Map<number, string> {
  const claims = new Map<number, MemberClaim>();
  for (const member of members) {
    for (const partition of member.owned.get(topic) ?? []) {
      const rival = claims.get(partition);
      if (partition >= count || (rival && rival.generation >= member.generation)) continue;
      claims.set(partition, member);
    }
  }
  return new Map(Array.from(claims, ([partition, { memberId }]) => [partition, memberId]));
}

/** All the same. One more, for as many as are left over, for those who hold most of it and least in all. */
function quotasOf(
  members: readonly MemberClaim[],
  holders: ReadonlyMap<number, string>,
  totals: ReadonlyMap<string, number>,
  count: number,
): Map<string, number> {
  const held = new Map<string, number>();
  for (const memberId of holders.values()) held.set(memberId, (held.get(memberId) ?? 0) + 1);
  const order = members.toSorted(
    (a, b) =>
      (held.get(b.memberId) ?? 0) - (held.get(a.memberId) ?? 0) ||
      totals.get(a.memberId)! - totals.get(b.memberId)!,
  );
  const [least, rest] = [Math.floor(count / members.length), count % members.length];
  return new Map(order.map(({ memberId }, i) => [memberId, least + (i < rest ? 1 : 0)]));
}

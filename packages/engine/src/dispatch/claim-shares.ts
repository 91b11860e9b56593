/** A lane in which something is due, and how much of it can be started soon. */
export interface WantingLane {
  lane: string;
  limit: number;
  /** The last claim left tasks behind that were due. */
  hasBacklog: boolean;
}

/**
 * How many tasks to claim of each lane, `room` in all. Every lane gets the same share, so that a lane with a hundred
 * thousand tasks takes nothing from the others. But thousands of lanes with a task each must not take everything from a
 * lane with a backlog either: half of the room is for lanes with a backlog, as far as they need it.
 */
export function claimShares(
  wanting: readonly WantingLane[],
  room: number,
): { lane: string; limit: number }[] {
  const deep = wanting.filter(({ hasBacklog }) => hasBacklog);
  const others = wanting.filter(({ hasBacklog }) => !hasBacklog);
  const reserved = Math.min(Math.floor(room / 2), total(deep));
  const share = Math.max(1, Math.floor(room / wanting.length));
  const first = deal(others, share, room - reserved);
  const left = room - total(first);
  return [...deal(deep, Math.max(1, Math.floor(left / deep.length)), left), ...first];
}

/** In the order of the lanes, until the room is used up. */
function deal(lanes: readonly WantingLane[], share: number, room: number) {
  const dealt: { lane: string; limit: number }[] = [];
  let left = room;
  for (const { lane, limit } of lanes) {
    if (left <= 0) break;
    const count = Math.min(limit, share, left);
    dealt.push({ lane, limit: count });
    left -= count;
  }
  return dealt;
}

function total(lanes: readonly { limit: number }[]): number {
  return lanes.reduce((sum, { limit }) => sum + limit, 0);
}

/** Why something may have happened twice: the trouble that was made near it. */
import type { Trouble, TroubleKind } from './journal.ts';

/**
 * `failed twice`: it was delivered twice, and its consumer failed both. `answer late`: the receiver's answer came after the
 * time limit of the delivery, and the service has written that down.
 */
export type Cause = TroubleKind | 'failed twice' | 'answer late';

/** Something that was done, and done again. */
export interface Twice {
  /**
   * What was lost: the confirm or the settle of a publish, the settle of a request, the acknowledgement of what was taken
   * in, that of a consumer; of a message that is no task also the answer to its commit.
   */
  readonly lost: 'publish' | 'settle' | 'intake' | 'consumer' | 'inbox';
  /** When that was, as far as it can be told. */
  readonly fromMs: number;
  readonly toMs: number;
  /** When it was done again: what comes later is no cause. */
  readonly againMs: number;
}

/** Between a delivery and its settle, on a machine that is busy. */
const NEAR_MS = 2000;
/** The longest pause of the service before it asks a database again that was away. */
const PAUSE_MS = 5000;

const ofBroker = ['broker restarted', 'broker killed', 'broker cut', 'confirm lost'] as const;
const ofDatabase = ['database restarted', 'database killed', 'database cut', 'commit cut'] as const;

/** A database that goes away loses neither a confirm nor an acknowledgement, and whoever stops or waits in order loses nothing. */
const causes: Record<Twice['lost'], ReadonlySet<TroubleKind>> = {
  // A broker that takes nothing for longer than a confirm may take is as good as one that lost it.
  publish: new Set(['service killed', 'broker blocked', ...ofBroker]),
  settle: new Set(['service killed']),
  intake: new Set(['service killed', ...ofBroker]),
  consumer: new Set(['broker restarted', 'broker killed']),
  inbox: new Set(['service killed', ...ofBroker, ...ofDatabase]),
};

export interface Found {
  cause: Cause | undefined;
  /** How far the nearest trouble that could be the cause is away. */
  distanceMs: number;
}

export function causeOf(twice: Twice, troubles: readonly Trouble[]): Found {
  let nearest: Found = { cause: undefined, distanceMs: Infinity };
  const lostBy = lastMoment(twice, troubles);
  for (const { what, fromMs, toMs } of troubles) {
    if (!causes[twice.lost].has(what) || fromMs > twice.againMs) continue;
    const distanceMs = Math.max(0, fromMs - lostBy, twice.fromMs - toMs);
    if (distanceMs < nearest.distanceMs) nearest = { cause: what, distanceMs };
  }
  return nearest.distanceMs <= NEAR_MS ? nearest : { ...nearest, cause: undefined };
}

/** What was delivered is not settled while the database is away, nor in the pause after that: until then a kill makes it happen twice. */
function lastMoment({ lost, toMs }: Twice, troubles: readonly Trouble[]): number {
  if (lost !== 'publish' && lost !== 'settle') return toMs;
  let last = toMs;
  const away = troubles.filter(({ what }) => ofDatabase.some((one) => one === what));
  for (const one of away.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const backMs = one.toMs + PAUSE_MS;
    if (one.fromMs <= last + NEAR_MS) last = Math.max(last, backMs);
  }
  return last;
}

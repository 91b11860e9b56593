import { type Result, times, type Verdict } from '../result.ts';

/** The best of those that are somebody else's work: neither Redrive itself nor a limit. */
export function bestPeer({ metric, peers }: Result): string {
  const names = Object.keys(peers).filter((name) => !/^(redrive|raw|alone|none)/.test(name));
  const sign = metric === 'ops/s' ? -1 : 1;
  const [best] = names.toSorted((a, b) => sign * (Number(peers[a]) - Number(peers[b])));
  if (best === undefined) throw new Error('nobody to compare with');
  return best;
}

/** Verdicts on those who took part: of one who is missing there is nothing to say. */
export function among({ peers }: Result, byPeer: Record<string, () => Verdict>): Verdict[] {
  return Object.entries(byPeer).flatMap(([peer, judge]) => (peer in peers ? [judge()] : []));
}

/** A rate that is at least so many times another one. */
export function atLeast(ratio: number, rate: number, than: number, text: string): Verdict {
  const measured = rate / than;
  return { target: `at least ${text}`, measured: times(measured), met: measured >= ratio };
}

export function share(part: number, rate: number, of: number, text: string): Verdict {
  const measured = rate / of;
  return {
    target: `at least ${Math.round(part * 100)} % of ${text}`,
    measured: `${Math.round(measured * 100)} %`,
    met: measured >= part,
  };
}

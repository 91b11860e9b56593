import { idempotent, type IdempotencyStore } from 'redrive';
import type { Contestant } from '../harness.ts';
import { type Result, smallest, times, type Verdict } from '../result.ts';

/** Callers at once, each with a key of its own. */
const CALLERS = 64;

/** What every call comes to: the effect happened once for each of its callers. */
export const EFFECT = 'paid';

/** A crowd of callers whose keys nobody has used before. */
export function crowd(
  name: string,
  once: (key: string) => Promise<unknown>,
  more: Partial<Contestant> = {},
): Contestant {
  let calls = 0;
  return {
    name,
    async call() {
      calls += 1;
      const results = await Promise.all(
        Array.from({ length: CALLERS }, (_, i) => once(`${name}-${process.pid}-${calls}-${i}`)),
      );
      return results.every((result) => result === EFFECT);
    },
    expected: true,
    opsPerCall: CALLERS,
    ...more,
  };
}

export function redriveOn(store: IdempotencyStore): (key: string) => Promise<unknown> {
  return (key) => idempotent(store, key, effect);
}

export async function effect(): Promise<string> {
  return EFFECT;
}

/** At least so much of the bare commands, and faster than every peer. */
export function judged(result: Result, shareOfBare: number): Result {
  const { redrive, peers } = result;
  const { bare = Number.NaN, ...others } = peers;
  const share = bare / redrive;
  const verdicts: Verdict[] = [
    {
      target: `at least ${shareOfBare * 100} % of the bare commands`,
      measured: `${Math.round(share * 100)} %`,
      met: share >= shareOfBare,
    },
  ];
  if (Object.keys(others).length > 0) {
    const best = smallest(others);
    const ratio = (others[best] as number) / redrive;
    verdicts.push({
      target: 'faster than each peer',
      measured: `${times(ratio)} ${best}`,
      met: ratio > 1,
    });
  }
  return { ...result, verdicts };
}

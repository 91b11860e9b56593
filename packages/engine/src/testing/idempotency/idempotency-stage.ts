import type { ClaimAnswer, ClaimRequest, IdempotencyStore, Outcome } from 'redrive';
import type { OpenedIdempotency } from './idempotency-suite.ts';
import type { Until } from '../suite.ts';

/** What a case works with. */
export interface KeyStage extends OpenedIdempotency {
  until: Until;
  /** Claims the key `k` for an owner, for a minute unless told otherwise. */
  claim: (owner: string, request?: Partial<ClaimRequest>) => Promise<ClaimAnswer>;
}

/** So short that a test can wait for its end, and long enough for a few calls of a store in the meantime. */
export const SHORT_MS = 150;
export const LONG_MS = 60_000;

export const value: Outcome = { kind: 'value', text: '{"paid":true}' };

export function leases(store: IdempotencyStore): Pick<KeyStage, 'claim'> {
  return {
    claim: async (owner, request = {}) =>
      store.claim({
        key: 'k',
        owner,
        fingerprint: '',
        leaseMs: LONG_MS,
        takeOver: true,
        ...request,
      }),
  };
}

/** Claims until the answer is of this state. */
export async function claimUntil(
  { until, claim }: KeyStage,
  state: ClaimAnswer['state'],
  owner: string,
  request: Partial<ClaimRequest> = {},
): Promise<ClaimAnswer> {
  let answer!: ClaimAnswer;
  await until(`a claim that is ${state}`, async () => {
    answer = await claim(owner, request);
    return answer.state === state;
  });
  return answer;
}

export function tokenOf(answer: ClaimAnswer): number {
  if (answer.state !== 'claimed') throw new Error(`The key was not claimed: ${answer.state}.`);
  return answer.fencingToken;
}

import { definePolicy } from 'redrive';
import type { Arrival } from '../../moves.ts';
import type { Received } from '../../ports/broker.ts';
import type { Report } from './broker.ts';

export const MAX_ATTEMPTS = 3;

export const policy = definePolicy({
  maxAttempts: MAX_ATTEMPTS,
  // Longer than a lease, now and then.
  base: 200,
  multiplier: 8,
  cap: 10_000,
  jitter: 'full',
  retryOn: ['transient', 'unknown'],
});

/** What a consumer reports, as the service will read it. */
export function read({ headers }: Received): { type: 'arrival'; arrival: Arrival } {
  const { id, queue, count, generation } = headers['report'] as Report;
  const failure = { class: 'transient', code: 'CONSUMER_FAILED' } as const;
  return {
    type: 'arrival',
    arrival: {
      type: 'failure',
      policy,
      ...(count === undefined ? {} : { generation }),
      task: {
        messageId: id,
        destination: { kind: 'queue', address: queue },
        lane: `queue:${queue}`,
        payload: new Uint8Array([1]),
        status: 'pending',
        attempt: (count ?? 0) + 1,
        maxAttempts: MAX_ATTEMPTS,
        uncounted: 0,
        delayMs: 0,
        generation: 0,
        claims: 0,
        arrived: false,
        cancelling: false,
        blocked: false,
        failure,
        due: { inMs: 0 },
      },
    },
  };
}

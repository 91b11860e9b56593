import { definePolicy } from 'redrive';
import type { Reading } from '../../intake/consumer.ts';
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

/** What a consumer reports, as the service reads it. */
export function read({ headers }: Received): Reading {
  const { id, queue, count, generation } = headers['report'] as Report;
  return {
    type: 'failure',
    report: {
      messageId: id,
      to: { kind: 'queue', address: queue },
      payload: new Uint8Array([1]),
      failure: { class: 'transient', code: 'CONSUMER_FAILED' },
      attempt: (count ?? 0) + 1,
      ...(count === undefined ? {} : { generation }),
    },
  };
}

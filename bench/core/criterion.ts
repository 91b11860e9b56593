import { isRetryDelayElapsed } from 'redrive';
import type { Contestant } from '../harness.ts';
import { race } from '../race.ts';
import type { Case } from '../result.ts';

const TARGET = 1e6;

export const criterion: Case = {
  name: 'criterion',
  about:
    'isRetryDelayElapsed for an entity as it comes from the wire: times as text, backoff, jitter',
  async run(effort) {
    let turn = 0;
    const redrive: Contestant = {
      name: 'redrive',
      call() {
        turn = (turn + 1) & 63;
        return isRetryDelayElapsed(entities[turn]).matches;
      },
      expected: true,
      sync: true,
    };
    const result = await race([redrive], effort, 'ops/s');
    const measured = `${(result.redrive / 1e6).toFixed(2)} million/s`;
    return {
      ...result,
      verdicts: [{ target: 'at least 1 million/s', measured, met: result.redrive >= TARGET }],
    };
  },
};

/** Every one of them is due: an hour is longer than their longest delay. */
const entities = Array.from({ length: 64 }, (_, i) => ({
  entityId: `3f0c7a52-7d1e-11f0-8de9-${(0x0242ac120000 + i).toString(16)}`,
  lastAttemptTime: new Date(Date.UTC(2025, 5, 1, 11, i % 60)).toISOString(),
  currentTime: new Date(Date.UTC(2025, 5, 1, 12, i % 60)).toISOString(),
  retryDelaySeconds: 60,
  attemptCount: 1 + (i % 5),
  exponentialBackoff: true,
  backoffMultiplier: 2,
  maxDelaySeconds: 3600,
  jitterEnabled: true,
}));

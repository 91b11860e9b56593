import { classify, decide, definePolicy, type Facts } from 'redrive';
import type { Contestant } from '../harness.ts';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { codedError, plainError } from './work.ts';

const TARGET = 2e6;

export const deciding: Case = {
  name: 'decide',
  about:
    'one decision about a failure that is retried, its jitter derived from seed, key and attempt',
  async run(effort) {
    const result = await race([redrive(), raw()], effort, 'ops/s');
    const measured = `${(result.redrive / 1e6).toFixed(2)} million/s`;
    return {
      ...result,
      verdicts: [
        { target: 'at least 2 million/s on one core', measured, met: result.redrive >= TARGET },
      ],
      notes: [
        'raw: the bare arithmetic of an exponential backoff with Math.random, deciding nothing',
      ],
    };
  },
};

const policy = definePolicy({ maxAttempts: 10, base: '200ms', cap: '30s' });

/** Other attempts, keys and failures each time, or the answer would be worked out only once. */
const questions: Facts[] = Array.from({ length: 64 }, (_, i) => ({
  attempt: 1 + (i % 8),
  failure: classify(i % 2 === 0 ? codedError : plainError),
  seed: 1234567,
  key: `order-${1000 + i * 37}`,
}));

function redrive(): Contestant {
  let turn = 0;
  return {
    name: 'redrive',
    call() {
      turn = (turn + 1) & 63;
      return decide(policy, questions[turn] as Facts).action;
    },
    expected: 'retry',
    sync: true,
  };
}

function raw(): Contestant {
  let turn = 0;
  return {
    name: 'raw',
    call() {
      turn = (turn + 1) & 63;
      const { attempt } = questions[turn] as Facts;
      const delayMs = Math.floor(Math.random() * Math.min(30_000, 200 * 2 ** (attempt - 1)));
      return delayMs < 30_000;
    },
    expected: true,
    sync: true,
  };
}

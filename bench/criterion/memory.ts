import pino from 'pino';
import { systemClock } from 'redrive/internal';
import { createCriteria } from '../../packages/server/src/criteria/index.ts';
import { CriterionCounts } from '../../packages/server/src/observe/metrics/criterion-counts.ts';
import { createMetricSet } from '../../packages/server/src/observe/metrics/registry.ts';
import { readSettings } from '../../packages/server/src/settings/read.ts';
import { collectGarbage } from '../harness.ts';
import type { Case } from '../result.ts';
import { entityOf } from './entities.ts';

const MOST_BYTES = 1024;

export const memory: Case = {
  name: 'memory',
  about: 'heap that is left per evaluation, metrics, last answers and all',
  async run({ memoryCalls }) {
    const reading = await readSettings({ env: {}, cwd: import.meta.dirname });
    if (!reading.ok) throw new Error('the defaults have faults');
    const { evaluator } = createCriteria({
      settings: reading.settings,
      instance: 'bench',
      clock: systemClock,
      log: pino({ level: 'silent' }),
      counts: new CriterionCounts(createMetricSet()),
    });
    const evaluate = (calls: number) => {
      for (let n = 0; n < calls; n++) {
        const { matches } = evaluator.evaluate('isRetryDelayElapsed', { entity: entityOf(n) });
        if (!matches) throw new Error('the delay should be over');
      }
    };
    evaluate(10_000);
    await collectGarbage('last-resort');
    const before = process.memoryUsage().heapUsed;
    evaluate(memoryCalls);
    await collectGarbage('last-resort');
    const each = (process.memoryUsage().heapUsed - before) / memoryCalls;
    return {
      metric: 'bytes',
      redrive: Math.max(0, each),
      peers: {},
      verdicts: [
        {
          target: `under ${MOST_BYTES} bytes`,
          measured: `${each.toFixed(2)} bytes over ${memoryCalls.toLocaleString('en')} evaluations`,
          met: each < MOST_BYTES,
        },
      ],
    };
  },
};

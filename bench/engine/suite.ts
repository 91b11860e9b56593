import type { Suite } from '../result.ts';
import { drift } from './drift.ts';
import { executePostgres, executeSqlite } from './execute.ts';
import { flaky } from './flaky.ts';
import { flatClaim, flatDrift } from './flat.ts';
import { isolation } from './isolation.ts';
import { schedulePostgres, scheduleSqlite } from './schedule.ts';

export const suite: Suite = {
  name: 'engine',
  about: 'durable retries against pg-boss, graphile-worker and BullMQ, on real servers',
  cases: [
    schedulePostgres,
    executePostgres,
    scheduleSqlite,
    executeSqlite,
    drift,
    flatClaim,
    flatDrift,
    isolation,
    flaky,
  ],
};

import type { Suite } from '../result.ts';
import { drift } from './drift.ts';
import {
  costRedis,
  executeRedis,
  executeStores,
  scheduleRedis,
  scheduleStores,
} from './throughput.ts';

export const suite: Suite = {
  name: 'delay-queue',
  about:
    'waiting alone: Redis against the delayed jobs of BullMQ, and what an entry costs on every queue',
  cases: [scheduleRedis, executeRedis, drift, scheduleStores, executeStores, costRedis],
};

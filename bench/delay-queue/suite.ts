import type { Suite } from '../result.ts';
import { cost } from './cost.ts';
import { drift } from './drift.ts';
import { kafkaCase, kafkaPartitionsCase } from './kafka.ts';
import { executeRedis, executeStores, scheduleRedis, scheduleStores } from './throughput.ts';

export const suite: Suite = {
  name: 'delay-queue',
  about:
    'waiting alone: Redis against the delayed jobs of BullMQ, Kafka beside its client alone, and what an entry costs on every queue',
  cases: [
    scheduleRedis,
    executeRedis,
    drift,
    scheduleStores,
    executeStores,
    cost,
    kafkaCase,
    kafkaPartitionsCase,
  ],
};

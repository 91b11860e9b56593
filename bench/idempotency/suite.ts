import type { Suite } from '../result.ts';
import { jetstreamCase } from './jetstream.ts';
import { memoryCase } from './memory.ts';
import { postgresCase } from './postgres.ts';
import { redisCase } from './redis.ts';
import { sqliteCase } from './sqlite.ts';
import { natsPipeline } from '../service/pipelines.ts';

export const suite: Suite = {
  name: 'idempotency',
  about: 'an effect once per key: claim, run, record',
  cases: [memoryCase, sqliteCase, postgresCase, redisCase, jetstreamCase, natsPipeline],
};

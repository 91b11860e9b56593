export { type RedisSticky, redisSticky, type RedisStickyOptions } from './sticky.ts';
export {
  redisIdempotency,
  type RedisIdempotencyOptions,
  type RedisScripts,
} from './idempotency/store.ts';
export type { RedisFinding } from './delay-queue/findings.ts';
export type { RedisDelayQueueOptions } from './delay-queue/options.ts';
export { type RedisDelayQueue, redisDelayQueue } from './delay-queue/queue.ts';

export { type RedisSticky, redisSticky, type RedisStickyOptions } from './sticky.ts';
export {
  redisIdempotency,
  type RedisIdempotencyOptions,
  type RedisScripts,
} from './idempotency/store.ts';

export { type RedisSticky, redisSticky, type RedisStickyOptions } from './sticky.ts';

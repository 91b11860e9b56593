/** Real servers for tests and benchmarks: on 127.0.0.1, on free ports, in temporary folders. */
import { kafka } from './kafka.ts';
import { ferretdb, mongoJavaServer } from './mongo.ts';
import { nats215, nats29 } from './nats.ts';
import { pgBouncer } from './pgbouncer.ts';
import { postgres15, postgres18 } from './postgres.ts';
import { rabbitmq } from './rabbitmq.ts';
import { redisCluster } from './redis-cluster.ts';
import { redis } from './redis.ts';
import { type Found, missing, type Service } from './service.ts';

export { certificate } from './certificate.ts';
export { startKafka, startKafkaCluster } from './kafka.ts';
export type { KafkaCluster, KafkaOptions, KafkaSecurity, KafkaServer } from './kafka.ts';
export { startFerretdb, startMongo } from './mongo.ts';
export type { MongoServer } from './mongo.ts';
export { startNats, startNatsCluster } from './nats.ts';
export type { NatsCluster, NatsOptions, NatsServer, NatsVersion } from './nats.ts';
export { startPgBouncer } from './pgbouncer.ts';
export type { PgBouncerOptions, PgBouncerServer } from './pgbouncer.ts';
export type { PostgresVersion } from './postgres-programs.ts';
export { startPostgres } from './postgres.ts';
export type { PostgresOptions, PostgresServer } from './postgres.ts';
export { freePort } from './port.ts';
export { startProxy } from './proxy.ts';
export type { Proxy } from './proxy.ts';
export { startRabbitmq } from './rabbitmq.ts';
export type { RabbitmqOptions, RabbitmqServer } from './rabbitmq.ts';
export { startRedisCluster } from './redis-cluster.ts';
export type { RedisCluster, RedisNode } from './redis-cluster.ts';
export { startRedis } from './redis.ts';
export type { RedisOptions, RedisServer } from './redis.ts';
export type { Found, Service, SharedServer } from './service.ts';

/** A new kind of server is one more file and one more entry here. */
const all = [
  postgres15,
  postgres18,
  pgBouncer,
  redis,
  redisCluster,
  rabbitmq,
  nats29,
  nats215,
  kafka,
  mongoJavaServer,
  ferretdb,
] as const;

export type ServiceName = (typeof all)[number]['name'];

export const services: readonly Service<ServiceName>[] = all;

/**
 * Whether a server can be started here, and if not why, and what would change that. Those named in
 * REDRIVE_SKIP_SERVICES, with commas between, count as missing.
 */
export function found(name: ServiceName): Found {
  const leftOut = (process.env['REDRIVE_SKIP_SERVICES'] ?? '').split(',');
  if (leftOut.includes(name)) return missing('REDRIVE_SKIP_SERVICES leaves it out', 'unset that');
  return services.find((one) => one.name === name)!.find();
}

export { natsAudit, type NatsAuditConnection, type NatsAuditOptions } from './audit/nats-audit.ts';
export type { BrokerState as NatsState } from '../../broker/state-board.ts';
export { type NatsBroker, nats } from './broker.ts';
export {
  type Carried,
  type CarriedNats,
  carriedContext,
  type MaxDeliveries,
  type NatsExtra,
  natsExtraOf,
} from './carry.ts';
export type { NatsConsumer } from './consumer.ts';
export type { NatsOptions, StreamSpec } from './options.ts';
export { jetstreamIdempotency, type JetstreamIdempotencyOptions } from './idempotency/store.ts';
export { type ConnectOptions, connectWithRetry } from './operations/connect.ts';
export { kvCreate, type KvBucketOptions } from './operations/kv-bucket.ts';
export { kvGet, type KvValue } from './operations/kv-read.ts';
export { kvDelete, kvPut, type KvWriteOptions } from './operations/kv-write.ts';
export type { OperationOptions } from './operations/operation.ts';
export { type Confirm, type NatsPublishOptions, publish } from './operations/publish.ts';
export { createStream } from './operations/stream.ts';
export { subscribe, type SubscribeOptions } from './operations/subscribe.ts';

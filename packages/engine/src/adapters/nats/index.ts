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

export { type RabbitBroker, rabbitmq } from './broker.ts';
export { type Carried, type CarriedAmqp, carriedContext } from './carry.ts';
export type { RabbitConsumer, RabbitConsumerState } from './consumer.ts';
export type { RabbitOptions } from './options.ts';
export type { RabbitExtra } from './received.ts';
export type { BrokerState as RabbitState } from '../../broker/state-board.ts';
export type { Tagged, TaggedTable } from './tagged.ts';
export type { Binding, ExchangeType, QueueSpec, Topology } from './topology.ts';

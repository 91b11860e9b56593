export type { BrokerState as KafkaState } from '../../broker/state-board.ts';
export { kafka, type KafkaBroker } from './broker/broker.ts';
export {
  type Carried,
  type CarriedHeader,
  type CarriedKafka,
  carriedContext,
  type KafkaExtra,
  kafkaExtraOf,
} from './broker/carry.ts';
export type { KafkaConsumer } from './broker/consumer.ts';
export type { KafkaOptions } from './broker/options.ts';
export { kafkaDelayQueue, type KafkaDelayQueue } from './delay-queue/queue.ts';
export type { KafkaDelayQueueOptions } from './delay-queue/options.ts';
export type { KafkaConnection } from './client/settings.ts';

/** Settings become the broker Kafka, its lane of notifications, and what is taken in. Loaded only where KAFKA_BROKERS is set. */
import { readFile } from 'node:fs/promises';
import type { Engine } from '@redrive/engine';
import {
  carriedContext as carry,
  kafka,
  type KafkaBroker,
  type KafkaConnection,
  kafkaDelayQueue,
  type KafkaDelayQueue,
  type KafkaDelayQueueOptions,
} from '@redrive/engine/kafka';
import type { Observers } from './observe/index.ts';
import { oversizedMessage } from './scheduler/oversized.ts';
import { retryReader } from './scheduler/retry-reader.ts';
import type { Settings } from './settings/settings.ts';

/** How a connection is made: also for `redrive doctor`. */
export async function kafkaConnection(settings: Settings): Promise<KafkaConnection> {
  const { kafkaBrokers: brokers = [], kafkaUsername: username, kafkaPassword: password } = settings;
  const { kafkaTls, kafkaTlsCaFile, kafkaTlsCertFile, kafkaTlsKeyFile } = settings;
  const tls = {
    ...(kafkaTlsCaFile === undefined ? {} : { ca: await readFile(kafkaTlsCaFile) }),
    ...(kafkaTlsCertFile === undefined ? {} : { cert: await readFile(kafkaTlsCertFile) }),
    ...(kafkaTlsKeyFile === undefined ? {} : { key: await readFile(kafkaTlsKeyFile) }),
  };
  const { kafkaSaslMechanism: mechanism = 'SCRAM-SHA-512' } = settings;
  return {
    brokers,
    ...(kafkaTls === 'on' || Object.keys(tls).length > 0 ? { tls } : {}),
    ...(username === undefined || password === undefined
      ? {}
      : { sasl: { mechanism, username, password } }),
  };
}

export async function kafkaBroker(
  settings: Settings,
  clientId: string,
  { hooks: { log } }: Observers,
): Promise<KafkaBroker> {
  return kafka({ ...(await kafkaConnection(settings)), clientId, log });
}

/** Where medium and low notifications wait. */
export async function kafkaBulkQueue(
  settings: Settings,
  parts: Pick<KafkaDelayQueueOptions, 'prefix' | 'clock' | 'log' | 'sessionTimeout'>,
): Promise<KafkaDelayQueue> {
  const connection = await kafkaConnection(settings);
  return kafkaDelayQueue({ ...connection, ...parts });
}

/** What the readers of all sources have. */
interface Reading {
  reviewQueue?: string;
  defaultMaxRetries: number;
}

export function consumeKafka(
  settings: Settings,
  broker: KafkaBroker,
  engine: Engine,
  observers: Observers,
  reading: Reading,
): void {
  const { kafkaRetryTopic: source, maxPayloadBytes } = settings;
  if (source === undefined) return;
  const nowMs = () => Date.now();
  const read = retryReader({ ...reading, kind: 'kafka', source, maxPayloadBytes, carry, nowMs });
  const oversized = oversizedMessage({ source, carry, isDeadLetter: false });
  engine.consume(observers.source({ broker, source, read, oversized }));
}

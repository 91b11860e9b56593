import {
  describeService,
  kafkaClient,
  type KafkaClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, beforeAll, test } from 'vitest';
import { brokerSuite } from '../../../testing/broker/broker-suite.ts';
import { kafka } from '../index.ts';

describeService('Kafka', () => {
  let brokers: string;
  let client: KafkaClient;
  beforeAll(async () => {
    const url = await sharedServer('Kafka');
    brokers = new URL(url).host;
    client = await kafkaClient(url);
  });
  afterAll(() => client.close());

  const suite = brokerSuite({
    capabilities: {
      returnsUnroutable: true,
      confirms: true,
      typedHeaders: false,
      redeliversInOrder: true,
      acknowledgesOutOfOrder: false,
      marksRedelivered: false,
      sharesByMessage: false,
      maxMessageBytes: 1_000_000,
    },
    async open() {
      const broker = kafka({ brokers });
      await broker.open();
      const queue = () => client.topic();
      return { broker, queue, nowhere: client.name(), close: () => broker.close() };
    },
  });
  for (const { name, run: assertCase, skip } of suite) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }
});

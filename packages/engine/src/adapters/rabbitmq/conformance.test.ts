import {
  describeService,
  rabbitmqClient,
  type RabbitmqClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { brokerSuite } from '../../testing/broker/broker-suite.ts';
import { rabbitmq } from './index.ts';

/** The server may have to start first, on a busy machine. */
const START_MS = 60_000;

describeService('RabbitMQ', () => {
  let url: string;
  let client: RabbitmqClient;
  beforeAll(async () => {
    url = await sharedServer('RabbitMQ');
    client = await rabbitmqClient(url);
  }, START_MS);
  afterAll(() => client.close());

  describe.each(['classic', 'quorum'])('with %s queues', (type) => {
    const suite = brokerSuite({
      capabilities: {
        returnsUnroutable: true,
        confirms: true,
        typedHeaders: true,
        redeliversInOrder: true,
        acknowledgesOutOfOrder: true,
        marksRedelivered: true,
        sharesByMessage: true,
        maxMessageBytes: 128 * 1024 * 1024,
      },
      async open() {
        const broker = rabbitmq({ url });
        await broker.open();
        const queue = () => client.queue({ arguments: { 'x-queue-type': type } });
        return { broker, queue, nowhere: client.name(), close: () => broker.close() };
      },
    });
    for (const { name, run: assertCase } of suite) test(`${name}`, () => assertCase());
  });
});

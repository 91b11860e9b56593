import {
  describeService,
  natsClient,
  type NatsClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, beforeAll, test } from 'vitest';
import { brokerSuite } from '../../testing/broker/broker-suite.ts';
import { nats } from './index.ts';

for (const version of ['2.9', '2.15'] as const) {
  describeService(`NATS ${version}`, () => {
    let url: string;
    let client: NatsClient;
    beforeAll(async () => {
      url = await sharedServer(`NATS ${version}`);
      client = await natsClient(url);
    });
    afterAll(() => client.close());

    const suite = brokerSuite({
      capabilities: {
        returnsUnroutable: true,
        confirms: true,
        typedHeaders: false,
        redeliversInOrder: false,
        acknowledgesOutOfOrder: true,
        marksRedelivered: true,
        sharesByMessage: true,
        maxMessageBytes: 1024 * 1024,
      },
      async open() {
        // Where nobody waits for what is given back, 2.9 forgets one of the messages until this time is over.
        const broker = nats({ url, ackWait: '5s' });
        await broker.open();
        const queue = () => client.subject();
        return { broker, queue, nowhere: client.name(), close: () => broker.close() };
      },
    });
    for (const { name, run: assertCase, skip } of suite) {
      test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
    }
  });
}

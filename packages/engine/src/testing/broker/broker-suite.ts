import { deepEqual, equal, ok } from 'node:assert/strict';
import type { BrokerCapabilities, Received } from '../../ports/broker.ts';
import {
  type BrokerCases,
  confirm,
  expectEmpty,
  listen,
  message,
  numbered,
  publish,
  receive,
  textOf,
  turnAround,
  unlimited,
  type OpenedBroker,
} from './broker-fixtures.ts';
import { publishCases } from './broker-publish.ts';
import { casesOf, type ConformanceCase, patient } from '../suite.ts';

/** How the suite gets at the broker that it examines. */
export interface BrokerSetup {
  capabilities: BrokerCapabilities;
  /** A broker, opened, for one case. */
  open(): Promise<OpenedBroker>;
  /** How long a case waits for what must come (25 s). */
  patienceMs?: number;
}

/** Every promise of the port `Broker`, one by one. */
export function brokerSuite(setup: BrokerSetup): ConformanceCase[] {
  const tables = { publish: publishCases, consume: consumeCases, lifecycle: lifecycleCases };
  const { maxMessageBytes: _, ...skills } = setup.capabilities;
  return casesOf(tables, skills, async (body) => {
    const opened = await setup.open();
    try {
      const sentence = 'The setup declares other capabilities than the broker.';
      deepEqual(opened.broker.capabilities, setup.capabilities, sentence);
      await body({ ...opened, until: patient(setup.patienceMs) });
    } finally {
      await opened.close();
    }
  });
}

const consumeCases: BrokerCases = {
  'hands over what is there and what comes': async (stage) => {
    const { broker } = stage;
    const source = await stage.queue();
    await confirm(broker, [message(source, 'before')]);
    const got: Received[] = [];
    await broker.consume(source, unlimited, (one) => got.push(one));
    await stage.until('the message that was there', () => got.length === 1);
    await confirm(broker, [message(source, 'after')]);
    await stage.until('the message that came', () => got.length === 2);
    deepEqual(got.map(textOf), ['before', 'after']);
  },

  'hands over no more than may be unacknowledged': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 10));
    const { got, consumer } = await listen(stage.broker, source, {
      maxMessages: 3,
      maxBytes: 1 << 20,
    });
    await stage.until('as many as may be', () => got.length === 3);
    await turnAround(stage);
    equal(got.length, 3);
    await consumer.ack(got.slice(0, 2));
    await stage.until('as many more as were acknowledged', () => got.length === 5);
    await turnAround(stage);
    equal(got.length, 5);
    deepEqual(got.map(textOf), ['0', '1', '2', '3', '4']);
  },

  'hands over no more bytes than may be unacknowledged, but always one': async (stage) => {
    const source = await stage.queue();
    const payload = new Uint8Array(1000);
    await confirm(
      stage.broker,
      Array.from({ length: 4 }, () => ({ address: source, payload, headers: {} })),
    );
    const { got, consumer } = await listen(stage.broker, source, {
      maxMessages: 100,
      maxBytes: 10,
    });
    for (let count = 1; count <= 4; count++) {
      await stage.until('the next message', () => got.length === count);
      await turnAround(stage);
      equal(got.length, count);
      await consumer.ack(got.slice(-1));
    }
  },

  'hands over nothing more while it drains, and goes on when all it has is settled': async (
    stage,
  ) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 2));
    const { got, consumer } = await listen(stage.broker, source);
    await stage.until('both messages', () => got.length === 2);
    // Not every broker can.
    if (!consumer.drain) return;
    consumer.drain();
    await turnAround(stage);
    await confirm(stage.broker, [message(source, 'after')]);
    await turnAround(stage);
    await consumer.ack([got[0]!]);
    await turnAround(stage);
    equal(got.length, 2);
    await consumer.ack([got[1]!]);
    await stage.until('the next message', () => got.length === 3);
    equal(textOf(got[2]!), 'after');
    // Where it has nothing, there is nothing to wait for.
    await consumer.ack([got[2]!]);
    consumer.drain();
    await confirm(stage.broker, [message(source, 'last')]);
    await stage.until('the last message', () => got.length === 4);
    await consumer.stop();
  },

  'does not hand over again what was acknowledged': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 5));
    const { got, consumer } = await listen(stage.broker, source);
    await stage.until('all messages', () => got.length === 5);
    await consumer.ack([got[1]!, got[0]!]);
    await consumer.ack([got[2]!]);
    await consumer.stop();
    deepEqual((await receive(stage, source, 2)).map(textOf).toSorted(), ['3', '4']);
  },

  'does not hand over again what was acknowledged, in any order': {
    needs: 'acknowledgesOutOfOrder',
    run: async (stage) => {
      const source = await stage.queue();
      await confirm(stage.broker, numbered(source, 5));
      const { got, consumer } = await listen(stage.broker, source);
      await stage.until('all messages', () => got.length === 5);
      await consumer.ack([got[4]!, got[0]!]);
      await consumer.ack([got[2]!]);
      await consumer.stop();
      deepEqual((await receive(stage, source, 2)).map(textOf).toSorted(), ['1', '3']);
    },
  },

  'loses nothing that comes before what was acknowledged': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 3));
    const { got, consumer } = await listen(stage.broker, source);
    await stage.until('all messages', () => got.length === 3);
    await consumer.ack([got[2]!, got[1]!]);
    await consumer.stop();
    const again = await listen(stage.broker, source);
    await stage.until('the first message again', () =>
      again.got.some((one) => textOf(one) === '0'),
    );
    await again.consumer.stop();
  },

  'hands over again what its consumer left': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 3));
    const { got, consumer } = await listen(stage.broker, source);
    await stage.until('all messages', () => got.length === 3);
    deepEqual(
      got.map(({ redelivered }) => redelivered),
      [false, false, false],
    );
    await consumer.stop();
    const again = await receive(stage, source, 3);
    deepEqual(again.map(textOf).toSorted(), ['0', '1', '2']);
  },

  'says so when it hands over again what its consumer left': {
    needs: 'marksRedelivered',
    run: async (stage) => {
      const source = await stage.queue();
      await confirm(stage.broker, numbered(source, 3));
      const first = await listen(stage.broker, source);
      await stage.until('all messages', () => first.got.length === 3);
      await first.consumer.stop();
      ok((await receive(stage, source, 3)).every(({ redelivered }) => redelivered));
    },
  },

  'hands over in its order what its consumer left': {
    needs: 'redeliversInOrder',
    run: async (stage) => {
      const source = await stage.queue();
      await confirm(stage.broker, numbered(source, 5));
      const { got, consumer } = await listen(stage.broker, source);
      await stage.until('all messages', () => got.length === 5);
      await consumer.ack([got[0]!]);
      await consumer.stop();
      deepEqual((await receive(stage, source, 4)).map(textOf), ['1', '2', '3', '4']);
    },
  },

  'hands over again what was given back, and only that': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 3));
    const { got, consumer } = await listen(stage.broker, source);
    await stage.until('all messages', () => got.length === 3);
    await consumer.requeue([got[1]!]);
    await stage.until('the message that was given back', () => got.length === 4);
    deepEqual([textOf(got[3]!), got[3]!.redelivered], ['1', true]);
    await consumer.ack([got[0]!, got[2]!, got[3]!]);
    await consumer.stop();
    await expectEmpty(stage, source);
  },

  'gives each message to one of several consumers': {
    needs: 'sharesByMessage',
    run: async (stage) => {
      const source = await stage.queue();
      const limits = { maxMessages: 5, maxBytes: 1 << 20 };
      const both = [
        await listen(stage.broker, source, limits),
        await listen(stage.broker, source, limits),
      ];
      await confirm(stage.broker, numbered(source, 10));
      await stage.until('all messages', () => both.every(({ got }) => got.length === 5));
      const texts = both.flatMap(({ got }) => got.map(textOf));
      equal(new Set(texts).size, 10);
    },
  },

  'gives what one consumer left to another': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 3));
    const first = await listen(stage.broker, source);
    await stage.until('all messages', () => first.got.length === 3);
    const second = await listen(stage.broker, source);
    await first.consumer.stop();
    await stage.until('all messages again', () => second.got.length === 3);
    const { marksRedelivered } = stage.broker.capabilities;
    ok(second.got.every(({ redelivered }) => redelivered === marksRedelivered));
  },

  'hands over nothing to a consumer that has stopped': async (stage) => {
    const source = await stage.queue();
    const { got, consumer } = await listen(stage.broker, source);
    await consumer.stop();
    await consumer.stop();
    await confirm(stage.broker, numbered(source, 1));
    equal((await receive(stage, source, 1)).length, 1);
    deepEqual(got, []);
  },

  'loses nothing by an acknowledgement that comes after the stop': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 1));
    const { got, consumer } = await listen(stage.broker, source);
    await stage.until('the message', () => got.length === 1);
    await consumer.stop();
    const second = await listen(stage.broker, source);
    await stage.until('the message again', () => second.got.length === 1);
    // It may be refused. What it must not do is to take the message from its new consumer.
    await consumer.ack(got).catch(() => undefined);
    await second.consumer.stop();
    deepEqual((await receive(stage, source, 1)).map(textOf), ['0']);
  },

  'takes no messages at all for an answer': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 1));
    const { got, consumer } = await listen(stage.broker, source);
    await stage.until('the message', () => got.length === 1);
    await consumer.ack([]);
    await consumer.requeue([]);
    await consumer.stop();
    equal((await receive(stage, source, 1)).length, 1);
  },
};

const lifecycleCases: BrokerCases = {
  'opens again without harm': async (stage) => {
    const queue = await stage.queue();
    await stage.broker.open();
    await confirm(stage.broker, [message(queue, '1')]);
    equal((await receive(stage, queue, 1)).length, 1);
  },

  'closes twice without harm, and confirms nothing after that': async ({ broker, queue }) => {
    const address = await queue();
    await broker.close();
    await broker.close();
    const outcomes = await publish(broker, [message(address, 'late')]);
    deepEqual(
      outcomes.map(({ outcome }) => outcome),
      ['away'],
    );
    equal(broker.isReady, false);
  },

  'tells whoever watches when it is ready, and when it is not any more': async ({
    broker,
    until,
  }) => {
    await until('the broker to be ready', () => broker.isReady);
    let told = 0;
    const unwatch = broker.watch(() => (told += 1));
    await broker.close();
    equal(broker.isReady, false);
    await until('it to be told', () => told > 0);
    await broker.open();
    await until('the broker to be ready again', () => broker.isReady);
    const before = told;
    unwatch();
    await broker.close();
    equal(told, before);
  },

  'works again after it was closed, with what nobody had acknowledged': async (stage) => {
    const source = await stage.queue();
    await confirm(stage.broker, numbered(source, 2));
    const { got } = await listen(stage.broker, source);
    await stage.until('all messages', () => got.length === 2);
    await stage.broker.close();
    await stage.broker.open();
    deepEqual((await receive(stage, source, 2)).map(textOf).toSorted(), ['0', '1']);
  },
};

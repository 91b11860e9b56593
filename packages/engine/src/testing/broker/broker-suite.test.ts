import { describe, expect, it } from 'vitest';
import { memoryBroker } from '../../adapters/memory/index.ts';
import type { Broker, Consumer, Received } from '../../ports/broker.ts';
import { brokerSuite } from './broker-suite.ts';

type Defect = (broker: Broker) => Partial<Broker>;

/** The cases that a defect makes fail. */
async function broken(defect: Defect): Promise<string[]> {
  const suite = brokerSuite({
    capabilities: memoryBroker().capabilities,
    patienceMs: 50,
    async open() {
      const broker = memoryBroker();
      await broker.open();
      let last = 0;
      const queue = async () => {
        last += 1;
        broker.declare(`q${last}`);
        return `q${last}`;
      };
      return {
        broker: altered(broker, defect(broker)),
        queue,
        nowhere: 'x',
        close: () => broker.close(),
      };
    },
  });
  const failed: string[] = [];
  for (const { name, run } of suite) await run().catch(() => failed.push(name));
  return failed;
}

function altered(broker: Broker, changes: Partial<Broker>): Broker {
  return new Proxy(broker, {
    get(target, name) {
      const value: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** Consumers that are not what they should be. */
function consuming(
  broker: Broker,
  change: (consumer: Consumer) => Partial<Consumer>,
  see: (message: Received) => Received = (message) => message,
): Partial<Broker> {
  return {
    consume: async (source, limits, receive) => {
      const consumer = await broker.consume(source, limits, (message) => receive(see(message)));
      return { ...consumer, ...change(consumer) };
    },
  };
}

const defects: Record<string, { defect: Defect; fails: string[] }> = {
  'knows no limits': {
    defect: (broker) => ({
      consume: (source, _, receive) =>
        broker.consume(source, { maxMessages: 1000, maxBytes: 1 << 30 }, receive),
    }),
    fails: [
      'consume: hands over no more than may be unacknowledged',
      'consume: hands over no more bytes than may be unacknowledged, but always one',
    ],
  },
  'gets stuck at a large message': {
    defect: (broker) => ({
      consume: (source, limits, receive) =>
        broker.consume(
          source,
          limits.maxBytes < 1000 ? { maxMessages: 0, maxBytes: 0 } : limits,
          receive,
        ),
    }),
    fails: ['consume: hands over no more bytes than may be unacknowledged, but always one'],
  },
  'loses what its consumer left': {
    defect: (broker) => {
      const held: Received[] = [];
      const change = (consumer: Consumer) => ({
        stop: async () => {
          await consumer.ack(held);
          await consumer.stop();
        },
      });
      return consuming(broker, change, (message) => {
        held.push(message);
        return message;
      });
    },
    fails: [
      'consume: hands over again what its consumer left',
      'consume: gives what one consumer left to another',
    ],
  },
  'does not say that it hands over again': {
    defect: (broker) =>
      consuming(
        broker,
        () => ({}),
        (message) => ({ ...message, redelivered: false }),
      ),
    fails: [
      'consume: says so when it hands over again what its consumer left',
      'consume: hands over again what was given back, and only that',
    ],
  },
  'forgets acknowledgements': {
    defect: (broker) => consuming(broker, () => ({ ack: async () => {} })),
    fails: [
      'consume: does not hand over again what was acknowledged',
      'consume: does not hand over again what was acknowledged, in any order',
    ],
  },
  'does not stop handing over while it drains': {
    defect: (broker) => consuming(broker, () => ({ drain: () => {} })),
    fails: [
      'consume: hands over nothing more while it drains, and goes on when all it has is settled',
    ],
  },
  'does not go on after it was drained': {
    defect: (broker) => consuming(broker, (consumer) => ({ drain: () => void consumer.stop() })),
    fails: [
      'consume: hands over nothing more while it drains, and goes on when all it has is settled',
    ],
  },
  'does not take back': {
    defect: (broker) => consuming(broker, () => ({ requeue: async () => {} })),
    fails: ['consume: hands over again what was given back, and only that'],
  },
  'confirms what nobody gets': {
    defect: (broker) => ({
      publish: (messages, options) =>
        broker.publish(messages, options).map(async (published) => {
          await published;
          return { outcome: 'confirmed' } as const;
        }),
    }),
    fails: [
      'publish: says where nobody is, and spoils no other message by it',
      'lifecycle: closes twice without harm, and confirms nothing after that',
    ],
  },
  'tells nobody': {
    defect: () => ({ watch: () => () => undefined }),
    fails: ['lifecycle: tells whoever watches when it is ready, and when it is not any more'],
  },
  'hands over again in another order': {
    defect: (broker) => ({
      consume: (source, limits, receive) => {
        const again: Received[] = [];
        return broker.consume(source, limits, (message) => {
          if (!message.redelivered) return receive(message);
          if (again.push(message) > 1) return;
          queueMicrotask(() => again.splice(0).toReversed().forEach(receive));
        });
      },
    }),
    fails: ['consume: hands over in its order what its consumer left'],
  },
  'makes texts of numbers': {
    defect: (broker) =>
      consuming(
        broker,
        () => ({}),
        (message) => ({
          ...message,
          headers: Object.fromEntries(
            Object.entries(message.headers).map(([name, value]) => [name, String(value)]),
          ),
        }),
      ),
    fails: ['publish: keeps numbers among the headers as numbers'],
  },
  'publishes in any order': {
    defect: (broker) => ({
      publish: (messages, options) => broker.publish(messages.toReversed(), options),
    }),
    fails: ['publish: keeps the order of one queue'],
  },
  'knows only text': {
    defect: (broker) =>
      consuming(
        broker,
        () => ({}),
        (message) => ({
          ...message,
          payload: new TextEncoder().encode(new TextDecoder().decode(message.payload)),
        }),
      ),
    fails: [
      'publish: confirms a message and brings it over',
      'publish: brings over an empty message and one of 1 MiB, or the largest it takes',
    ],
  },
};

describe('the suite of a broker', () => {
  it.each(Object.entries(defects))('finds one that %s', async (_, { defect, fails }) => {
    expect(await broken(defect)).toEqual(expect.arrayContaining(fails));
  });

  it('finds nothing in one that keeps its promises', async () => {
    expect(await broken(() => ({}))).toEqual([]);
  });

  it('leaves out what a broker does not claim to do', () => {
    const capabilities = {
      returnsUnroutable: false,
      confirms: true,
      typedHeaders: true,
      redeliversInOrder: true,
      acknowledgesOutOfOrder: true,
      marksRedelivered: true,
      sharesByMessage: true,
      maxMessageBytes: Infinity,
    };
    const open = () => Promise.reject(new Error('not opened'));
    const skipped = brokerSuite({ capabilities, open }).filter(({ skip }) => skip);
    expect(skipped.map(({ needs, skip }) => [needs, skip])).toEqual([
      ['returnsUnroutable', 'declared as not returnsUnroutable'],
    ]);
  });
});

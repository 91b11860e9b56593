import {
  describeService,
  kafkaClient,
  type KafkaClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type KafkaBroker, kafka } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const limit = { timeoutMs: 20_000 };

describeService('Kafka', () => {
  let brokers: string;
  let client: KafkaClient;
  const open: KafkaBroker[] = [];
  beforeAll(async () => {
    const url = await sharedServer('Kafka');
    brokers = new URL(url).host;
    client = await kafkaClient(url);
  });
  afterAll(() => client.close());
  afterEach(async () => {
    await Promise.all(open.splice(0).map((broker) => broker.close()));
  });

  async function opened(): Promise<KafkaBroker> {
    const broker = kafka({ brokers, log: quiet });
    await broker.open();
    open.push(broker);
    return broker;
  }

  it('writes key and headers byte by byte', async () => {
    const topic = await client.topic();
    const broker = await opened();
    const odd = [
      ['twice', Buffer.from('1').toString('base64')],
      ['twice', Buffer.from([0xff, 0]).toString('base64')],
      ['nothing', null],
    ];
    const extra = { kafka: { key: Buffer.from([0, 1, 255]).toString('base64'), headers: odd } };
    const message = {
      address: topic,
      payload: Buffer.from('p'),
      headers: { plain: 'ü', n: 3 },
      extra,
    };
    expect(await Promise.all(broker.publish([message], limit))).toEqual([{ outcome: 'confirmed' }]);
    const [record] = await client.records(topic);
    expect([...record!.key]).toEqual([0, 1, 255]);
    const headers = record!.headerEntries.map(([name, value]) => [
      name.toString(),
      // A header without a value is null, which the types of the library do not say.
      (value as Buffer | null)?.toString('hex') ?? null,
    ]);
    expect(headers).toEqual([
      ['twice', '31'],
      ['twice', 'ff00'],
      ['nothing', null],
      ['plain', Buffer.from('ü').toString('hex')],
      ['n', '33'],
    ]);
  });

  it('refuses what the topic does not take, and takes the others of the same call', async () => {
    const topic = await client.topic({ configs: { 'max.message.bytes': '10000' } });
    const broker = await opened();
    // Together they are larger than the topic takes at once.
    const sizes = [4000, 4000, 20_000, 4000, 9000];
    const messages = sizes.map((size) => ({
      address: topic,
      payload: Buffer.alloc(size),
      headers: {},
    }));
    const answers = await Promise.all(broker.publish(messages, limit));
    expect(answers.map(({ outcome }) => outcome)).toEqual([
      'confirmed',
      'confirmed',
      'impossible',
      'confirmed',
      'confirmed',
    ]);
    expect(answers[2]).toMatchObject({ failure: { code: 'MESSAGE_TOO_LARGE' } });
    const got = (await client.records(topic)).map(({ value }) => value.length);
    expect(got.toSorted((a, b) => a - b)).toEqual([4000, 4000, 4000, 9000]);
  });

  it('creates no topic, and says that there is none', async () => {
    const broker = await opened();
    const nowhere = client.name();
    const message = { address: nowhere, payload: Buffer.from('x'), headers: {} };
    expect(await Promise.all(broker.publish([message], limit))).toMatchObject([
      { outcome: 'unroutable', failure: { code: 'NO_TOPIC' } },
    ]);
    expect(await broker.hasTopic(nowhere)).toBe(false);
    expect(await client.admin.listTopics()).not.toContain(nowhere);
  });

  it('takes a record without a key for a compacted topic for what it is', async () => {
    const topic = await client.topic({ configs: { 'cleanup.policy': 'compact' } });
    const broker = await opened();
    const message = { address: topic, payload: Buffer.from('x'), headers: {} };
    expect(await Promise.all(broker.publish([message], limit))).toMatchObject([
      { outcome: 'impossible', failure: { code: 'INVALID_MESSAGE' } },
    ]);
  });

  it('finds a topic that is made after it was missing', async () => {
    const broker = await opened();
    const topic = client.name();
    const message = { address: topic, payload: Buffer.from('x'), headers: {} };
    const [first] = await Promise.all(broker.publish([message], limit));
    expect(first!.outcome).toBe('unroutable');
    await client.admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 });
    const [second] = await Promise.all(broker.publish([message], limit));
    expect(second).toEqual({ outcome: 'confirmed' });
  });
});

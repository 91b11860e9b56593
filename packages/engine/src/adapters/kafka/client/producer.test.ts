/** What was acknowledged against what the log holds, looked at by another client. */
import { type KafkaCluster, startKafkaCluster } from '@redrive/services';
import { describeService, kafkaClient, sharedServer } from '@redrive/services/vitest';
import { afterEach, expect, it, vi } from 'vitest';
import { Cluster } from './cluster.ts';
import { type OutRecord, Producer, type Stored } from './producer.ts';
import { readConnection } from './settings.ts';
import { loadKafka } from './library.ts';

await loadKafka();

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const clusters: Cluster[] = [];
afterEach(async () => {
  await Promise.all(clusters.splice(0).map((cluster) => cluster.close()));
});

function producerAt(brokers: readonly string[], requestTimeout = 30_000): Producer {
  const cluster = new Cluster(
    readConnection({ brokers, log: quiet, requestTimeout, connectTimeout: 2000 }, [], []),
  );
  clusters.push(cluster);
  return new Producer(cluster);
}

function record(topic: string, text: string, key?: string): OutRecord {
  const value = Buffer.from(text);
  return {
    topic,
    key: key === undefined ? null : Buffer.from(key),
    value,
    headers: undefined,
    bytes: value.length,
  };
}

function send(producer: Producer, records: readonly OutRecord[], timeoutMs = 20_000) {
  return Promise.all(
    records.map(
      (one) =>
        new Promise<Stored>((resolve) => {
          producer.send([one], { timeoutMs, insist: false }, (_, stored) => resolve(stored));
        }),
    ),
  );
}

describeService('Kafka', () => {
  it('has in the log what it acknowledged, once, when 40 sends run side by side', async () => {
    const url = await sharedServer('Kafka');
    await using client = await kafkaClient(url);
    const topic = await client.topic({ partitions: 2 });
    const producer = producerAt([new URL(url).host]);
    const acknowledged: string[] = [];
    await Promise.all(
      Array.from({ length: 40 }, async (_, side) => {
        for (let i = 0; i < 25; i++) {
          const [stored] = await send(producer, [record(topic, `${side}-${i}`, `${side}`)]);
          if (stored!.type === 'stored') acknowledged.push(`${side}-${i}`);
        }
      }),
    );
    expect(acknowledged.length).toBe(1000);
    const texts = (await client.records(topic)).map(({ value }) => value.toString());
    expect(texts.toSorted()).toEqual(acknowledged.toSorted());
  });

  it('puts records of one key where other clients put them', async () => {
    const url = await sharedServer('Kafka');
    await using client = await kafkaClient(url);
    const topic = await client.topic({ partitions: 7 });
    const producer = producerAt([new URL(url).host]);
    const keys = [
      '21',
      'foobar',
      'a-little-bit-long-string',
      'lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8',
    ];
    await send(
      producer,
      keys.map((key) => record(topic, key, key)),
    );
    const got = await client.records(topic);
    // murmur2 of these keys, as the tests of the Java client have it.
    const hashes = [-973932308, -790332482, -985981536, -58897971];
    const expected = keys.map((key, i) => [key, (hashes[i]! & 0x7fffffff) % 7]);
    expect(
      Object.fromEntries(got.map(({ value, partition }) => [value.toString(), partition])),
    ).toEqual(Object.fromEntries(expected));
  });

  it('has in the log all that it acknowledged when the leader of three is killed', async () => {
    await using kafka: KafkaCluster = await startKafkaCluster();
    await using client = await kafkaClient(kafka.addresses);
    const topic = await client.topic({ partitions: 3, replicas: 3 });
    const producer = producerAt(kafka.addresses, 5000);
    const acknowledged = new Set<string>();
    const others = new Map<string, string>();
    const ending = new AbortController();
    const sides = Array.from({ length: 40 }, async (_, side) => {
      for (let i = 0; !ending.signal.aborted; i++) {
        const text = `${side}-${i}`;
        const [stored] = await send(producer, [record(topic, text, text)]);
        if (stored!.type === 'stored') acknowledged.add(text);
        else others.set(text, stored!.type);
      }
    });
    const isWorking = async () => {
      const before = acknowledged.size;
      const goOn = () => expect(acknowledged.size).toBeGreaterThan(before + 1000);
      await vi.waitFor(goOn, { timeout: 60_000, interval: 20 });
    };
    await isWorking();
    await kafka.servers[0]!.kill();
    await isWorking();
    await kafka.servers[0]!.start();
    await isWorking();
    await kafka.servers[1]!.kill();
    await isWorking();
    ending.abort();
    await Promise.all(sides);
    const log = (await client.records(topic)).map(({ value }) => value.toString());
    const held = new Set(log);
    expect([...acknowledged].filter((text) => !held.has(text))).toEqual([]);
    // Nothing twice: it sends again only what was surely not written.
    expect(log.length).toBe(held.size);
    // What it said it had not written is not there.
    const unsent = [...others].filter(([text, type]) => type !== 'unsure' && held.has(text));
    expect(unsent).toEqual([]);
  }, 240_000);
});

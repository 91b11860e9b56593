import { describe, expect, it } from 'vitest';
import { startKafka, startKafkaCluster } from './index.ts';
import { describeService, kafkaClient } from './vitest.ts';

const TEST_MS = 120_000;

describeService('Kafka', () => {
  it(
    'takes settings, and keeps its topics when it is killed',
    async () => {
      await using server = await startKafka({ settings: { 'num.partitions': '5' } });
      {
        await using client = await kafkaClient(server.address);
        await client.admin.createTopics({ topics: ['kept'], partitions: -1, replicas: -1 });
        const { topics } = await client.admin.metadata({ topics: ['kept'] });
        expect(topics.get('kept')?.partitionsCount).toBe(5);
      }
      await server.kill();
      await server.start();
      await using client = await kafkaClient(server.url);
      expect(await client.admin.listTopics()).toContain('kept');
    },
    TEST_MS,
  );

  describe('as three brokers', () => {
    it(
      'goes on when one of them is killed',
      async () => {
        await using cluster = await startKafkaCluster();
        await using client = await kafkaClient(cluster.addresses);
        const topic = await client.topic({ partitions: 3, replicas: 3 });
        const { topics } = await client.admin.metadata({ topics: [topic] });
        const leaders = topics.get(topic)!.partitions.map(({ leader }) => leader);
        expect(leaders.toSorted((a, b) => a - b)).toEqual(
          cluster.servers.map(({ nodeId }) => nodeId),
        );
        await cluster.servers[0]!.kill();
        expect(await client.records(topic)).toEqual([]);
      },
      TEST_MS,
    );
  });
});

import { joinGroupV7, leaveGroupV4 } from '@platformatic/kafka';
import { describeService, kafkaClient, sharedServer } from '@redrive/services/vitest';
import { expect, it, vi } from 'vitest';
import { Cluster } from './cluster.ts';
import { Group } from './group.ts';
import { readConnection } from './settings.ts';
import { loadKafka } from './library.ts';

await loadKafka();

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const events = { assigned: () => {}, revoked: async () => {}, lost: () => {} };

describeService('Kafka', () => {
  it('gives back an id that it is given while it stops: the group would wait for it', async () => {
    const url = await sharedServer('Kafka');
    await using client = await kafkaClient(url);
    const topic = await client.topic({ partitions: 1 });
    const cluster = new Cluster(
      readConnection({ brokers: [new URL(url).host], log: quiet }, [], []),
    );
    const name = client.name();
    // A coordinator that is new to a group refuses it for a moment.
    const joined = Promise.withResolvers<void>();
    const first = new Group(cluster, name, [topic], {
      ...events,
      assigned: () => joined.resolve(),
    });
    first.start();
    await joined.promise;
    await first.stop();
    const left: string[] = [];
    let given: string | undefined;
    let stopped: Promise<void> | undefined;
    const call = cluster.call.bind(cluster) as (...args: unknown[]) => Promise<unknown>;
    const watched = async (...args: unknown[]) => {
      const [, , api] = args;
      if (api === leaveGroupV4.api) left.push((args[4] as { memberId: string }[])[0]!.memberId);
      if (api !== joinGroupV7.api) return call(...args);
      const answer = call(...args) as Promise<joinGroupV7.JoinGroupResponse>;
      // Its request is under way, and the group waits for the answer.
      queueMicrotask(() => {
        stopped ??= group.stop();
      });
      const response = await answer;
      given ??= response.memberId;
      return response;
    };
    cluster.call = watched as never;
    const group = new Group(cluster, name, [topic], events);
    group.start();
    await vi.waitFor(() => expect(stopped).toBeDefined(), 20_000);
    await stopped;
    expect(given).toMatch(/./);
    expect(left).toEqual([given]);
    await cluster.close();
  });
});

import { expect, it } from 'vitest';
import { startRedisCluster } from './index.ts';
import { describeService } from './vitest.ts';

describeService('Redis cluster', () => {
  it('has three primaries, replaces one that is killed, and takes it back', async () => {
    await using cluster = await startRedisCluster();
    const roles = () => Promise.all(cluster.nodes.map((node) => node.isPrimary()));
    expect(await roles()).toEqual([true, true, true, false, false, false]);
    await cluster.nodes[0]!.kill();
    await expect.poll(roles, { timeout: 20_000 }).toEqual([false, true, true, true, false, false]);
    await cluster.nodes[0]!.start();
    await expect
      .poll(() => cluster.nodes[0]!.say('INFO replication'), { timeout: 20_000 })
      .toContain('master_link_status:up');
  });
});

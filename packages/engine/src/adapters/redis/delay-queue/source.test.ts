import { describeService, sharedServer } from '@redrive/services/vitest';
import { virtualClock } from 'redrive/testing';
import { expect, onTestFinished, test } from 'vitest';
import { slotKeys } from './layout.ts';
import { readOptions } from './options.ts';
import { RedisServer } from './server.ts';
import { SlotCount } from './slot-count.ts';
import { RedisSource } from './source.ts';
import { Wakes } from './wakes.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

describeService('Redis', () => {
  test('looks again at once at a slot that it was told of while it looked there', async () => {
    const url = await sharedServer('Redis');
    const prefix = `source-test:${process.pid}:`;
    const settings = readOptions({ url, prefix, slots: 1, clock: virtualClock(), log: quiet });
    const { host, leaseMs } = settings;
    const server = new RedisServer(settings);
    const channel = `${prefix}wake`;
    const wakes = new Wakes(server, channel, host);
    onTestFinished(async () => {
      await server.onNode(`${prefix}meta`, (client) => client.del(`${prefix}meta`));
      await wakes.close();
      await server.close();
    });
    const slotCount = new SlotCount(server, settings);
    await slotCount.agree();
    const slots = [slotKeys(prefix, 0)];
    const nextToken = () => 'token';
    const parts = { server, slots, slotCount, channel, leaseMs, host, nextToken, wakes };
    const source = new RedisSource(parts);
    source.watch(() => undefined);
    const taking = source.take(10);
    wakes.tell(0, 0);
    expect(await taking).toEqual({ leased: [], nextInMs: 0 });
    // And not before it is told again.
    expect(await source.take(10)).toEqual({ leased: [], nextInMs: 1000 });
  });
});

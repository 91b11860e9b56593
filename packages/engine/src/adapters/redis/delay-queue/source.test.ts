import { describeService, sharedServer } from '@redrive/services/vitest';
import { virtualClock } from 'redrive/testing';
import { expect, onTestFinished, test } from 'vitest';
import { LeaseConsumer } from '../../../delay-queue/lease-consumer.ts';
import { hostOf } from '../../../host.ts';
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

test('asks a server that is away less and less often, says why, and takes again when it is back', async () => {
  const clock = virtualClock();
  let asked = 0;
  let isAway = true;
  let warnings = 0;
  const warn = () => void (warnings += 1);
  const log = { ...quiet, warn };
  const host = hostOf({ clock, log, random: () => 0.5 });
  const server = {
    run: async () => {
      asked += 1;
      if (isAway) throw new Error('Redis did not answer.');
      return [-1, 0];
    },
    subscribe: async () => () => undefined,
  } as unknown as RedisServer;
  const slotCount = { keep: async () => undefined } as unknown as SlotCount;
  const source = new RedisSource({
    server,
    slots: [slotKeys('q:', 0)],
    slotCount,
    channel: 'q',
    leaseMs: 30_000,
    host,
    nextToken: () => 't',
    wakes: new Wakes(server, 'q', host),
  });
  const consumer = new LeaseConsumer(source, async () => [], {}, host);
  await clock.advance('1m');
  expect(asked).toBeLessThan(25);
  expect(warnings).toBeLessThan(30);
  expect(consumer.trouble).toBe('Redis did not answer.');
  isAway = false;
  await clock.advance('5s');
  expect(consumer.trouble).toBeUndefined();
  await consumer.stop();
});

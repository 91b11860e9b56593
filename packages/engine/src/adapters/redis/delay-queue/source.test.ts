import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { LeaseConsumer } from '../../../delay-queue/lease-consumer.ts';
import { hostOf } from '../../../host.ts';
import { slotKeys } from './layout.ts';
import type { RedisServer } from './server.ts';
import type { SlotCount } from './slot-count.ts';
import { RedisSource } from './source.ts';
import { Wakes } from './wakes.ts';

it('asks a server that is away less and less often, says why, and takes again when it is back', async () => {
  const clock = virtualClock();
  let asked = 0;
  let isAway = true;
  let warnings = 0;
  const warn = () => void (warnings += 1);
  const quiet = () => undefined;
  const log = { debug: quiet, info: quiet, warn, error: quiet };
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

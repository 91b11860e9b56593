import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { hostOf } from '../../../host.ts';
import type { DelayHandler } from '../../../ports/delay-queue.ts';
import type { BrokerClock } from './broker-clock.ts';
import { DueReader } from './due-reader.ts';
import { recordOf } from './entry.ts';
import { handOver } from './handing.ts';
import { Tiers } from './tiers.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** One entry in the hand of a handler, and brokers whose time is known only when they are asked. */
function setup(handler: DelayHandler, isWritten: Promise<boolean> = Promise.resolve(true)) {
  const clock = virtualClock();
  const host = hostOf({ clock, log: quiet, random: () => 0 });
  const brokers = {
    nowMs: 1000,
    ask: async () => void (brokers.nowMs = 1000 + clock.monotonic()),
  };
  const kit = {
    nowMs: () => brokers.nowMs,
    estimateMs: () => brokers.nowMs,
    changed: () => {},
    setAside: async () => true,
  };
  const room = { entries: 0, bytes: 0, maxEntries: 2, maxBytes: 1e6 };
  const reader = new DueReader({ topic: 't', partition: 0, start: 0 }, kit, room);
  const bytes = { id: Buffer.from('e'), key: undefined, payload: Buffer.from('x') };
  const { key, value, headers } = recordOf('t', bytes, { afterMs: 0 });
  const rest = { offset: 0, timestampMs: 1000, leaderEpoch: 1 };
  reader.take([{ ...rest, key, value, headers: [...headers!] }], 1);
  const over = handOver(reader, reader.takeDue(1), {
    handler,
    timeoutMs: 60_000,
    host,
    tiers: new Tiers('p', 1000, 1),
    clock: brokers as unknown as BrokerClock,
    send: () => isWritten,
  });
  return { clock, reader, over };
}

it('pauses from when the handler failed, though nobody has asked for the time since it began', async () => {
  const failing = Promise.withResolvers<never>();
  const { clock, reader, over } = setup(() => failing.promise);
  await clock.advance(5000);
  failing.reject(new Error('It failed.'));
  await over;
  // 100 ms, of which the jitter takes half.
  expect(reader.nextMs).toBe(1000 + 5000 + 50);
});

it('is done with an entry that comes again only when that is written', async () => {
  const again: DelayHandler = async () => [{ type: 'again', delayMs: 1000 }];
  const written = Promise.withResolvers<boolean>();
  const { clock, reader, over } = setup(again, written.promise);
  await clock.advance(0);
  expect([reader.isBusy, reader.progress.safe]).toEqual([true, 0]);
  written.resolve(true);
  await over;
  expect([reader.isBusy, reader.progress.safe]).toEqual([false, 1]);
});

it('is not done with an entry that comes again where that was given up', async () => {
  const again: DelayHandler = async () => [{ type: 'again', delayMs: 1000 }];
  const { reader, over } = setup(again, Promise.resolve(false));
  await over;
  expect(reader.progress.safe).toBe(0);
});

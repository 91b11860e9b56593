import { hostOf } from '@redrive/engine/internal';
import { memoryDelayQueue } from '@redrive/engine/memory';
import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { memoryNotifications } from '../adapters/memory/index.ts';
import { priorityPolicies } from '../model/retry-config.ts';
import type { NotificationHappening, Parts } from './parts.ts';
import { RecordWriter } from './record-writer.ts';
import { type WakeUp, WakeUps } from './wake-ups.ts';

it('remembers the last ten thousand wake-ups, and at most twice as many', async () => {
  const clock = virtualClock();
  const queues = { urgent: memoryDelayQueue({ clock }), bulk: memoryDelayQueue({ clock }) };
  await queues.urgent.open();
  const parts: Parts = {
    host: hostOf({ clock }),
    repository: memoryNotifications(),
    queues,
    policies: priorityPolicies,
    rules: { graceMs: 1, publishWithinMs: 1, publishes: new Set() },
    seed: () => 0,
    tell: () => undefined,
  };
  const wakeUps = new WakeUps(parts, new RecordWriter(parts));
  const of = (from: number, count: number) =>
    Array.from({ length: count }, (_, i): WakeUp => {
      const notificationId = `n${from + i}`;
      return { notificationId, deviceId: 'd', attempt: 2, lane: 'urgent', dueAtMs: 1000 };
    });
  await wakeUps.schedule(of(0, 7500));
  await wakeUps.schedule(of(7500, 7500));
  expect([...of(5000, 1), ...of(14_999, 1)].map((one) => wakeUps.has(one))).toEqual([true, true]);
  expect(wakeUps.has({ ...of(14_999, 1)[0]!, dueAtMs: 1001 })).toBe(false);
  await wakeUps.schedule(of(15_000, 7500));
  await wakeUps.schedule(of(22_500, 7500));
  const known = of(0, 30_000).map((one) => wakeUps.has(one));
  expect(known.slice(-10_000).every((has) => has)).toBe(true);
  expect(known.filter((has) => has).length).toBeLessThanOrEqual(20_000);
});

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

function wakeUpsOf(count: number, first: number): WakeUp[] {
  return Array.from({ length: count }, (_, i) => ({
    notificationId: `n${first + i}`,
    deviceId: 'd',
    attempt: 2,
    lane: 'bulk',
    dueAtMs: 0,
  }));
}

it('a queue that does not answer has a limited number of wake-ups on their way', async () => {
  const clock = virtualClock();
  const asked: number[] = [];
  const looked: number[] = [];
  const told: NotificationHappening[] = [];
  const schedule = async (entries: readonly unknown[]) => {
    asked.push(entries.length);
    await new Promise<never>(() => {});
  };
  const parts = {
    host: hostOf({ clock, log: quiet }),
    queues: { urgent: { schedule }, bulk: { schedule } },
    tell: (event: NotificationHappening) => told.push(event),
  } as unknown as Parts;
  const apply = async (changes: readonly unknown[]) => void looked.push(changes.length);
  const wakeUps = new WakeUps(parts, { apply } as unknown as RecordWriter);

  const first = wakeUps.schedule(wakeUpsOf(10_000, 0));
  await wakeUps.schedule(wakeUpsOf(1, 10_000));
  expect(asked).toEqual([10_000]);
  expect(looked).toEqual([1]);
  expect(told).toEqual([{ type: 'unscheduled', lane: 'bulk', count: 1 }]);

  // Those on their way are given up in the end, and make room for others.
  await clock.advance('5s');
  await first;
  expect(looked).toEqual([1, 10_000]);
  const third = wakeUps.schedule(wakeUpsOf(2, 20_000));
  expect(asked).toEqual([10_000, 2]);
  await clock.advance('5s');
  await third;
});

import { createEngine } from '@redrive/engine';
import { memory, memoryDelayQueue } from '@redrive/engine/memory';
import { createNotifications } from '@redrive/notifications';
import { memoryNotifications } from '@redrive/notifications/memory';
import { virtualClock, type VirtualClock } from 'redrive/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { storeTime } from './store-time.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const DELIVERY_MS = 20_000;
const DEVICES = 20;

/** Two instances on one store, one record store and one pair of queues. The clock of the second is wrong. */
async function stage(skewMs: number) {
  const clock = virtualClock(Date.UTC(2026, 0, 5, 12));
  const store = memory({ clock });
  const repository = memoryNotifications();
  // As Kafka: the same wake-up twice is handed over twice.
  const lacks = ['deduplicates', 'cancels', 'counts'] as const;
  const queues = {
    urgent: memoryDelayQueue({ clock, log: quiet }),
    bulk: memoryDelayQueue({ clock, log: quiet, lacks }),
  };
  const begun: { deviceId: string; atMs: number }[] = [];
  const start = async (name: string, aheadMs: number) => {
    const own = shifted(clock, aheadMs);
    const engine = createEngine({ store, clock: own, log: quiet });
    await engine.start();
    const service = createNotifications({
      repository,
      queues,
      deliver: async ({ deviceId }) => {
        begun.push({ deviceId, atMs: clock.now() });
        await new Promise<void>((resolve) => {
          clock.setTimer(resolve, DELIVERY_MS);
        });
      },
      clock: storeTime(own, () => engine.stats().clockSkewMs),
      defer: queueMicrotask,
      log: quiet,
      // The first one takes a few, so that the others go to the second.
      ...(name === 'right' ? { concurrency: 5, limits: { maxBatch: 1, concurrency: 1 } } : {}),
    });
    await service.start();
    onTestFinished(async () => {
      const stopped = Promise.all([service.stop(), engine.stop()]);
      await clock.advance('1m');
      await stopped;
    });
    return service;
  };
  const right = await start('right', 0);
  await start('wrong', skewMs);
  return { clock, right, begun };
}

function shifted(clock: VirtualClock, aheadMs: number) {
  return {
    now: () => clock.now() + aheadMs,
    monotonic: () => clock.monotonic(),
    setTimer: (callback: () => void, ms: number, unref?: boolean) =>
      clock.setTimer(callback, ms, unref),
    clearTimer: (timer: unknown) => clock.clearTimer(timer),
  };
}

describe('two instances whose clocks are five minutes apart', () => {
  it.each([
    ['high', 300_000],
    ['high', -300_000],
    ['low', 300_000],
    ['low', -300_000],
  ] as const)('deliver %s once and never early, by %i ms', async (priority, skewMs) => {
    const { clock, right, begun } = await stage(skewMs);
    await right.create({
      id: 'n1',
      recipient: { userId: 'u1' },
      priority,
      notification: { title: 'Hello', body: 'World' },
      source: 'test',
    });
    const due = new Map<string, number>();
    for (let i = 0; i < DEVICES; i++) {
      const report = { notificationId: 'n1', deviceId: `d${i}`, attemptNumber: 1 };
      const { dueAtMs } = await right.reportFailure(report);
      due.set(report.deviceId, dueAtMs!);
    }
    await clock.advance('1h');
    expect(begun.map(({ deviceId }) => deviceId).toSorted()).toEqual([...due.keys()].toSorted());
    for (const { deviceId, atMs } of begun) {
      // What two clocks may differ by where nobody can tell.
      expect(atMs).toBeGreaterThanOrEqual(due.get(deviceId)! - 2);
    }
  });
});

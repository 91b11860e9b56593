import { EngineError } from '@redrive/engine';
import { describe, expect, it } from 'vitest';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

const away = () => Promise.reject(new EngineError('STORE_UNAVAILABLE', 'away'));

describe('the sweeper', () => {
  it('schedules again what a queue did not take, as soon as it does', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const { schedule } = scene.queues.urgent;
    scene.queues.urgent.schedule = away;
    const { delayMs, decision } = await scene.service.reportFailure(failure());
    expect(decision).toBe('scheduled');
    expect(scene.happenings).toContainEqual({ type: 'unscheduled', lane: 'urgent', count: 1 });
    await scene.clock.advance(10_000);
    scene.queues.urgent.schedule = schedule;
    await scene.clock.advance(delayMs! - 10_000);
    // It was scheduled again before it was due, so it is not late.
    expect(scene.delivered).toMatchObject([{ attempt: 2 }]);
  });

  it('wakes what a queue has lost', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.queues.urgent.cancel(['n1:d1:2']);
    await scene.clock.advance(delayMs! + 29_000);
    expect(scene.delivered).toEqual([]);
    await scene.clock.advance(6000);
    expect(scene.delivered).toHaveLength(1);
  });

  it('looks ever more seldom at a record that a slow queue has', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low' }));
    const { delayMs } = await scene.service.reportFailure(failure());
    const scheduled: number[] = [];
    scene.queues.bulk.schedule = async () => void scheduled.push(scene.clock.now());
    scene.queues.bulk.expireLeases();
    await scene.repository.find(['n1']);
    // The queue hands nothing over any more.
    const [record] = await scene.repository.find(['n1']);
    await scene.repository.write([
      { ...record!, deliveries: { d1: { ...record!.deliveries['d1']!, attempt: 7 } } },
    ]);
    await scene.clock.advance(delayMs! + 3_600_000);
    expect(scheduled.length).toBeGreaterThan(4);
    expect(scheduled.length).toBeLessThan(20);
  });

  it('publishes what could not be published, each by itself', async () => {
    let isDown = true;
    const letters: string[] = [];
    const scene = await stage({
      deadLetter: async ({ notification_id }) => {
        if (isDown || notification_id === 'n1') throw new Error('down');
        letters.push(notification_id);
      },
    });
    await scene.service.create(notification({ priority: 'low' }));
    await scene.service.create(notification({ id: 'n2', priority: 'low' }));
    await scene.service.reportFailure(failure(4));
    await scene.service.reportFailure({ ...failure(4), notificationId: 'n2' });
    await scene.clock.advance('1m');
    expect(letters).toEqual([]);
    expect((await deliveryIn(scene))?.unpublished).toMatchObject([
      { to: 'dead_letter', attempt: 4, reason: 'EXHAUSTED' },
    ]);
    // The item and the event went out at once, and were told once.
    expect(scene.items).toHaveLength(2);
    expect(scene.events).toHaveLength(2);
    isDown = false;
    await scene.clock.advance('10m');
    expect(letters).toEqual(['n2']);
    expect(await scene.service.get('n2')).not.toHaveProperty('wakeAtMs');
    // The bad one is tried again and again, and blocks nobody.
    expect((await scene.service.get('n1'))?.wakeAtMs).toBeGreaterThan(scene.clock.now());
  });

  it('publishes what an instance without brokers leaves to others', async () => {
    const scene = await stage();
    const without = scene.another({
      consume: false,
      deadLetter: undefined as never,
      event: undefined as never,
      publishedElsewhere: ['dead_letter'],
    });
    await without.start();
    await without.create(notification({ priority: 'low' }));
    await without.reportFailure(failure(4));
    await scene.clock.advance('1m');
    expect(scene.letters).toMatchObject([{ notification_id: 'n1', reason: 'EXHAUSTED' }]);
    // Nobody said that events are published.
    expect(scene.events).toEqual([]);
  });

  it('finishes what an instance left behind that died between its write and its publication', async () => {
    const scene = await stage({ consume: false, deadLetter: () => new Promise(() => {}) });
    await scene.service.create(notification({ priority: 'low' }));
    await scene.service.reportFailure(failure(4));
    const letters: string[] = [];
    const other = scene.another({
      consume: true,
      deadLetter: async ({ device_id }) => void letters.push(device_id),
    });
    await other.start();
    await scene.clock.advance('20s');
    expect(letters).toEqual(['d1']);
  });

  it('deletes what is over and old, and nothing else', async () => {
    const scene = await stage({ retentionMs: 86_400_000 });
    await scene.service.create(notification({ id: 'old', ttlMs: 60_000 }));
    await scene.service.create(notification({ id: 'later', ttlMs: 10 * 86_400_000 }));
    await scene.clock.advance('2d');
    expect(await scene.service.get('old')).toBeUndefined();
    expect(await scene.service.get('later')).toMatchObject({ status: 'pending' });
  });

  it('does nothing about a record that another one was faster to look at', async () => {
    const scene = await stage();
    await scene.another().start();
    await scene.service.create(notification());
    await scene.service.reportFailure(failure());
    await scene.queues.urgent.cancel(['n1:d1:2']);
    const { due } = scene.repository;
    const waiting: (() => void)[] = [];
    // Both find it before one of them has written.
    scene.repository.due = async (...args) => {
      const found = await due.apply(scene.repository, args);
      if (found.length === 0 || waiting.length === 2) return found;
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 2) for (const goOn of waiting) goOn();
      });
      return found;
    };
    await scene.clock.advance('2m');
    expect(waiting).toHaveLength(2);
    const counts = scene.happenings.flatMap((one) => (one.type === 'swept' ? [one.count] : []));
    expect(counts.toSorted((a, b) => a - b)).toEqual([0, 1]);
  });

  it('goes on after the repository was away', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.queues.urgent.cancel(['n1:d1:2']);
    const { due } = scene.repository;
    scene.repository.due = away;
    await scene.clock.advance(delayMs! + 60_000);
    expect(scene.service.stats()).toMatchObject({ trouble: 'away' });
    scene.repository.due = due;
    await scene.clock.advance('1m');
    expect(scene.service.stats()).not.toHaveProperty('trouble');
    expect(scene.delivered).toHaveLength(1);
  });
});

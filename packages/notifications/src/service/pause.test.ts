import { describe, expect, it } from 'vitest';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

const HOUR_MS = 3_600_000;

describe('a lane that is paused', () => {
  it('delivers nothing, whatever is due or looked at, until it is resumed', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    await scene.service.reportFailure(failure());
    await scene.service.pause('urgent');
    await scene.clock.advance(HOUR_MS);
    expect(scene.delivered).toEqual([]);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry', attempt: 2 });
    expect(scene.service.stats().lanes).toMatchObject({
      urgent: { isPaused: true },
      bulk: { isPaused: false },
    });
    await scene.service.resume('urgent');
    await scene.clock.advance(1);
    expect(scene.delivered).toMatchObject([{ attempt: 2 }]);
  });

  it('leaves the other lane alone', async () => {
    const scene = await stage();
    await scene.service.pause('urgent');
    await scene.service.create(notification({ priority: 'low' }));
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.clock.advance(delayMs!);
    expect(scene.delivered).toMatchObject([{ attempt: 2 }]);
  });

  it('heaps up no wake-ups in a queue that takes the same one twice', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low' }));
    await scene.service.reportFailure(failure());
    await scene.service.pause('bulk');
    await scene.clock.advance(10 * HOUR_MS);
    // Its own, and one of the sweeper, which cannot know whether the first is still there.
    expect(scene.queues.bulk.ids()).toHaveLength(2);
    await scene.service.resume('bulk');
    await scene.clock.advance(1000);
    expect(scene.delivered).toHaveLength(1);
  });

  it('schedules what its queue did not take before', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low' }));
    await scene.service.pause('bulk');
    const { schedule } = scene.queues.bulk;
    scene.queues.bulk.schedule = () => Promise.reject(new Error('It is away.'));
    await scene.service.reportFailure(failure());
    await scene.clock.advance(HOUR_MS);
    expect(scene.queues.bulk.ids()).toEqual([]);
    scene.queues.bulk.schedule = schedule;
    await scene.clock.advance(10 * 60_000);
    expect(scene.queues.bulk.ids()).not.toEqual([]);
    expect(scene.delivered).toEqual([]);
  });

  it('lets go of notifications whose time to live is over', async () => {
    const scene = await stage();
    await scene.service.create(notification({ ttlMs: HOUR_MS }));
    await scene.service.reportFailure(failure());
    await scene.service.pause('urgent');
    await scene.clock.advance(HOUR_MS + 10_000);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired' });
    await scene.service.resume('urgent');
    await scene.clock.advance(HOUR_MS);
    expect(scene.delivered).toEqual([]);
  });

  it('begins none of a batch that waits for room, and ends what is under way', async () => {
    const gates: (() => void)[] = [];
    const begun: string[] = [];
    const deliver = ({ deviceId }: { deviceId: string }) => {
      begun.push(deviceId);
      const gate = Promise.withResolvers<void>();
      gates.push(gate.resolve);
      return gate.promise;
    };
    const scene = await stage({ deliver, concurrency: 2 });
    await scene.service.create(notification());
    const ids = ['a', 'b', 'c', 'd', 'e'];
    await scene.service.reportFailures(ids.map((deviceId) => ({ ...failure(), deviceId })));
    await scene.clock.advance(60_000);
    expect(begun).toHaveLength(2);
    expect(scene.service.stats().lanes.urgent.running).toBe(2);
    const paused = scene.service.pause('urgent');
    for (const open of gates) open();
    await scene.clock.advance(60_000);
    await paused;
    expect(begun).toHaveLength(2);
    expect(await deliveryIn(scene, begun[0])).toMatchObject({ state: 'DeliverySucceeded' });
    await scene.service.resume('urgent');
    await scene.clock.advance(1);
    expect(begun).toHaveLength(4);
    for (const open of gates) open();
    await scene.clock.advance(1000);
    for (const open of gates) open();
    await scene.clock.advance(1000);
    expect(begun.toSorted()).toEqual(ids);
  });

  it('stays paused where it was paused before the start', async () => {
    const scene = await stage();
    await scene.service.stop();
    const other = scene.another();
    await other.pause('urgent');
    await other.start();
    await other.create(notification());
    await other.reportFailure(failure());
    await scene.clock.advance(HOUR_MS);
    expect(scene.delivered).toEqual([]);
    await other.resume('urgent');
    await scene.clock.advance(1);
    expect(scene.delivered).toHaveLength(1);
  });

  it('ends as it was asked last, however fast it is paused and resumed', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    await scene.service.reportFailure(failure());
    await Promise.all([
      scene.service.pause('urgent'),
      scene.service.resume('urgent'),
      scene.service.pause('urgent'),
    ]);
    await scene.clock.advance(HOUR_MS);
    expect(scene.delivered).toEqual([]);
    await Promise.all([
      scene.service.resume('urgent'),
      scene.service.pause('urgent'),
      scene.service.resume('urgent'),
    ]);
    await scene.clock.advance(1);
    expect(scene.delivered).toHaveLength(1);
  });

  it('is consumed again as soon as its queue is back', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    await scene.service.reportFailure(failure());
    await scene.service.pause('urgent');
    await scene.clock.advance(HOUR_MS);
    const { consume } = scene.queues.urgent;
    scene.queues.urgent.consume = () => Promise.reject(new Error('It is away.'));
    const resumed = scene.service.resume('urgent');
    await scene.clock.advance(10_000);
    scene.queues.urgent.consume = consume;
    await scene.clock.advance(10_000);
    await resumed;
    expect(scene.delivered).toHaveLength(1);
  });

  it('stays paused where its queue was away for the resume before', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    await scene.service.reportFailure(failure());
    await scene.service.pause('urgent');
    const { consume } = scene.queues.urgent;
    scene.queues.urgent.consume = () => Promise.reject(new Error('It is away.'));
    const resumed = scene.service.resume('urgent');
    await scene.clock.advance(10_000);
    await scene.service.pause('urgent');
    scene.queues.urgent.consume = consume;
    await scene.clock.advance(HOUR_MS);
    await resumed;
    expect(scene.delivered).toEqual([]);
  });

  it('is refused by another name', async () => {
    const scene = await stage();
    const bad = { code: 'INVALID_NOTIFICATIONS' };
    await expect(scene.service.pause('high' as 'urgent')).rejects.toMatchObject(bad);
    await expect(scene.service.resume('high' as 'urgent')).rejects.toMatchObject(bad);
  });
});

it('a start that is tried again consumes each queue once', async () => {
  const scene = await stage();
  await scene.service.stop();
  const { consume } = scene.queues.bulk;
  let consumed = 0;
  const { consume: urgent } = scene.queues.urgent;
  scene.queues.urgent.consume = (...args) => {
    consumed += 1;
    return urgent.apply(scene.queues.urgent, args);
  };
  scene.queues.bulk.consume = () => Promise.reject(new Error('It is away.'));
  const other = scene.another();
  const started = other.start();
  await scene.clock.advance(10_000);
  scene.queues.bulk.consume = consume;
  await scene.clock.advance(10_000);
  await started;
  expect(consumed).toBe(1);
});

import { type DelayLimits, EngineError } from '@redrive/engine';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DeliverOutcome } from './delivery.ts';
import type { NotificationOptions } from './options.ts';
import { deliveryIn, notification, type Stage, stage } from './stage.test.ts';

const soon = { base: '1s', cap: '1s', jitter: 'none' } as const;
const policies = { critical: soon, low: soon };
/** Four batches of reports are under way at once, with 200 each. */
const MANY = 1000;

/** Deliveries that are answered only at the end of the test. */
function heldDeliveries() {
  const end = Promise.withResolvers<Exclude<DeliverOutcome, { outcome: 'stopped' }>>();
  const begun: string[] = [];
  onTestFinished(() => end.resolve({ outcome: 'delivered' }));
  const deliver: NotificationOptions['deliver'] = ({ notificationId }) => {
    begun.push(notificationId);
    return end.promise;
  };
  return { begun, deliver };
}

async function created({ service }: Stage, priority: 'critical' | 'low', count: number) {
  const ids = Array.from({ length: count }, (_, i) => `${priority}${i}`);
  await service.createMany(ids.map((id) => notification({ id, priority })));
  return ids.map((notificationId) => ({ notificationId, deviceId: 'd1', attemptNumber: 1 }));
}

describe('a lane', () => {
  it('never has more deliveries under way than it may, however many batches are handed over', async () => {
    const { begun, deliver } = heldDeliveries();
    const limits = { maxBatch: 3, concurrency: 4 };
    const scene = await stage({ policies, deliver, limits, concurrency: 5 });
    await scene.service.reportFailures(await created(scene, 'low', 20));
    await scene.clock.advance('2s');
    expect(begun.length).toBe(5);
    expect(scene.service.stats().running).toBe(5);
  });

  it('goes on with the next ones as soon as some have ended', async () => {
    const limits = { maxBatch: 3, concurrency: 4 };
    const scene = await stage({ policies, limits, concurrency: 2 });
    await scene.service.reportFailures(await created(scene, 'low', 20));
    await scene.clock.advance('2s');
    expect(scene.delivered.length).toBe(20);
  });

  it('keeps no place for wake-ups that do nothing', async () => {
    const scene = await stage({ policies, concurrency: 1 });
    const [first] = await created(scene, 'low', 1);
    const payload = Buffer.from('{"notification_id":"unknown","device_id":"d1","attempt":2}');
    await scene.queues.bulk.schedule([{ id: 'stale', delayMs: 0, payload }]);
    await scene.clock.advance('1s');
    expect(scene.happenings).toContainEqual({ type: 'dropped', lane: 'bulk', reason: 'unknown' });
    await scene.service.reportFailure(first!);
    await scene.clock.advance('2s');
    expect(scene.delivered.map(({ id }) => id)).toEqual(['low0']);
  });

  it('keeps one place for a delivery that it takes over from a worker that was lost', async () => {
    const { begun, deliver } = heldDeliveries();
    const scene = await stage({ policies, deliver, concurrency: 1 });
    const [first, second] = await created(scene, 'low', 2);
    await scene.service.reportFailure(first!);
    await scene.clock.advance('2s');
    // It is aborted, and leaves its lease behind.
    const stopped = scene.service.stop();
    await scene.clock.advance('10s');
    await stopped;
    const other = scene.another();
    await other.start();
    await scene.clock.advance('1m');
    expect(begun).toEqual(['low0', 'low0']);
    await other.reportFailure(second!);
    await scene.clock.advance('2s');
    expect(begun).toEqual(['low0', 'low0']);
    expect(other.stats().running).toBe(1);
  });

  it('claims nothing more once it stops: another instance gets the rest at once', async () => {
    const { begun, deliver } = heldDeliveries();
    const scene = await stage({ policies, deliver, concurrency: 1 });
    await scene.service.reportFailures(await created(scene, 'low', 3));
    await scene.clock.advance('2s');
    expect(begun).toEqual(['low0']);
    const stopped = scene.service.stop();
    await scene.clock.advance('10s');
    await stopped;
    expect(begun).toEqual(['low0']);
    await scene.another({ deliver: async () => undefined }).start();
    await scene.clock.advance('1s');
    for (const id of ['low1', 'low2'])
      expect(await deliveryIn(scene, 'd1', id)).toMatchObject({ state: 'DeliverySucceeded' });
  });
});

describe('a queue that does not answer', () => {
  it('holds up no reports of the other lane', async () => {
    const scene = await stage({ policies });
    const [critical] = await created(scene, 'critical', 1);
    const low = await created(scene, 'low', MANY);
    scene.queues.bulk.schedule = () => new Promise<never>(() => {});
    let isAnswered = false;
    const reporting = scene.service.reportFailures(low).then(() => (isAnswered = true));
    expect((await scene.service.reportFailure(critical!)).decision).toBe('scheduled');
    await scene.clock.advance('1s');
    expect(scene.delivered.map(({ id }) => id)).toEqual(['critical0']);
    expect(isAnswered).toBe(false);
    await scene.clock.advance('10s');
    await reporting;
  });

  it('keeps no record of the other lane from being looked at', async () => {
    const scene = await stage({ policies });
    const low = await created(scene, 'low', MANY);
    const critical = await created(scene, 'critical', 1);
    const { urgent, bulk } = scene.queues;
    const schedule = urgent.schedule.bind(urgent);
    const isAway = () => Promise.reject(new Error('away'));
    [urgent.schedule, bulk.schedule] = [isAway, isAway];
    await scene.service.reportFailures([...low, ...critical]);
    urgent.schedule = schedule;
    bulk.schedule = () => new Promise<never>(() => {});
    // One round of the sweeper.
    await scene.clock.advance('4s');
    expect(scene.delivered.map(({ id }) => id)).toEqual(['critical0']);
  });
});

describe('a queue that is away at the start', () => {
  it('keeps neither the other lane nor reports from their work, and begins when it is back', async () => {
    const before = await stage({ policies, consume: false });
    const low = await created(before, 'low', 1);
    const critical = await created(before, 'critical', 1);
    const { bulk } = before.queues;
    const open = bulk.open.bind(bulk);
    bulk.open = () => Promise.reject(new Error('away'));
    const service = before.another({ consume: true });
    let isStarted = false;
    const started = service.start().then(() => (isStarted = true));
    await before.clock.advance('1s');
    expect(service.stats()).toMatchObject({
      isOpen: true,
      lanes: { urgent: { isOpen: true }, bulk: { isOpen: false } },
    });
    await service.reportFailures([...critical, ...low]);
    await before.clock.advance('2s');
    expect(before.delivered.map(({ id }) => id)).toEqual(['critical0']);
    // An operator can pause and resume the lane that works meanwhile.
    await service.pause('urgent');
    await service.resume('urgent');
    expect(isStarted).toBe(false);
    bulk.open = open;
    await before.clock.advance('1m');
    await started;
    expect(before.delivered.map(({ id }) => id)).toEqual(['critical0', 'low0']);
    expect(service.stats().lanes.bulk.isOpen).toBe(true);
  });

  it('is not consumed by a service that was stopped meanwhile', async () => {
    const scene = await stage({ policies, consume: false });
    const opening = Promise.withResolvers<void>();
    let consumers = 0;
    scene.queues.bulk.open = () => opening.promise;
    scene.queues.bulk.consume = async () => {
      consumers += 1;
      return { stop: async () => undefined };
    };
    const service = scene.another({ consume: true });
    void service.start().catch(() => undefined);
    await scene.clock.advance('1s');
    const stopped = service.stop();
    opening.resolve();
    await scene.clock.advance('20s');
    await stopped;
    expect(consumers).toBe(0);
  });
});

describe('a queue in trouble', () => {
  it('is told with its reason, at the start and later, until it works', async () => {
    const scene = await stage({ consume: false });
    const { urgent } = scene.queues;
    const open = urgent.open.bind(urgent);
    urgent.open = () => Promise.reject(new Error('Redis refuses the password.'));
    const service = scene.another({ consume: true });
    const started = service.start();
    await scene.clock.advance('1s');
    expect(service.stats().lanes).toMatchObject({
      urgent: { isOpen: false, trouble: 'Redis refuses the password.' },
      bulk: { isOpen: true },
    });
    expect(service.stats().lanes.bulk).not.toHaveProperty('trouble');
    urgent.open = open;
    const told: { trouble?: string } = {};
    const consume = urgent.consume.bind(urgent);
    urgent.consume = async (...args) => {
      const consumer = await consume(...args);
      return {
        get trouble() {
          return told.trouble;
        },
        stop: () => consumer.stop(),
      };
    };
    await scene.clock.advance('1m');
    await started;
    expect(service.stats().lanes.urgent).not.toHaveProperty('trouble');
    told.trouble = 'Redis does not answer.';
    expect(service.stats().lanes.urgent).toMatchObject({ isOpen: true, ...told });
  });

  it('that no waiting heals ends the start, and the other lane works', async () => {
    const scene = await stage({ policies, consume: false });
    scene.queues.bulk.open = () =>
      Promise.reject(new EngineError('PEER_MISSING', 'npm install @platformatic/kafka'));
    const service = scene.another({ consume: true });
    await expect(service.start()).rejects.toMatchObject({ code: 'PEER_MISSING' });
    await service.reportFailures(await created(scene, 'critical', 1));
    await scene.clock.advance('2s');
    expect(scene.delivered.map(({ id }) => id)).toEqual(['critical0']);
  });
});

it('a lane leases no more than it can start soon', async () => {
  const scene = await stage({ consume: false });
  const limits: DelayLimits[] = [];
  const { urgent } = scene.queues;
  const consume = urgent.consume.bind(urgent);
  urgent.consume = (handler, given) => {
    limits.push(given);
    return consume(handler, given);
  };
  await scene.another({ consume: true, concurrency: 5 }).start();
  await scene.another({ consume: true, concurrency: 500 }).start();
  expect(limits.map(({ maxBatch }) => maxBatch)).toEqual([5, 100]);
});

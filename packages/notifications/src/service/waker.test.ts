import { EngineError } from '@redrive/engine';
import { describe, expect, it } from 'vitest';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

const HOUR_MS = 3_600_000;
const payload = (attempt: number) =>
  Buffer.from(JSON.stringify({ notification_id: 'n1', device_id: 'd1', attempt }));
const entry = (attempt: number, id = `x${attempt}`) => ({
  id,
  delayMs: 0,
  payload: payload(attempt),
});

describe('a wake-up', () => {
  it('that is early, stale, unknown, unreadable or for what is over delivers nothing, and is counted', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.queues.urgent.schedule([
      entry(2),
      entry(1),
      entry(3),
      { id: 'other', delayMs: 0, payload: Buffer.from('{}') },
      { id: 'text', delayMs: 0, payload: Buffer.from('no') },
    ]);
    await scene.clock.advance(delayMs! - 1);
    expect(scene.delivered).toEqual([]);
    await scene.clock.advance(1);
    expect(scene.delivered).toHaveLength(1);
    await scene.clock.advance(1000);
    await scene.queues.urgent.schedule([entry(2, 'again')]);
    await scene.clock.advance(1000);
    expect(scene.delivered).toHaveLength(1);
    const reasons = scene.happenings.flatMap((one) => (one.type === 'dropped' ? [one.reason] : []));
    // Of the two for this attempt, one began it and the other came too late.
    expect(reasons.toSorted()).toEqual([
      'in_delivery',
      'over',
      'stale',
      'stale',
      'unreadable',
      'unreadable',
    ]);
  });

  it('that comes twice at two workers delivers once', async () => {
    const scene = await stage();
    const other = scene.another();
    await other.start();
    await scene.service.create(notification({ priority: 'low' }));
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.queues.bulk.schedule(
      [1, 2, 3].map((n) => ({ ...entry(2, `copy${n}`), delayMs: delayMs! })),
    );
    await scene.clock.advance(delayMs! + 1000);
    expect(scene.delivered).toHaveLength(1);
  });

  it('waits for the local clock where the queue believes that it is due', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    scene.clock.jump(-60_000);
    await scene.clock.advance(delayMs! + 59_000);
    expect(scene.delivered).toEqual([]);
    await scene.clock.advance(2000);
    expect(scene.delivered).toHaveLength(1);
  });

  it('after the end of its notification expires it', async () => {
    const scene = await stage({ consume: false });
    await scene.service.create(notification({ ttlMs: 60_000 }));
    await scene.service.reportFailure(failure());
    await scene.clock.advance('2m');
    const worker = scene.another({ consume: true });
    await worker.start();
    await scene.clock.advance(1000);
    expect(scene.delivered).toEqual([]);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired' });
    expect(await scene.service.get('n1')).toMatchObject({ status: 'expired' });
  });

  it('in quiet hours that began meanwhile waits for their end, and spends no attempt', async () => {
    const scene = await stage({ consume: false });
    const quietHours = { from: '12:05', to: '13:00', timeZone: 'UTC' };
    await scene.service.create(notification({ quietHours }));
    await scene.service.reportFailure(failure());
    await scene.clock.advance('10m');
    const worker = scene.another({ consume: true });
    await worker.start();
    await scene.clock.advance('30m');
    expect(scene.delivered).toEqual([]);
    expect(await deliveryIn(scene)).toMatchObject({
      state: 'AwaitingRetry',
      attempt: 2,
      dueAtMs: Date.UTC(2026, 0, 5, 13),
    });
    await scene.clock.advance('21m');
    expect(scene.delivered).toMatchObject([{ attempt: 2, atMs: Date.UTC(2026, 0, 5, 13) }]);
  });
});

describe('a delivery', () => {
  it('that was not sent comes again in time, though its entry is still in hand', async () => {
    const slow = Promise.withResolvers<void>();
    const got: string[] = [];
    const scene = await stage({
      concurrency: 1,
      deliver: async ({ deviceId }) => {
        got.push(deviceId);
        if (got.length === 1) return { outcome: 'not_sent', delayMs: 1000 };
        if (deviceId === 'd2') await slow.promise;
        return { outcome: 'delivered' };
      },
    });
    // All of them are due at once, and so in one batch.
    await scene.service.create(notification({ scheduledAtMs: scene.clock.now() + 3_600_000 }));
    const devices = ['d1', 'd2', 'd3'];
    await scene.service.reportFailures(devices.map((deviceId) => ({ ...failure(), deviceId })));
    await scene.clock.advance('1h');
    expect(got).toEqual(['d1', 'd2']);
    await scene.clock.advance(500);
    slow.resolve();
    await scene.clock.advance(600);
    expect(got).toEqual(['d1', 'd2', 'd3', 'd1']);
  });

  it('that takes too long has failed, and its late answer changes nothing', async () => {
    const late = Promise.withResolvers<void>();
    const signals: AbortSignal[] = [];
    const scene = await stage({
      deliver: async ({ signal }) => {
        signals.push(signal);
        await late.promise;
      },
    });
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.clock.advance(delayMs! + 30_001);
    expect(signals[0]?.aborted).toBe(true);
    expect(await deliveryIn(scene)).toMatchObject({
      state: 'AwaitingRetry',
      attempt: 3,
      failure: { code: 'TIMEOUT' },
    });
    late.resolve();
    await scene.clock.advance(0);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry', attempt: 3 });
  });

  it('that throws has failed, with the code of the error', async () => {
    const scene = await stage({
      deliver: async () => {
        throw Object.assign(new Error('gone'), { code: 'ECONNRESET' });
      },
    });
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.clock.advance(delayMs!);
    expect((await scene.service.attempts('n1', { limit: 5 }))[1]).toMatchObject({
      errorCode: 'ECONNRESET',
      errorMessage: 'gone',
    });
  });

  it('that sent nothing comes again, and spends no attempt', async () => {
    const scene = await stage();
    scene.answers.push({ outcome: 'not_sent', delayMs: 60_000 });
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.clock.advance(delayMs!);
    expect(await deliveryIn(scene)).toMatchObject({
      state: 'AwaitingRetry',
      attempt: 2,
      retryCount: 1,
    });
    await scene.clock.advance('2m');
    expect(scene.delivered.map(({ attempt }) => attempt)).toEqual([2, 2]);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded' });
  });

  it('that was handed over waits for a report: a failure, a success, or its end', async () => {
    const scene = await stage();
    scene.answers.push({ outcome: 'handed_over' }, { outcome: 'handed_over' });
    await scene.service.create(notification({ ttlMs: 3_600_000 }));
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.clock.advance(delayMs!);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Retrying', handedOver: true });
    await scene.clock.advance('5m');
    const second = await scene.service.reportFailure(failure(2));
    expect(second).toMatchObject({ decision: 'scheduled' });
    await scene.clock.advance(second.delayMs!);
    expect(scene.delivered.map(({ attempt }) => attempt)).toEqual([2, 3]);
    // Nobody reports on the third.
    await scene.clock.advance('1h');
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired', attempt: 3 });
    expect(await scene.service.reportSuccess(failure(3))).toMatchObject({
      decision: 'over',
      status: 'expired',
    });
  });

  it('whose report is faster than the settle of its hand-over loses nothing', async () => {
    const scene = await stage({
      deliver: async () => {
        await scene.service.reportFailure(failure(2));
        return { outcome: 'handed_over' };
      },
    });
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.clock.advance(delayMs!);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry', attempt: 3 });
    expect(await deliveryIn(scene)).not.toHaveProperty('handedOver');
  });

  it('whose worker died after it had recorded the outcome is not done again', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    const { write } = scene.repository;
    let isDead = false;
    scene.repository.write = async (records, attempts) => {
      if (isDead && records.length > 0) throw new EngineError('STORE_UNAVAILABLE', 'dead');
      const written = await write.call(scene.repository, records, attempts);
      isDead ||= records.some(({ deliveries }) => deliveries['d1']?.state === 'Retrying');
      return written;
    };
    await scene.clock.advance(delayMs!);
    expect(scene.delivered).toHaveLength(1);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Retrying' });
    await scene.clock.advance('70s');
    scene.repository.write = write;
    await scene.clock.advance('2m');
    expect(scene.delivered).toHaveLength(1);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded', attempt: 2 });
  });

  it('whose claim took so long that its lease could end meanwhile is not begun', async () => {
    const scene = await stage({ deliverTimeoutMs: 30_000, leaseMs: 60_000 });
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    const { write } = scene.repository;
    let isSlow = true;
    scene.repository.write = async (records, attempts) => {
      const written = await write.call(scene.repository, records, attempts);
      const isClaim = records.some(({ deliveries }) => deliveries['d1']?.state === 'Retrying');
      if (!isClaim || !isSlow) return written;
      isSlow = false;
      // Written, and answered when less of the lease is left than a delivery may take.
      await new Promise<void>((resolve) => {
        scene.clock.setTimer(resolve, 30_001);
      });
      return written;
    };
    await scene.clock.advance(delayMs! + 30_000);
    expect(isSlow).toBe(false);
    await scene.clock.advance(1);
    expect(scene.happenings).toContainEqual({
      type: 'postponed',
      lane: 'urgent',
      reason: 'not_sent',
    });
    await scene.clock.advance(1000);
    expect(scene.delivered).toMatchObject([{ attempt: 2 }]);
    expect(scene.happenings.filter(({ type }) => type === 'started')).toHaveLength(2);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded' });
  });

  it('whose outcome cannot be written is left to others, with its place, when its lease is over', async () => {
    const scene = await stage({ deliverTimeoutMs: 30_000, leaseMs: 60_000 });
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    const { write } = scene.repository;
    scene.repository.write = async (records, attempts) => {
      if (scene.delivered.length > 0) throw new EngineError('STORE_UNAVAILABLE', 'It is away.');
      return write.call(scene.repository, records, attempts);
    };
    await scene.clock.advance(delayMs! + 55_000);
    expect(scene.service.stats().running).toBe(1);
    await scene.clock.advance(10_000);
    expect(scene.service.stats().running).toBe(0);
    scene.repository.write = write;
    await scene.clock.advance('1m');
    expect(scene.delivered.map(({ attempt }) => attempt)).toEqual([2, 2]);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded' });
  });

  it('that is claimed begins, though one in its batch cannot be taken over from a lost worker', async () => {
    const policies = { high: { base: '1m', jitter: 'none' } } as const;
    const deliverTimeoutMs = 30_000;
    const scene = await stage({ policies, deliverTimeoutMs, leaseMs: 60_000, sweepMs: HOUR_MS });
    scene.answers.push(new Promise<never>(() => {}) as never);
    await scene.service.create(notification());
    await scene.service.reportFailure(failure());
    await scene.clock.advance('1m');
    expect(scene.delivered).toMatchObject([{ deviceId: 'd1' }]);
    const stopped = scene.service.stop();
    await scene.clock.advance('10s');
    await stopped;
    const other = scene.another();
    await other.start();
    // Its lease is over when the other one is due: one batch has both.
    await scene.queues.urgent.schedule([{ ...entry(2), delayMs: 60_000 }]);
    await other.reportFailure({ ...failure(), deviceId: 'd2' });
    const { attempts } = scene.repository;
    scene.repository.attempts = () =>
      Promise.reject(new EngineError('STORE_UNAVAILABLE', 'It is away.'));
    await scene.clock.advance('1m');
    expect(scene.delivered.slice(1)).toMatchObject([{ deviceId: 'd2', attempt: 2 }]);
    scene.repository.attempts = attempts;
    await scene.clock.advance('1m');
    expect(scene.delivered.slice(2)).toMatchObject([{ deviceId: 'd1', attempt: 2 }]);
  });

  it('in a slow lane holds up nobody in the other', async () => {
    const scene = await stage({ concurrency: 2, deliver: () => new Promise(() => {}) });
    const begun: string[] = [];
    const ids = Array.from({ length: 20 }, (_, i) => `low${i}`);
    await scene.service.createMany([
      ...ids.map((id) => notification({ id, priority: 'low' })),
      notification({ id: 'n1', priority: 'critical' }),
    ]);
    await scene.service.reportFailures(
      ids.map((notificationId) => ({ ...failure(), notificationId })),
    );
    await scene.clock.advance('400s');
    expect(scene.happenings.filter(({ type }) => type === 'started').length).toBeGreaterThan(0);
    scene.happenings.length = 0;
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.clock.advance(delayMs!);
    for (const one of scene.happenings)
      if (one.type === 'started') begun.push(`${one.priority} ${one.lateMs}`);
    expect(begun).toContain('critical 0');
  });
});

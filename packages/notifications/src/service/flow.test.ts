/** Every arrow of the document's flow and sequence diagrams, by its name. */
import { describe, expect, it } from 'vitest';
import { priorityPolicies } from '../model/retry-config.ts';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

const limits = { critical: 10, high: 8, medium: 5, low: 3 } as const;
const bases = { critical: 10_000, high: 30_000, medium: 120_000, low: 300_000 } as const;

describe('the flow diagram', () => {
  it('Notification Delivery Failed --> Record failed delivery attempt', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const platformResponse = { status: 503 };
    await scene.service.reportFailure(
      failure(1, { errorCode: 'E', errorMessage: 'm', platformResponse }),
    );
    expect(await scene.service.attempts('n1', { limit: 10 })).toEqual([
      {
        notificationId: 'n1',
        deviceId: 'd1',
        attemptNumber: 1,
        status: 'failed',
        errorCode: 'E',
        errorMessage: 'm',
        platformResponse,
        attemptedAtMs: scene.clock.now(),
      },
    ]);
  });

  it.each(['critical', 'high', 'medium', 'low'] as const)(
    'Check max retries --> Max retries reached --> Mark as permanently failed (%s)',
    async (priority) => {
      const scene = await stage();
      await scene.service.create(notification({ priority }));
      const last = limits[priority] + 1;
      expect(await scene.service.reportFailure(failure(last - 1))).toMatchObject({
        decision: 'scheduled',
      });
      expect(await scene.service.reportFailure(failure(last))).toMatchObject({
        decision: 'failed',
        status: 'failed',
        explanation: expect.stringContaining('no attempts are left') as string,
      });
      expect(await deliveryIn(scene)).toMatchObject({
        state: 'PermanentFailure',
        reason: 'EXHAUSTED',
      });
    },
  );

  it('Mark as permanently failed --> Send to dead-letter queue --> Update notification status --> Log failure to metrics', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low', data: { order: 7 } }));
    await scene.service.reportFailure(failure(1, { errorCode: 'A' }));
    await scene.service.reportFailure(failure(4, { errorCode: 'B', errorMessage: 'no' }));
    await scene.clock.advance(0);
    expect(scene.letters).toMatchObject([
      {
        notification_id: 'n1',
        device_id: 'd1',
        user_id: 'u1',
        priority: 'low',
        reason: 'EXHAUSTED',
        error_code: 'B',
        error_message: 'no',
        attempt_number: 4,
        retry_count: 1,
        failed_at: new Date(scene.clock.now()).toISOString(),
        notification: { title: 'Hello', body: 'World' },
        data: { order: 7 },
        attempts: [
          { attempt_number: 1, error_code: 'A' },
          { attempt_number: 4, error_code: 'B' },
        ],
      },
    ]);
    expect(scene.items).toHaveLength(1);
    expect(scene.happenings).toContainEqual({
      type: 'failed',
      priority: 'low',
      reason: 'EXHAUSTED',
    });
    expect(await deliveryIn(scene)).toMatchObject({ unpublished: [] });
    expect(await scene.service.get('n1')).toMatchObject({ status: 'failed' });
    expect(await scene.service.get('n1')).not.toHaveProperty('wakeAtMs');
  });

  it('Log failure to metrics --> End: No more retries', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low' }));
    await scene.service.reportFailure(failure(4));
    await scene.clock.advance('1d');
    expect(scene.delivered).toEqual([]);
    expect(scene.queues.bulk.ids()).toEqual([]);
  });

  it('Check max retries --> Retries remaining --> Calculate backoff delay --> Get device information --> Check device active status', async () => {
    const asked: string[] = [];
    const look = async (id: string) => {
      asked.push(id);
      return { active: true };
    };
    const scene = await stage({ devices: { look } });
    await scene.service.create(notification({ priority: 'low' }));
    expect(await scene.service.reportFailure(failure(1))).toMatchObject({ decision: 'scheduled' });
    expect(asked).toEqual(['d1']);
    // Nobody asks where no retry is left.
    await scene.service.reportFailure(failure(4));
    expect(asked).toEqual(['d1']);
  });

  it('Check device active status --> Device inactive --> Skip retry for device --> End: Device inactive', async () => {
    const scene = await stage({ devices: { look: async () => ({ active: false }) } });
    await scene.service.create(notification());
    expect(await scene.service.reportFailure(failure())).toEqual({
      decision: 'skipped',
      retryCount: 0,
      status: 'skipped',
      explanation: 'The device is inactive, so the retry is skipped.',
    });
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Skipped' });
    expect(scene.queues.urgent.ids()).toEqual([]);
    expect(scene.happenings).toContainEqual({
      type: 'skipped',
      priority: 'high',
      reason: 'device_inactive',
    });
    await scene.clock.advance('1d');
    expect(scene.delivered).toEqual([]);
  });

  it.each([
    ['Critical', 'Short backoff: 10s base', 'critical', 'Redis', 'urgent'],
    ['High', 'Medium backoff: 30s base', 'high', 'Redis', 'urgent'],
    ['Medium', 'Long backoff: 2m base', 'medium', 'Kafka', 'bulk'],
    ['Low', 'Extended backoff: 5m base', 'low', 'Kafka', 'bulk'],
  ] as const)(
    'Device active --> Apply exponential backoff --> Apply jitter --> %s --> %s --> Schedule retry (%s with %s)',
    async (_, __, priority, ___, lane) => {
      const scene = await stage();
      await scene.service.create(notification({ priority }));
      for (const attempt of [1, 2, 3]) {
        const delayMs = bases[priority] * 2 ** (attempt - 1);
        const answer = await scene.service.reportFailure(failure(attempt));
        expect(answer).toMatchObject({ decision: 'scheduled', lane });
        expect(answer.delayMs).toBeGreaterThanOrEqual(delayMs);
        expect(answer.delayMs).toBeLessThanOrEqual(delayMs * 1.3);
        expect(answer.dueAtMs).toBe(scene.clock.now() + answer.delayMs!);
        expect(scene.queues[lane].ids()).toContain(`n1:d1:${attempt + 1}`);
      }
      const other = lane === 'urgent' ? 'bulk' : 'urgent';
      expect(scene.queues[other].ids()).toEqual([]);
    },
  );

  it('Schedule retry --> Increment retry count --> Update notification status to "retrying" --> End: Scheduled for retry', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    expect((await scene.service.get('n1'))?.status).toBe('pending');
    await scene.service.reportFailure(failure(1));
    await scene.service.reportFailure({ ...failure(1), deviceId: 'd2' });
    const record = await scene.service.get('n1');
    expect(record).toMatchObject({ status: 'retrying', retryCount: 2 });
    expect(record?.deliveries['d1']).toMatchObject({
      state: 'AwaitingRetry',
      attempt: 2,
      retryCount: 1,
    });
    const { delayMs } = scene.happenings.find(({ type }) => type === 'scheduled') as {
      delayMs: number;
    };
    expect(scene.happenings).toContainEqual({
      type: 'scheduled',
      priority: 'high',
      lane: 'urgent',
      delayMs,
    });
  });
});

describe('the sequence diagram', () => {
  it('Processor->>MongoDB: Record failed delivery attempt; MongoDB-->>Processor: Confirm save', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    await scene.service.reportFailure(failure(1));
    await scene.service.reportFailure(failure(1));
    expect(await scene.service.attempts('n1', { limit: 10 })).toHaveLength(1);
    expect(scene.happenings.filter(({ type }) => type === 'attempted')).toHaveLength(1);
  });

  it('Processor->>RetryMgr: Request retry assessment; RetryMgr->>MongoDB: Get notification details', async () => {
    const scene = await stage();
    await expect(scene.service.reportFailure(failure())).rejects.toMatchObject({
      code: 'NOTIFICATION_UNKNOWN',
      message: 'There is no notification "n1". Create it first.',
    });
    expect(await scene.service.attempts('n1', { limit: 10 })).toEqual([]);
  });

  it('alt Max retries reached: Mark permanently failed; Send to dead-letter queue; Log permanent failure; No more retries', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low' }));
    const answer = await scene.service.reportFailure(failure(4));
    expect(answer).toEqual({
      decision: 'failed',
      retryCount: 0,
      status: 'failed',
      explanation: 'Attempt 4 of 4 failed (unknown); gave up because no attempts are left.',
    });
    await scene.clock.advance(0);
    expect(scene.letters).toHaveLength(1);
    expect(scene.events.map(({ event_type }) => event_type)).toEqual(['failed']);
  });

  it('else Retries remaining: Check device status; Device is active; Calculate backoff with jitter; Schedule; Confirm; Retry scheduled', async () => {
    const scene = await stage({ devices: { look: async () => ({ active: true }) } });
    await scene.service.create(notification({ priority: 'medium' }));
    const answer = await scene.service.reportFailure(failure());
    expect(answer).toMatchObject({
      decision: 'scheduled',
      lane: 'bulk',
      retryCount: 1,
      status: 'retrying',
    });
    expect(scene.queues.bulk.ids()).toEqual(['n1:d1:2']);
    await scene.clock.advance(0);
    expect(scene.events).toMatchObject([
      {
        event_type: 'retry_scheduled',
        notification_id: 'n1',
        user_id: 'u1',
        data: { device_id: 'd1', lane: 'bulk' },
      },
    ]);
  });

  it('else Device inactive: Skip retry for inactive device', async () => {
    const scene = await stage({ devices: { look: async () => ({ active: false }) } });
    await scene.service.create(notification());
    expect(await scene.service.reportFailure(failure())).toMatchObject({ decision: 'skipped' });
  });

  it('the device service is down: the answer is unknown, not inactive, and the retry is scheduled', async () => {
    const scene = await stage({ devices: { look: async () => ({}) } });
    await scene.service.create(notification());
    expect(await scene.service.reportFailure(failure())).toMatchObject({ decision: 'scheduled' });
  });
});

describe('the state diagram, as it is stored', () => {
  it('AwaitingRetry --> Retrying: Retry timer expires; Retrying --> DeliverySucceeded: Retry succeeds', async () => {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const scene = await stage({
      deliver: async () => {
        begun.resolve();
        await end.promise;
      },
    });
    await scene.service.create(notification());
    const { delayMs } = await scene.service.reportFailure(failure());
    expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry', attempt: 2 });
    await scene.clock.advance(delayMs! - 1);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry' });
    await scene.clock.advance(1);
    await begun.promise;
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Retrying', attempt: 2, leases: 1 });
    end.resolve();
    await scene.clock.advance(0);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded', attempt: 2 });
    expect((await scene.service.get('n1'))?.status).toBe('delivered');
  });

  it('Retrying --> DeliveryFailed: Retry fails, until PermanentFailure --> [*]', async () => {
    const scene = await stage();
    scene.answers.push(
      ...Array.from({ length: 20 }, () => ({ outcome: 'failed' as const, errorCode: 'E' })),
    );
    await scene.service.create(notification({ priority: 'critical' }));
    await scene.service.reportFailure(failure());
    await scene.clock.advance('2h');
    expect(scene.delivered.map(({ attempt }) => attempt)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(await deliveryIn(scene)).toMatchObject({
      state: 'PermanentFailure',
      attempt: 11,
      retryCount: 10,
    });
    expect(await scene.service.attempts('n1', { limit: 20 })).toHaveLength(11);
    for (const [i, { atMs }] of scene.delivered.entries()) {
      const backoffMs = Math.min(
        priorityPolicies.critical.base * 2 ** i,
        priorityPolicies.critical.cap,
      );
      const beforeMs = scene.delivered[i - 1]?.atMs ?? Date.UTC(2026, 0, 5, 12);
      expect(atMs - beforeMs).toBeGreaterThanOrEqual(backoffMs);
      expect(atMs - beforeMs).toBeLessThanOrEqual(1.3 * backoffMs + 1000);
    }
  });
});

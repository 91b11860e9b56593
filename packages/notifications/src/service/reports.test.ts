import { EngineError } from '@redrive/engine';
import { describe, expect, it } from 'vitest';
import { memoryNotifications } from '../adapters/memory/index.ts';
import { NotificationError } from '../errors.ts';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

const failed = { outcome: 'failed', errorCode: 'E' } as const;

describe('reports', () => {
  it('of one attempt count once, however often and at how many workers they come at once', async () => {
    const scene = await stage();
    const other = scene.another();
    await other.start();
    await scene.service.create(notification());
    const both = [scene.service, other, scene.service, other].map((one) =>
      one.reportFailure(failure()),
    );
    const answers = await Promise.all(both);
    expect(answers.map(({ decision }) => decision).toSorted()).toEqual([
      'duplicate',
      'duplicate',
      'duplicate',
      'scheduled',
    ]);
    expect(new Set(answers.map(({ dueAtMs }) => dueAtMs)).size).toBe(1);
    expect(await scene.service.get('n1')).toMatchObject({ retryCount: 1 });
    expect(scene.queues.urgent.ids()).toEqual(['n1:d1:2']);
  });

  it('of many devices at many workers lose none of each other', async () => {
    const scene = await stage();
    const other = scene.another();
    await other.start();
    await scene.service.create(notification());
    const ids = Array.from({ length: 60 }, (_, i) => `d${i}`);
    const all = Promise.all(
      ids.map((deviceId, i) =>
        (i % 2 ? scene.service : other).reportFailure({ ...failure(), deviceId }),
      ),
    );
    await scene.clock.advance(1000);
    await all;
    const record = await scene.service.get('n1');
    expect(record?.retryCount).toBe(60);
    expect(Object.keys(record!.deliveries)).toHaveLength(60);
    expect(scene.queues.urgent.ids()).toHaveLength(60);
  });

  it('a hundred of them cost a few calls of the repository', async () => {
    const repository = memoryNotifications();
    const calls: string[] = [];
    const counted = new Proxy(repository, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        return (...args: unknown[]) => {
          calls.push(String(name));
          return method.apply(target, args);
        };
      },
    });
    const scene = await stage({ repository: counted });
    await scene.service.createMany(
      Array.from({ length: 100 }, (_, i) => notification({ id: `m${i}` })),
    );
    calls.length = 0;
    await scene.service.reportFailures(
      Array.from({ length: 100 }, (_, i) => ({ ...failure(), notificationId: `m${i}` })),
    );
    expect(calls.slice(0, 3)).toEqual(['find', 'inactiveSince', 'write']);
    // Clearing the flags of 100 events is one more read and one more write.
    await scene.clock.advance(0);
    expect(calls.slice(3)).toEqual(['find', 'write']);
    expect(scene.events).toHaveLength(100);
  });

  it('that are stale, late or ahead change only what they may', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    await scene.service.reportFailure(failure(3));
    expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry', attempt: 4 });
    expect(await scene.service.reportFailure(failure(2))).toMatchObject({ decision: 'duplicate' });
    expect(await deliveryIn(scene)).toMatchObject({ attempt: 4, retryCount: 1 });
    // A push may be delivered although the answer was an error.
    expect(await scene.service.reportSuccess(failure(3))).toMatchObject({
      decision: 'delivered',
      status: 'delivered',
    });
    expect(await scene.service.reportFailure(failure(9))).toMatchObject({
      decision: 'duplicate',
      status: 'delivered',
    });
    await scene.clock.advance('1d');
    expect(scene.delivered).toEqual([]);
  });

  it('that the first one left undone are finished by the second', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const { schedule } = scene.queues.urgent;
    scene.queues.urgent.schedule = () => new Promise(() => {});
    const stuck = scene.service.reportFailure(failure());
    await scene.clock.advance(0);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry' });
    expect(scene.queues.urgent.ids()).toEqual([]);
    scene.queues.urgent.schedule = schedule;
    expect(await scene.another().reportFailure(failure())).toMatchObject({ decision: 'duplicate' });
    expect(scene.queues.urgent.ids()).toEqual(['n1:d1:2']);
    await scene.clock.advance('5s');
    expect(await stuck).toMatchObject({ decision: 'scheduled' });
  });

  it('of an instance that died between record and attempt are retried though nobody reports again', async () => {
    const repository = memoryNotifications();
    const scene = await stage({ repository });
    const dead = Promise.withResolvers<never>();
    const dying = scene.another({
      consume: false,
      repository: {
        ...scene.repository,
        open: async () => undefined,
        close: async () => undefined,
        find: (ids) => repository.find(ids),
        inactiveSince: (ids) => repository.inactiveSince(ids),
        // As in a database without transactions.
        write: async (records) => {
          await repository.write(records);
          return dead.promise;
        },
      },
    });
    await scene.service.create(notification());
    const unanswered = dying.reportFailure(failure());
    await scene.clock.advance('5m');
    expect(scene.delivered).toMatchObject([{ deviceId: 'd1', attempt: 2 }]);
    dead.reject(new Error('dead'));
    await expect(unanswered).rejects.toThrow('dead');
    // Repeated, it adds what is missing.
    expect(await scene.service.reportFailure(failure())).toMatchObject({ decision: 'duplicate' });
    const numbers = (await scene.service.attempts('n1', { limit: 9 })).map(
      ({ attemptNumber }) => attemptNumber,
    );
    expect(numbers).toEqual([1, 2]);
  });

  it('that no repository takes, or whose record is gone, leave no attempt behind', async () => {
    const scene = await stage();
    const { write, find } = scene.repository;
    for (const id of ['n1', 'n2', 'n3']) await scene.service.create(notification({ id }));
    const reports = ['n1', 'n2', 'n3'].map((id) => ({ ...failure(), notificationId: id }));
    scene.repository.write = async (records, attempts) => {
      if (records.some(({ id }) => id === 'n2'))
        throw new NotificationError('RECORD_TOO_LARGE', 'too large', { ids: ['n2'] });
      const isGone = records.some(({ id, version }) => id === 'n3' && version === 1);
      const here = isGone ? records.map((one) => ({ ...one, version: 9 })) : records;
      return write.call(scene.repository, here, attempts);
    };
    let finds = 0;
    scene.repository.find = async (ids) => {
      const found = await find.call(scene.repository, ids);
      return (finds += 1) === 1 ? found : found.map((one) => (one?.id === 'n3' ? undefined : one));
    };
    expect(await scene.service.reportFailures(reports)).toMatchObject([
      { decision: 'scheduled' },
      { error: { code: 'RECORD_TOO_LARGE' } },
      { error: { code: 'NOTIFICATION_UNKNOWN' } },
    ]);
    const counts = reports.map(async ({ notificationId }) => {
      return (await scene.service.attempts(notificationId, { limit: 9 })).length;
    });
    expect(await Promise.all(counts)).toEqual([1, 0, 0]);
    expect(scene.happenings.filter(({ type }) => type === 'attempted')).toHaveLength(1);
  });

  it('of a dead token ask for the device, which may have come back since, and others do not', async () => {
    const asked: string[] = [];
    const devices = {
      look: async (deviceId: string) => {
        asked.push(deviceId);
        return { active: true, lastSeenMs: Date.UTC(2026, 0, 5, 11) };
      },
    };
    const scene = await stage({ devices });
    await scene.service.create(notification());
    const timestamp = Date.UTC(2026, 0, 5, 10);
    const gone = { platform: 'apns', status: 410, reason: 'Unregistered', timestamp };
    const back = failure(1, { platformResponse: gone });
    expect(await scene.service.reportFailure(back)).toMatchObject({ decision: 'scheduled' });
    const large = { platform: 'apns', status: 413, reason: 'PayloadTooLarge' };
    const hopeless = { ...failure(1, { platformResponse: large }), deviceId: 'd2' };
    expect(await scene.service.reportFailure(hopeless)).toMatchObject({ decision: 'failed' });
    expect(asked).toEqual(['d1']);
  });

  it('that are repeated add no entry to a queue that cannot deduplicate', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low' }));
    for (let i = 0; i < 5; i++) await scene.service.reportFailure(failure());
    expect(scene.queues.bulk.ids()).toEqual(['n1:d1:2']);
  });

  it('of a dead token make the device inactive for others too, and a success makes it active', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    await scene.service.create(notification({ id: 'n2' }));
    await scene.service.create(notification({ id: 'n3' }));
    const platformResponse = { platform: 'apns', status: 410, reason: 'Unregistered' };
    expect(await scene.service.reportFailure(failure(1, { platformResponse }))).toMatchObject({
      decision: 'failed',
    });
    expect(await scene.service.reportFailure({ ...failure(), notificationId: 'n2' })).toMatchObject(
      { decision: 'skipped' },
    );
    await scene.service.reportSuccess({ ...failure(), notificationId: 'n3' });
    const again = { ...failure(1), notificationId: 'n3', deviceId: 'd1' };
    await scene.service.create(notification({ id: 'n4' }));
    expect(await scene.service.reportFailure({ ...again, notificationId: 'n4' })).toMatchObject({
      decision: 'scheduled',
    });
  });

  it('of a dead token that are repeated make the device inactive where the first could not', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    const { deactivate } = scene.repository;
    scene.repository.deactivate = () =>
      Promise.reject(new EngineError('STORE_UNAVAILABLE', 'It is away.'));
    const platformResponse = { platform: 'apns', status: 410, reason: 'Unregistered' };
    const dead = failure(1, { platformResponse });
    await expect(scene.service.reportFailure(dead)).rejects.toThrow('It is away.');
    scene.repository.deactivate = deactivate;
    await scene.service.reportFailure(dead);
    expect(await scene.repository.inactiveSince(['d1'])).toEqual([scene.clock.now()]);
  });

  it('of wrong credentials keep the device, and are told as such', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    await scene.service.create(notification({ id: 'n2' }));
    const platformResponse = { platform: 'fcm', status: 401, reason: 'THIRD_PARTY_AUTH_ERROR' };
    await scene.service.reportFailure(failure(1, { platformResponse }));
    await scene.clock.advance(0);
    expect(scene.happenings).toContainEqual({ type: 'misconfigured', platform: 'fcm' });
    expect(scene.items).toMatchObject([{ letter: { reason: 'CONFIGURATION' } }]);
    expect(await scene.service.reportFailure({ ...failure(), notificationId: 'n2' })).toMatchObject(
      { decision: 'scheduled' },
    );
  });

  it('name a device of the recipient', async () => {
    const scene = await stage();
    await scene.service.create(notification({ recipient: { userId: 'u', deviceIds: ['d1'] } }));
    await expect(
      scene.service.reportFailure({ ...failure(), deviceId: 'd2' }),
    ).rejects.toMatchObject({ code: 'DEVICE_UNKNOWN' });
    expect(await scene.service.attempts('n1', { limit: 5 })).toEqual([]);
  });

  it('of devices with odd names are kept apart', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    for (const deviceId of ['__proto__', 'constructor', 'a.b', '$x', 'ü'.repeat(255)]) {
      expect(await scene.service.reportFailure({ ...failure(), deviceId })).toMatchObject({
        decision: 'scheduled',
      });
    }
    expect(await scene.service.get('n1')).toMatchObject({ retryCount: 5 });
    await scene.clock.advance('1m');
    expect(scene.delivered).toHaveLength(5);
    expect(await scene.service.get('n1')).toMatchObject({ status: 'delivered' });
  });
});

describe('a replay', () => {
  it('schedules what failed for good now, counts anew, and goes on with the numbers', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low' }));
    await scene.service.reportFailure(failure(4));
    expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'scheduled', attempt: 5 });
    scene.answers.push(failed, failed, failed, failed);
    await scene.clock.advance('12h');
    expect(scene.delivered.map(({ attempt }) => attempt)).toEqual([5, 6, 7, 8]);
    expect(await deliveryIn(scene)).toMatchObject({
      state: 'PermanentFailure',
      attempt: 8,
      countsFrom: 4,
    });
    expect(scene.letters.map(({ attempt_number }) => attempt_number)).toEqual([4, 8]);
  });

  it('leaves alone what waits, what worked and what has ended', async () => {
    const scene = await stage();
    await scene.service.create(notification());
    expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'unknown' });
    expect(await scene.service.replay('n2', 'd1')).toEqual({ result: 'unknown' });
    await scene.service.reportFailure(failure());
    expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'waiting', attempt: 2 });
    await scene.service.reportFailure(failure(9));
    await scene.clock.advance('1d');
    expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'expired' });
    await scene.service.reportSuccess({ ...failure(), deviceId: 'd2' });
    expect(await scene.service.replay('n1', 'd2')).toEqual({ result: 'delivered' });
  });

  it('uses no number twice, also where somebody reported on a delivery that was over', async () => {
    const scene = await stage();
    await scene.service.create(notification({ priority: 'low' }));
    await scene.service.reportFailure(failure(4));
    expect(await scene.service.reportFailure(failure(7))).toMatchObject({
      decision: 'duplicate',
      status: 'failed',
    });
    expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'scheduled', attempt: 8 });
  });
});

describe('creation', () => {
  it('is idempotent by its key, and refuses another payload', async () => {
    const scene = await stage();
    const first = await scene.service.create(notification({ idempotencyKey: 'k' }));
    await scene.clock.advance('1m');
    const { id: _, ...rest } = notification({ idempotencyKey: 'k' });
    const again = await scene.service.create({ ...rest, id: 'n9' });
    expect(again).toMatchObject({ isNew: false, record: { id: 'n1' } });
    expect(again.record).toEqual(first.record);
    await expect(scene.service.create({ ...rest, source: 'x' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
    const refusing = scene.another({ existing: 'conflict' });
    await expect(refusing.create({ ...rest, id: 'n9' })).rejects.toMatchObject({
      code: 'NOTIFICATION_EXISTS',
      ids: ['n1'],
    });
  });

  it('ends with its time to live, also where nobody reports', async () => {
    const scene = await stage();
    const { record } = await scene.service.create(
      notification({ ttlMs: 60_000, scheduledAtMs: scene.clock.now() + 60_000 }),
    );
    expect(record.notification.expiresAtMs).toBe(scene.clock.now() + 120_000);
    await scene.clock.advance('3m');
    expect(await scene.service.get('n1')).toMatchObject({ status: 'expired' });
    expect(await scene.service.get('n1')).not.toHaveProperty('wakeAtMs');
    expect(await scene.service.reportFailure(failure())).toMatchObject({ decision: 'expired' });
  });

  it('lists all that is wrong', async () => {
    const scene = await stage();
    const bad = { ...notification(), priority: 'now' as 'high', source: '', ttlMs: -1 };
    await expect(scene.service.create(bad)).rejects.toMatchObject({
      code: 'INVALID_NOTIFICATION',
      faults: [
        { path: 'priority', code: 'UNKNOWN_PRIORITY' },
        { path: 'source', code: 'INVALID_NOTIFICATION' },
        { path: 'ttl', code: 'INVALID_NOTIFICATION' },
      ],
    });
    const huge = notification({ data: { x: 'x'.repeat(300_000) } });
    await expect(scene.service.create(huge)).rejects.toThrow('more than 262144 bytes');
  });
});

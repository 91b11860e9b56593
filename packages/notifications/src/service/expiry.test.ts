/** `expires_at` is reached at each point of the flow. */
import { describe, expect, it } from 'vitest';
import { memoryNotifications } from '../adapters/memory/index.ts';
import type { NotificationRepository } from '../ports/repository.ts';
import { deliveryIn, failure, notification, stage, type Stage } from './stage.test.ts';

const HOUR_MS = 3_600_000;
const oneHour = () => notification({ ttlMs: HOUR_MS });

const expiredOf = ({ happenings }: Stage) => happenings.filter(({ type }) => type === 'expired');

describe('a notification that ends', () => {
  it('before the first report is expired, and so is a report that comes later', async () => {
    const scene = await stage();
    await scene.service.create(oneHour());
    await scene.clock.advance(HOUR_MS + 10_000);
    expect(await scene.service.get('n1')).toMatchObject({ status: 'expired' });
    expect(await scene.service.reportFailure(failure())).toMatchObject({
      decision: 'expired',
      status: 'expired',
    });
    await scene.clock.advance(HOUR_MS);
    expect(scene.delivered).toEqual([]);
  });

  it('at the very time at which its retry is due delivers nothing', async () => {
    const scene = await stage({ policies: { high: { base: '30s', jitter: 'none' } } });
    await scene.service.create(notification({ ttlMs: 30_000 }));
    const answer = await scene.service.reportFailure(failure());
    expect(answer).toMatchObject({ decision: 'scheduled', delayMs: 30_000 });
    await scene.clock.advance(40_000);
    expect(scene.delivered).toEqual([]);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired' });
    expect(expiredOf(scene)).toHaveLength(1);
  });

  it('while it waits in a queue that is away ends all the same, and is told once', async () => {
    const scene = await stage();
    const other = scene.another();
    await other.start();
    scene.queues.urgent.schedule = () => Promise.reject(new Error('It is away.'));
    await scene.service.create(oneHour());
    await scene.service.reportFailure(failure());
    await scene.clock.advance(HOUR_MS - 1);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry' });
    await scene.clock.advance(10_000);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired', unpublished: [] });
    expect(expiredOf(scene)).toHaveLength(1);
    expect(scene.events.filter(({ event_type }) => event_type === 'expired')).toHaveLength(1);
  });

  it.each([
    ['works', undefined, 'delivered'],
    ['fails', { outcome: 'failed', errorCode: 'E' } as const, 'expired'],
  ])('while it is being delivered says how that went: it %s', async (_, outcome, status) => {
    const gate = Promise.withResolvers<typeof outcome>();
    const policies = { high: { base: '30s', jitter: 'none' } } as const;
    const scene = await stage({ deliver: () => gate.promise, deliverTimeoutMs: 20_000, policies });
    await scene.service.create(notification({ ttlMs: 40_000 }));
    await scene.service.reportFailure(failure());
    await scene.clock.advance(45_000);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Retrying' });
    gate.resolve(outcome);
    await scene.clock.advance(1000);
    expect(await scene.service.get('n1')).toMatchObject({ status });
  });

  it('while a topic has it ends, though no wake-up comes', async () => {
    const scene = await stage({ deliver: async () => ({ outcome: 'handed_over' }) });
    await scene.service.create(oneHour());
    const { delayMs } = await scene.service.reportFailure(failure());
    await scene.clock.advance(delayMs!);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Retrying', handedOver: true });
    scene.queues.urgent.schedule = () => Promise.reject(new Error('It is away.'));
    await scene.clock.advance(HOUR_MS - delayMs! - 1);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Retrying' });
    await scene.clock.advance(10_000);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired' });
    // A success that comes still later is kept.
    expect(await scene.service.reportSuccess(failure(2))).toMatchObject({ decision: 'over' });
  });

  it('before its quiet hours do is expired at once', async () => {
    const scene = await stage();
    const quietHours = { from: '12:00', to: '13:30', timeZone: 'UTC' };
    await scene.service.create({ ...oneHour(), quietHours });
    expect(await scene.service.reportFailure(failure())).toMatchObject({ decision: 'expired' });
  });

  it('between the claim and the delivery is not delivered any more', async () => {
    const memory = memoryNotifications();
    let isSlow = false;
    let slowed = 0;
    let advance: (ms: number) => Promise<void> = async () => undefined;
    const repository: NotificationRepository = new Proxy(memory, {
      get(target, name: keyof NotificationRepository) {
        const value: unknown = target[name];
        if (name === 'write' && isSlow) {
          return async (records: Parameters<typeof memory.write>[0]) => {
            const written = await memory.write(records);
            isSlow = false;
            slowed += 1;
            // The answer comes after the end.
            void advance(2000);
            return written;
          };
        }
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const scene = await stage({ repository });
    const { now } = scene.clock;
    let aheadMs = 0;
    scene.clock.now = () => now.call(scene.clock) + aheadMs;
    advance = async (ms) => void (aheadMs += ms);
    await scene.service.create(oneHour());
    const { delayMs } = await scene.service.reportFailure(failure());
    const [record] = await scene.repository.find(['n1']);
    await scene.clock.advance(delayMs! - 1);
    aheadMs = record!.notification.expiresAtMs - now.call(scene.clock) - 1000;
    isSlow = true;
    await scene.clock.advance(60_000);
    expect(slowed).toBe(1);
    expect(scene.delivered).toEqual([]);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired' });
  });

  it('cannot be replayed', async () => {
    const scene = await stage({ policies: { high: { maxAttempts: 1 } } });
    await scene.service.create(oneHour());
    await scene.service.reportFailure(failure());
    await scene.clock.advance(HOUR_MS - 1);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'PermanentFailure' });
    await scene.clock.advance(1);
    expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'expired' });
  });

  it('while its lane is paused expires at its end, and not when its wake-up would be missed', async () => {
    const scene = await stage({ policies: { high: { base: '1s', cap: '1s', jitter: 'none' } } });
    await scene.service.pause('urgent');
    await scene.service.create(notification({ ttlMs: 3000 }));
    await scene.service.reportFailure(failure());
    // The sweeper looks every 3 s.
    await scene.clock.advance('7s');
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired' });
  });
});

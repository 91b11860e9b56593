/** A replay of what failed for good, and reports of its old attempts that come late. */
import { describe, expect, it } from 'vitest';
import type { NotificationOptions } from './options.ts';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

async function failedForGood(options: Partial<NotificationOptions> = {}) {
  const scene = await stage({ policies: { high: { maxAttempts: 2 } }, ...options });
  await scene.service.create(notification());
  await scene.service.reportFailure(failure(1));
  await scene.service.reportFailure(failure(2));
  expect(await deliveryIn(scene)).toMatchObject({ state: 'PermanentFailure', attempt: 2 });
  return scene;
}

describe('a replay', () => {
  it('delivers nothing once more where the old attempt turned out to have worked', async () => {
    const scene = await failedForGood();
    const late = await scene.service.reportSuccess(failure(2));
    expect(late).toMatchObject({ decision: 'over', status: 'failed' });
    expect(await scene.service.reportSuccess(failure(2))).toMatchObject({ decision: 'over' });
    expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'delivered' });
    await scene.clock.advance('1h');
    expect(scene.delivered).toEqual([]);
  });

  it('is over where the success of the old attempt comes before its time', async () => {
    const scene = await failedForGood();
    await scene.service.pause('urgent');
    expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'scheduled', attempt: 3 });
    expect(await scene.service.reportSuccess(failure(2))).toMatchObject({ decision: 'delivered' });
    await scene.service.resume('urgent');
    await scene.clock.advance('1h');
    expect(scene.delivered).toEqual([]);
    expect(await scene.service.get('n1')).toMatchObject({ status: 'delivered' });
  });

  it('that is under way settles nothing after the success of the old attempt', async () => {
    const gate = Promise.withResolvers<{ outcome: 'failed'; errorCode: string }>();
    let calls = 0;
    const scene = await failedForGood({
      deliver: () => {
        calls += 1;
        return gate.promise;
      },
    });
    await scene.service.replay('n1', 'd1');
    await scene.clock.advance(1000);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'Retrying', attempt: 3 });
    expect(await scene.service.reportSuccess(failure(2))).toMatchObject({ decision: 'delivered' });
    gate.resolve({ outcome: 'failed', errorCode: 'E' });
    await scene.clock.advance('1h');
    expect(calls).toBe(1);
    expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded', attempt: 3 });
    expect(scene.happenings).toContainEqual({ type: 'leaseLost', lane: 'urgent' });
  });

  it('is not disturbed by failures of old attempts that come late or twice', async () => {
    const scene = await failedForGood();
    const [replayed, late] = await Promise.all([
      scene.service.replay('n1', 'd1'),
      scene.service.reportFailure(failure(2)),
    ]);
    expect(replayed).toEqual({ result: 'scheduled', attempt: 3 });
    expect(late.decision).toBe('duplicate');
    expect((await scene.service.reportFailure(failure(1))).decision).toBe('duplicate');
    await scene.clock.advance('1h');
    expect(scene.delivered).toMatchObject([{ attempt: 3 }]);
    expect(scene.items).toHaveLength(1);
  });

  it.each(['replay first', 'success first'])(
    'and a success at once deliver at most once: %s',
    async (order) => {
      const scene = await failedForGood();
      const other = scene.another();
      await other.start();
      const replay = () => scene.service.replay('n1', 'd1');
      const success = () => other.reportSuccess(failure(2));
      await Promise.all(order === 'replay first' ? [replay(), success()] : [success(), replay()]);
      await scene.clock.advance('1h');
      expect(scene.delivered.length).toBeLessThanOrEqual(1);
      const { state } = (await deliveryIn(scene))!;
      expect(['DeliverySucceeded', 'PermanentFailure']).toContain(state);
      expect(await scene.service.replay('n1', 'd1')).toEqual({ result: 'delivered' });
    },
  );
});

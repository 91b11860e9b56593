/** A device service that answers, and slowly: neither reports nor deliveries wait for it for long. */
import { expect, it } from 'vitest';
import { notification, stage } from './stage.test.ts';

const soon = { base: '1s', cap: '1s', jitter: 'none' } as const;
const FLOOD = 6000;

it('a flood of reports makes no delivery lose its lease', async () => {
  const end = Promise.withResolvers<void>();
  const delivered: number[] = [];
  const scene = await stage({
    policies: { critical: soon },
    deliver: async ({ notificationId, attempt }) => {
      if (notificationId !== 'urgent') return;
      delivered.push(attempt);
      await end.promise;
    },
    devices: {
      url: 'http://devices',
      fetch: async () => {
        await new Promise<void>((resolve) => {
          scene.clock.setTimer(resolve, 1500);
        });
        return new Response('{"active":true}');
      },
    },
  });
  const ids = Array.from({ length: FLOOD }, (_, i) => `low${i}`);
  await scene.service.create(notification({ id: 'urgent', priority: 'critical' }));
  await scene.service.createMany(ids.map((id) => notification({ id, priority: 'low' })));
  const urgent = { notificationId: 'urgent', deviceId: 'phone', attemptNumber: 1 };
  void scene.service.reportFailure(urgent);
  await scene.clock.advance('4s');
  const low = ids.map((notificationId) => ({
    ...urgent,
    notificationId,
    deviceId: notificationId,
  }));
  const reported = scene.service.reportFailures(low);
  await scene.clock.advance('1s');
  end.resolve();
  await scene.clock.advance('5s');
  expect((await scene.service.get('urgent'))?.status).toBe('delivered');
  await scene.clock.advance('5m');
  expect(delivered).toEqual([2]);
  expect(await reported).toHaveLength(FLOOD);
}, 60_000);

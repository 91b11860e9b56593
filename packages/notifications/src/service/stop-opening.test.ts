/** A stop while the queue of one lane still opens: the other lane comes to its end as ever. */
import { expect, it } from 'vitest';
import { notification, stage } from './stage.test.ts';

const soon = { base: '1s', cap: '1s', jitter: 'none' } as const;

it('begins nothing more, and settles what runs', async () => {
  const scene = await stage({ policies: { critical: soon }, concurrency: 1 });
  const begun: string[] = [];
  const opening = scene.queues.bulk.another();
  opening.open = () => Promise.withResolvers<void>().promise;
  const service = scene.another({
    queues: { urgent: scene.queues.urgent.another(), bulk: opening },
    concurrency: 1,
    deliver: async ({ notificationId }) => {
      begun.push(notificationId);
      await new Promise<void>((resolve) => {
        scene.clock.setTimer(resolve, 3000);
      });
    },
  });
  await scene.service.pause('urgent');
  void service.start();
  await scene.clock.advance('1s');
  const ids = ['a', 'b', 'c', 'd'];
  await service.createMany(ids.map((id) => notification({ id, priority: 'critical' })));
  const report = { deviceId: 'd1', attemptNumber: 1 };
  void service.reportFailures(ids.map((notificationId) => ({ ...report, notificationId })));
  await scene.clock.advance('2s');
  expect(begun).toHaveLength(1);
  const stopped = service.stop();
  await scene.clock.advance('30s');
  await stopped;
  expect(begun).toHaveLength(1);
  // All of them share it.
  await scene.repository.open();
  expect((await scene.service.get(begun[0]!))?.status).toBe('delivered');
});

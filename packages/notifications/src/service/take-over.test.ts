/** Retries whose worker was lost, taken over by another. */
import { expect, it } from 'vitest';
import { memoryNotifications } from '../adapters/memory/index.ts';
import { deliveryIn, failure, notification, type Stage, stage } from './stage.test.ts';

const soon = { base: '1s', cap: '1s', jitter: 'none' } as const;
const policies = { high: soon };

/** As a worker leaves it that died after its claim. */
async function lostWorker({ repository, clock, service }: Stage) {
  await service.reportFailure(failure());
  const [record] = await repository.find(['n1']);
  const { dueAtMs: _, ...waiting } = record!.deliveries['d1']!;
  const lost = { lease: 'lost', leases: 1, leaseUntilMs: clock.now() };
  const delivery = { ...waiting, ...lost, state: 'Retrying' as const };
  await repository.write([{ ...record!, deliveries: { d1: delivery } }]);
}

it('leaves no other of its batch claimed and undelivered while the repository is in trouble', async () => {
  const repository = memoryNotifications();
  const { attempts } = repository;
  const scene = await stage({ policies, repository });
  const others = ['n2', 'n3'];
  await scene.service.createMany(['n1', ...others].map((id) => notification({ id })));
  await lostWorker(scene);
  const reports = others.map((notificationId) => ({ ...failure(), notificationId }));
  await scene.service.reportFailures(reports);
  repository.attempts = async () => Promise.reject(new Error('The repository is away.'));
  await scene.clock.advance('2s');
  expect(scene.delivered.map(({ id }) => id)).toEqual(others);
  repository.attempts = attempts;
  await scene.clock.advance('10s');
  expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded', attempt: 2 });
  expect(scene.delivered).toHaveLength(3);
});

it('does not come back before the push service allows, where the outcome was recorded before', async () => {
  const scene = await stage({ policies });
  await scene.service.create(notification());
  await lostWorker(scene);
  const recorded = { notificationId: 'n1', deviceId: 'd1', attemptNumber: 2, retryAfterMs: 60_000 };
  const attemptedAtMs = scene.clock.now();
  await scene.repository.write([], [{ ...recorded, status: 'failed', attemptedAtMs }]);
  await scene.clock.advance('59s');
  expect(scene.delivered).toEqual([]);
  await scene.clock.advance('20s');
  expect(scene.delivered).toMatchObject([{ attempt: 3 }]);
});

it('records how long the push service asked to be left alone', async () => {
  const { service } = await stage({ policies });
  await service.create(notification());
  await service.reportFailure(failure(1, { retryAfterMs: 60_000 }));
  expect(await service.attempts('n1', { limit: 1 })).toMatchObject([{ retryAfterMs: 60_000 }]);
});

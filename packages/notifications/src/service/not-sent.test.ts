/** Deliveries in which nothing was sent: they wait as long as they are told to, and never past the end. */
import { expect, it } from 'vitest';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

const soon = { base: '1s', cap: '1s', jitter: 'none' } as const;

async function notSent(delayMs: number) {
  const scene = await stage({ policies: { high: soon } });
  await scene.service.create(notification({ ttlMs: 60_000 }));
  await scene.service.reportFailure(failure());
  scene.answers.push({ outcome: 'not_sent', delayMs });
  await scene.clock.advance('1s');
  return scene;
}

it.each([3_600_000, 1e300, Infinity])('%s ms: it ends with its notification', async (delayMs) => {
  const scene = await notSent(delayMs);
  await scene.clock.advance('58s');
  expect(await deliveryIn(scene)).toMatchObject({ state: 'AwaitingRetry', attempt: 2 });
  await scene.clock.advance('1s');
  expect(await deliveryIn(scene)).toMatchObject({ state: 'Expired', attempt: 2 });
  expect(scene.delivered).toHaveLength(1);
});

it.each([1000.5, -5, Number.NaN])('%s ms: it comes again', async (delayMs) => {
  const scene = await notSent(delayMs);
  await scene.clock.advance('2s');
  expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded', attempt: 2 });
  expect(scene.delivered).toHaveLength(2);
});

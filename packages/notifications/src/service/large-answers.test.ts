/** Deliveries whose answers no repository takes: they were made, and are not made once more. */
import { expect, it } from 'vitest';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

const soon = { base: '1s', cap: '1s', jitter: 'none' } as const;
const policies = { high: soon };
const circle: Record<string, unknown> = {};
circle['self'] = circle;
const deep: unknown = JSON.parse('['.repeat(100) + ']'.repeat(100));

const answers: [name: string, more: object][] = [
  ['too large', { platformResponse: 'x'.repeat(300_000) }],
  ['too deep', { platformResponse: deep }],
  ['in a circle', { platformResponse: circle }],
  ['not JSON', { platformResponse: 1n }],
];

async function delivered(answer: object) {
  const scene = await stage({ policies });
  await scene.service.create(notification());
  await scene.service.reportFailure(failure());
  scene.answers.push(answer as (typeof scene.answers)[number]);
  await scene.clock.advance('10m');
  return scene;
}

it.each(answers)('a delivery that worked is not repeated: its answer is %s', async (_, more) => {
  const scene = await delivered({ outcome: 'delivered', ...more });
  expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded', attempt: 2 });
  expect(scene.delivered).toHaveLength(1);
});

it.each([...answers, ['a long message', { errorMessage: 'é'.repeat(300_000) }] as const])(
  'an attempt that failed is followed by the next: its answer is %s',
  async (_, more) => {
    const scene = await delivered({ outcome: 'failed', ...more });
    expect(scene.delivered.map(({ attempt }) => attempt)).toEqual([2, 3]);
    const attempts = await scene.service.attempts('n1', { limit: 9 });
    expect(attempts.map(({ status }) => status)).toEqual(['failed', 'failed', 'delivered']);
  },
);

/** Reports of one batch share their round trips. One that says something strange spoils no other. */
import { describe, expect, it } from 'vitest';
import { deliveryIn, failure, notification, stage } from './stage.test.ts';

const soon = { base: '1s', cap: '1s', jitter: 'none' } as const;
const policies = { high: soon };
const dead = (timestamp: unknown) => ({ platform: 'apns', reason: 'Unregistered', timestamp });

const strange: [name: string, more: object][] = [
  ['a dead token since a fraction of a ms', { platformResponse: dead(1.5) }],
  ['a dead token since a time that no date has', { platformResponse: dead(1e300) }],
  ['a platform that is called constructor', from('{"platform":"constructor","status":410}')],
  ['a platform that is called __proto__', from('{"platform":"__proto__","status":410}')],
  ['a platform that is no text', from('{"platform":{"toString":1}}')],
  ['a code that is no text', { errorCode: 5 }],
  ['a message that is no text', { errorMessage: {} }],
];

function from(json: string) {
  return { platformResponse: JSON.parse(json) as unknown };
}

describe('a report', () => {
  it.each(strange)('with %s spoils no other', async (_, more) => {
    const { service } = await stage({ policies });
    await service.createMany([notification(), notification({ id: 'n2' })]);
    const reports = [failure(1, more), { ...failure(1), notificationId: 'n2' }];
    const [one, other] = await service.reportFailures(reports);
    expect(one).toHaveProperty('decision');
    expect(other).toMatchObject({ decision: 'scheduled' });
  });

  it('of a token that is dead since tomorrow counts from now on', async () => {
    const { service, repository, clock } = await stage({ policies });
    await service.create(notification());
    await service.reportFailure(failure(1, { platformResponse: dead(clock.now() + 86_400_000) }));
    expect(await repository.inactiveSince(['d1'])).toEqual([clock.now()]);
  });
});

describe('a delivery', () => {
  it.each(strange)('that answers with %s ends its attempt', async (_, more) => {
    const scene = await stage({ policies });
    await scene.service.create(notification());
    await scene.service.reportFailure(failure(1));
    scene.answers.push({ outcome: 'failed', ...more });
    await scene.clock.advance('5s');
    expect((await deliveryIn(scene))?.state).toMatch(/^(?:DeliverySucceeded|PermanentFailure)$/);
    expect(scene.delivered.filter(({ attempt }) => attempt === 2)).toHaveLength(1);
  });
});

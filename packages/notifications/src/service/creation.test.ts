import { expect, it } from 'vitest';
import { notification, stage } from './stage.test.ts';

const deep = JSON.parse(`${'{"a":'.repeat(80)}1${'}'.repeat(80)}`) as Record<string, unknown>;

it.each([
  ['data that is nested too deep', { data: deep }],
  ['an end that no date has', { scheduledAtMs: 8_640_000_000_000_000 }],
])('one with %s is refused by itself', async (_, more) => {
  const { service } = await stage();
  const asked = ['n1', 'n2', 'n3'].map((id) => notification({ id }));
  const answers = await service.createMany(asked.with(1, notification({ id: 'n2', ...more })));
  expect(answers).toMatchObject([
    { isNew: true, record: { id: 'n1' } },
    { error: { code: 'INVALID_RECORD' } },
    { isNew: true, record: { id: 'n3' } },
  ]);
  await expect(service.create(notification({ id: 'n2', ...more }))).rejects.toMatchObject({
    code: 'INVALID_RECORD',
  });
  expect(await service.get('n2')).toBeUndefined();
});

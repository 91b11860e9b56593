import { expect, it } from 'vitest';
import { queueNames } from './queue-names.ts';

it('names queues as ever, unless a prefix is given', () => {
  expect(queueNames()).toEqual({
    store: { urgent: 'notifications.urgent', bulk: 'notifications.bulk' },
    redis: { urgent: 'redrive:notifications:urgent:', bulk: 'redrive:notifications:bulk:' },
    kafka: { urgent: 'redrive.notifications.urgent', bulk: 'redrive.notifications.bulk' },
  });
});

it('has the prefix in every name', () => {
  const { store, redis, kafka } = queueNames('shop-2');
  const names = [store, redis, kafka].flatMap((one) => Object.values(one));
  expect(names.filter((name) => !name.includes('shop-2'))).toEqual([]);
  expect(new Set([...names, ...Object.values(queueNames().redis)]).size).toBe(8);
});

it.each(['', 'a b', 'a:b', '{a}', 'a/b', 'ä', 'x'.repeat(81), 7 as never])(
  'refuses %o',
  (prefix) => {
    expect(() => queueNames(prefix)).toThrow(
      expect.objectContaining({ code: 'INVALID_NOTIFICATIONS' }) as Error,
    );
  },
);

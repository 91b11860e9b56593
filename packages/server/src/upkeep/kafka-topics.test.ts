import { expect, it } from 'vitest';
import { missingTopic, topicsOf } from './kafka-topics.ts';

const settings = {
  kafkaRetryTopic: 'retries',
  notifications: 'on',
  notificationDelivery: 'kafka:pushes',
  notificationDeadLetters: 'kafka:dead',
  notificationEvents: 'nats:events',
  notificationReports: 'kafka:reports',
} as const;

it('says of a missing topic that is only read that nothing comes in from there', () => {
  const told = [...topicsOf(settings)].map(([topic, use]) => {
    const { what } = missingTopic(topic, use, 'a:1');
    return `${topic}: ${what.slice(what.lastIndexOf('it.') + 4)}`;
  });
  expect(told).toEqual([
    'retries: Nothing can come in from there.',
    'reports: Nothing can come in from there.',
    'dead: What goes there waits.',
    'pushes: What goes there waits.',
  ]);
  expect([...topicsOf({ ...settings, notifications: 'off' }).keys()]).toEqual(['retries']);
});

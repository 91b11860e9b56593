/** What the tests of the service share: the real service on memory parts, with a virtual clock. */
import { memoryDelayQueue, type MemoryDelayQueue } from '@redrive/engine/memory';
import { virtualClock, type VirtualClock } from 'redrive/testing';
import { expect, it, onTestFinished } from 'vitest';
import { memoryNotifications } from '../adapters/memory/index.ts';
import type { NotificationRepository } from '../ports/repository.ts';
import type { NewNotification } from './checks.ts';
import type { Deliver, DeliverRequest } from './delivery.ts';
import type { DeadLetter, NotificationEvent } from './documents.ts';
import type { NotificationOptions } from './options.ts';
import type { NotificationHappening } from './parts.ts';
import type { FailedDeliveryItem } from './publisher.ts';
import type { Notifications } from './notifications.ts';
import { createNotifications } from './service.ts';

export interface Stage {
  clock: VirtualClock;
  repository: NotificationRepository;
  queues: { urgent: MemoryDelayQueue; bulk: MemoryDelayQueue };
  service: Notifications;
  /** What was delivered, and when. */
  delivered: { deviceId: string; attempt: number; atMs: number; id: string }[];
  /** What the next deliveries answer, by default that they worked. */
  answers: Awaited<ReturnType<Deliver>>[];
  letters: DeadLetter[];
  items: FailedDeliveryItem[];
  events: NotificationEvent[];
  happenings: NotificationHappening[];
  /** Another instance on the same parts. */
  another(options?: Partial<NotificationOptions>): Notifications;
}

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export async function stage(options: Partial<NotificationOptions> = {}): Promise<Stage> {
  const clock = virtualClock(Date.UTC(2026, 0, 5, 12));
  const repository = options.repository ?? memoryNotifications();
  const queues = {
    urgent: memoryDelayQueue({ clock, log: quiet }),
    bulk: memoryDelayQueue({ clock, log: quiet, lacks: ['deduplicates', 'cancels', 'counts'] }),
  };
  const scene: Omit<Stage, 'service' | 'another'> = {
    clock,
    repository,
    queues,
    delivered: [],
    answers: [],
    letters: [],
    items: [],
    events: [],
    happenings: [],
  };
  const make = (more: Partial<NotificationOptions> = {}) => {
    const made = createNotifications({
      repository,
      queues,
      deliver: async ({ notificationId: id, deviceId, attempt }: DeliverRequest) => {
        scene.delivered.push({ id, deviceId, attempt, atMs: clock.now() });
        return scene.answers.shift();
      },
      deadLetter: async (letter) => void scene.letters.push(letter),
      inbox: async (item) => void scene.items.push(item),
      event: async (event) => void scene.events.push(event),
      on: (event) => scene.happenings.push(event),
      clock,
      random: () => 0.5,
      defer: queueMicrotask,
      log: quiet,
      ...options,
      ...more,
    });
    onTestFinished(async () => {
      const stopped = made.stop();
      await clock.advance('10s');
      await stopped;
    });
    return made;
  };
  const service = make();
  await service.start();
  return { ...scene, service, another: make };
}

export function notification(more: Partial<NewNotification> = {}): NewNotification {
  return {
    id: 'n1',
    recipient: { userId: 'u1' },
    priority: 'high',
    notification: { title: 'Hello', body: 'World' },
    source: 'test',
    ...more,
  };
}

/** The state of one delivery as it is stored. */
export async function deliveryIn({ repository }: Stage, deviceId = 'd1', id = 'n1') {
  const [record] = await repository.find([id]);
  return record?.deliveries[deviceId];
}

export const failure = (attemptNumber = 1, more: object = {}) => ({
  notificationId: 'n1',
  deviceId: 'd1',
  attemptNumber,
  ...more,
});

it('a failed delivery is retried on the stage', async () => {
  const scene = await stage();
  await scene.service.create(notification());
  const { decision, delayMs } = await scene.service.reportFailure(failure());
  expect(decision).toBe('scheduled');
  await scene.clock.advance(delayMs!);
  expect(scene.delivered).toMatchObject([{ deviceId: 'd1', attempt: 2 }]);
  expect(await deliveryIn(scene)).toMatchObject({ state: 'DeliverySucceeded', attempt: 2 });
});

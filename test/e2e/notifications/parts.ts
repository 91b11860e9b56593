/** What the workers and the test share: a service on real parts, with times that are short enough to wait for. */
import { type DelayQueue, storeDelayQueue, type Store } from '@redrive/engine';
import { postgres } from '@redrive/engine/postgres';
import { sqlite } from '@redrive/engine/sqlite';
import {
  createNotifications,
  type Deliver,
  type NotificationOptions,
  type NotificationRepository,
  type Notifications,
} from '@redrive/notifications';
import { postgresNotifications } from '@redrive/notifications/postgres';
import { sqliteNotifications } from '@redrive/notifications/sqlite';

export interface Job {
  /** The name by which the receiver knows the worker. */
  name: string;
  receiver: string;
  database: { sqlite: string } | { postgres: string };
}

/** Between two attempts at the least. */
export const BASE_MS = 100;
export const MAX_ATTEMPTS = 5;
export const policy = { base: BASE_MS, cap: BASE_MS, maxAttempts: MAX_ATTEMPTS } as const;

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export function serviceOn(
  { database }: Job,
  deliver: Deliver,
  more: Partial<NotificationOptions> = {},
): { service: Notifications; close: () => Promise<void> } {
  const { store, repository } = partsOf(database);
  const queue = (name: string): DelayQueue =>
    storeDelayQueue(store, { name, leaseMs: 1500, log: quiet });
  const service = createNotifications({
    repository,
    queues: { urgent: queue('urgent'), bulk: queue('bulk') },
    deliver,
    policies: { critical: policy, high: policy, medium: policy, low: policy },
    deliverTimeoutMs: 1000,
    leaseMs: 1500,
    maxLostLeases: 20,
    graceMs: 1000,
    sweepMs: 300,
    log: quiet,
    ...more,
  });
  return {
    service,
    close: async () => {
      await service.stop();
      await store.close();
    },
  };
}

function partsOf(database: Job['database']): { store: Store; repository: NotificationRepository } {
  if ('sqlite' in database) {
    return { store: sqlite(database.sqlite), repository: sqliteNotifications(database.sqlite) };
  }
  const { postgres: url } = database;
  return {
    store: postgres({ url }),
    repository: postgresNotifications({ url, maxConnections: 4 }),
  };
}

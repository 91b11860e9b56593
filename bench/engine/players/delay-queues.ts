import { randomUUID } from 'node:crypto';
import { type Store, storeDelayQueue } from '@redrive/engine';
import { redisDelayQueue } from '@redrive/engine/redis';
import type { OpenedQueue } from './delay-queue.ts';

const log = { debug() {}, info() {}, warn: console.warn, error: console.error };

export async function queueInRedis(url: string): Promise<OpenedQueue> {
  const quiet = { ...log, warn: () => undefined };
  const queue = redisDelayQueue({ url, prefix: `bench:${randomUUID()}:`, log: quiet });
  await queue.open();
  return { queue, close: () => queue.close() };
}

export async function queueOn(store: Store): Promise<OpenedQueue> {
  const queue = storeDelayQueue(store, { log });
  await queue.open();
  return {
    queue,
    async close() {
      await queue.close();
      await store.close();
    },
  };
}

import type { Clock } from 'redrive';
import { systemClock } from 'redrive/internal';
import type { Store } from '../../ports/store.ts';
import { MemoryStore } from './store.ts';

export { MemoryAudit } from './audit.ts';
export { type MemoryBroker, memoryBroker, type MemoryBrokerOptions } from './broker.ts';
export {
  type MemoryDelayQueue,
  memoryDelayQueue,
  type MemoryDelayQueueOptions,
} from './delay-queue.ts';

/** A store in this process alone: gone when the process ends. For tests and trials. */
export function memory(options: { clock?: Clock; maxTasks?: number } = {}): Store {
  return new MemoryStore(options.clock ?? systemClock, options.maxTasks ?? 1_000_000);
}

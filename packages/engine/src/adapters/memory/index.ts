import type { Clock } from 'redrive';
import { checkOptions, type Fields, systemClock } from 'redrive/internal';
import type { Store } from '../../ports/store.ts';
import { MemoryStore } from './store.ts';

export { MemoryAudit } from './audit.ts';
export { type MemoryBroker, memoryBroker, type MemoryBrokerOptions } from './broker.ts';
export {
  type MemoryDelayQueue,
  memoryDelayQueue,
  type MemoryDelayQueueOptions,
} from './delay-queue.ts';

const fields = {
  maxTasks: { kind: 'integer', min: 0, max: Number.MAX_SAFE_INTEGER, default: 1_000_000 },
} as const satisfies Fields;

/** A store in this process alone: gone when the process ends. For tests and trials. */
export function memory(options: { clock?: Clock; maxTasks?: number } = {}): Store {
  const checked = checkOptions('The options of memory', options, fields, ['clock']);
  return new MemoryStore(options.clock ?? systemClock, checked['maxTasks'] as number);
}

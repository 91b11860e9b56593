import type { Settings } from '../settings/settings.ts';

export const DEAD_LETTER_QUEUE = 'redrive.dead-letters';
/** Where messages go that are too large to be stored. */
export const OVERSIZED_QUEUE = 'redrive.oversized';

/** What has to be there before anything is consumed or published. */
interface Topology {
  queues: { name: string; type?: 'classic' | 'quorum'; required?: boolean; onDemand?: boolean }[];
  exchanges: { name: string; type: 'topic' }[];
  bindings: { exchange: string; queue: string; pattern: string }[];
}

type QueueSettings = Pick<
  Settings,
  'queueType' | 'retryQueue' | 'manualReviewQueue' | 'deadLetterExchange' | 'deadLetterBindings'
>;

/** What is declared where it is missing. */
export function topologyOf(settings: QueueSettings): Topology {
  const { queueType: type, retryQueue, manualReviewQueue } = settings;
  const { deadLetterExchange: exchange, deadLetterBindings } = settings;
  const names = [retryQueue, manualReviewQueue, ...(exchange ? [DEAD_LETTER_QUEUE] : [])];
  return {
    queues: [
      ...names.map((name) => ({ name, type, required: true })),
      // Most brokers never see such a message.
      { name: OVERSIZED_QUEUE, type, required: false, onDemand: true },
    ],
    exchanges: exchange ? [{ name: exchange, type: 'topic' }] : [],
    bindings: exchange
      ? deadLetterBindings.map((pattern) => ({ exchange, queue: DEAD_LETTER_QUEUE, pattern }))
      : [],
  };
}

/** What dies in these is never sent there again. */
export function ownQueues(settings: QueueSettings): readonly string[] {
  return [settings.retryQueue, settings.manualReviewQueue, DEAD_LETTER_QUEUE];
}

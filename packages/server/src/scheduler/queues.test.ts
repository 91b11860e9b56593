import { expect, it } from 'vitest';
import { ownQueues, topologyOf } from './queues.ts';

const settings = {
  queueType: 'classic',
  retryQueue: 'retry.scheduled',
  manualReviewQueue: 'manual-review.pending',
  deadLetterBindings: ['#'],
} as const;

it('the dead-letter side is off until an exchange is named', () => {
  expect(topologyOf(settings)).toEqual({
    queues: [
      { name: 'retry.scheduled', type: 'classic', required: true },
      { name: 'manual-review.pending', type: 'classic', required: true },
      { name: 'redrive.oversized', type: 'classic', required: false, onDemand: true },
    ],
    exchanges: [],
    bindings: [],
  });
});

it('a named exchange is a topic exchange with redrive.dead-letters bound to it', () => {
  const topology = topologyOf({
    ...settings,
    queueType: 'quorum',
    deadLetterExchange: 'dlx',
    deadLetterBindings: ['orders.#', '*.dlq'],
  });
  expect(topology.queues.at(-2)).toEqual({
    name: 'redrive.dead-letters',
    type: 'quorum',
    required: true,
  });
  expect(topology.exchanges).toEqual([{ name: 'dlx', type: 'topic' }]);
  expect(topology.bindings).toEqual([
    { exchange: 'dlx', queue: 'redrive.dead-letters', pattern: 'orders.#' },
    { exchange: 'dlx', queue: 'redrive.dead-letters', pattern: '*.dlq' },
  ]);
});

it("Redrive's own queues are the three that it reads or writes by itself", () => {
  expect(ownQueues(settings)).toEqual([
    'retry.scheduled',
    'manual-review.pending',
    'redrive.dead-letters',
  ]);
});

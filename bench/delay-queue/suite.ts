import type { Suite } from '../result.ts';
import { kafkaCase, kafkaPartitionsCase } from './kafka.ts';

export const suite: Suite = {
  name: 'delay-queue',
  about: 'entries that wait: scheduled, handed over when they are due, answered for',
  cases: [kafkaCase, kafkaPartitionsCase],
};

import { type Contestant, type Skill, throughput } from '../engine/throughput.ts';
import { atLeast } from '../engine/verdicts.ts';
import type { Case } from '../result.ts';

const inRedis: readonly Contestant[] = [
  { name: 'redrive', player: 'delay-redis', ground: 'redis' },
  { name: 'bullmq', player: 'bullmq-delayed', ground: 'redis' },
];
const inStores: readonly Contestant[] = [
  { name: 'redrive', player: 'delay-postgres', ground: 'postgres' },
  { name: 'redrive-sqlite', player: 'delay-sqlite', ground: 'file' },
  { name: 'redrive-redis', player: 'delay-redis', ground: 'redis' },
];

export const scheduleRedis = againstBullMq(
  'schedule',
  'entries of 256 bytes with a delay, stored in batches of 1000',
);
export const executeRedis = againstBullMq(
  'execute',
  'entries whose delay is over, handed to a trivial handler until the last answer is written',
);
export const scheduleStores = onStores(
  'schedule',
  "the same in the engine's own store, for its cost (Redis beside it)",
);
export const executeStores = onStores('execute', 'the same, handed over');

function againstBullMq(skill: Skill, about: string): Case {
  return {
    name: `${skill}-redis`,
    about: `${about}, on the same Redis (BullMQ: delayed jobs)`,
    async run(effort) {
      const result = await throughput(skill, inRedis, effort);
      const verdict = atLeast(1.3, result.redrive, Number(result.peers['bullmq']), '1.3 × bullmq');
      return { ...result, verdicts: [verdict] };
    },
  };
}

function onStores(skill: Skill, about: string): Case {
  return {
    name: `${skill}-stores`,
    about,
    run: async (effort) => throughput(skill, inStores, effort),
  };
}

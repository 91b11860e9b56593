import { createClient } from '@redis/client';
import { startRedis } from '@redrive/services';
import { type Contestant, type Skill, throughput } from '../engine/throughput.ts';
import { atLeast } from '../engine/verdicts.ts';
import type { Case, Result } from '../result.ts';
import { loadPlayer } from '../engine/players.ts';

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

const COUNTED = 20_000;

/** Bytes of an entry: in the memory of Redis while it waits, and over the network for its whole way. */
export const costRedis: Case = {
  name: 'cost-redis',
  about: 'bytes that an entry of 256 bytes takes in the memory of Redis while it waits',
  async run() {
    await using server = await startRedis();
    const redrive = await costOf('delay-redis', server.url);
    const bullmq = await costOf('bullmq-delayed', server.url);
    const result: Result = {
      metric: 'bytes',
      redrive: redrive.memory,
      peers: { bullmq: bullmq.memory },
      notes: [
        `network bytes of an entry to and from Redis, stored and done: redrive ${redrive.network.toFixed(0)}, bullmq ${bullmq.network.toFixed(0)}`,
      ],
    };
    return result;
  },
};

async function costOf(name: string, url: string): Promise<{ memory: number; network: number }> {
  const admin = createClient({ url });
  await admin.connect();
  // Once for nothing: scripts are loaded, and buffers have their size.
  const first = await loadPlayer(name);
  await first.open(url);
  await first.schedule(1000);
  await first.execute(1000);
  await first.close();
  const player = await loadPlayer(name);
  await player.open(url);
  const before = await usage(admin);
  await player.schedule(COUNTED);
  const between = await usage(admin);
  await player.execute(COUNTED);
  const after = await usage(admin);
  await player.close();
  await admin.close();
  return {
    memory: (between.memory - before.memory) / COUNTED,
    network: (after.network - before.network) / COUNTED,
  };
}

async function usage(client: { info(section: string): Promise<string> }) {
  const text = `${await client.info('memory')}\n${await client.info('stats')}`;
  const read = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(text)?.[1]);
  return {
    memory: read('used_memory_dataset'),
    network: read('total_net_input_bytes') + read('total_net_output_bytes'),
  };
}

import type { Case } from '../result.ts';
import { type Contestant, throughput } from './throughput.ts';
import { among, atLeast, bestPeer, share } from './verdicts.ts';

const peers: readonly Contestant[] = [
  { name: 'pg-boss', player: 'pg-boss', ground: 'postgres' },
  { name: 'graphile-worker', player: 'graphile-worker', ground: 'postgres' },
  { name: 'bullmq', player: 'bullmq', ground: 'redis' },
];

export const schedulePostgres: Case = {
  name: 'schedule-postgres',
  about: 'tasks of 256 bytes stored in batches of 1000, in PostgreSQL (BullMQ: in Redis)',
  async run(effort) {
    const result = await throughput(
      'schedule',
      [
        { name: 'redrive', player: 'redrive', ground: 'postgres' },
        { name: 'redrive-audit', player: 'redrive-audit', ground: 'postgres' },
        ...peers,
        { name: 'raw', player: 'raw-postgres', ground: 'postgres' },
      ],
      effort,
    );
    const best = bestPeer(result);
    const lead = atLeast(
      1.5,
      result.redrive,
      Number(result.peers[best]),
      `1.5 × the best peer, ${best}`,
    );
    const limit = `${Math.round((result.redrive / Number(result.peers['raw'])) * 100)} % of raw`;
    return { ...result, verdicts: [lead], notes: [limit, ...(result.notes ?? [])] };
  },
};

export const scheduleSqlite: Case = {
  name: 'schedule-sqlite',
  about: 'the same in a SQLite file, durable commits (graphile-worker: in PostgreSQL)',
  async run(effort) {
    const result = await throughput(
      'schedule',
      [
        { name: 'redrive', player: 'redrive-sqlite', ground: 'file' },
        { name: 'redrive-audit', player: 'redrive-sqlite-audit', ground: 'file' },
        { name: 'graphile-worker', player: 'graphile-worker', ground: 'postgres' },
        { name: 'raw', player: 'raw-sqlite', ground: 'file' },
        { name: 'raw-execute', player: 'raw-sqlite', ground: 'file', skill: 'execute' },
      ],
      effort,
    );
    const { redrive, peers: others } = result;
    const part = (of: string, text: string) => share(0.4, redrive, Number(others[of]), text);
    return {
      ...result,
      verdicts: among(result, {
        raw: () => part('raw', 'raw, the bare inserts'),
        'raw-execute': () => part('raw-execute', 'raw-execute, the bare claim and settle'),
        'graphile-worker': () =>
          atLeast(
            1,
            redrive,
            Number(others['graphile-worker']),
            'as fast as graphile-worker on PostgreSQL',
          ),
      }),
    };
  },
};

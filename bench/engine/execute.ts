import type { Case } from '../result.ts';
import { throughput } from './throughput.ts';
import { among, atLeast, bestPeer, share } from './verdicts.ts';

export const executePostgres: Case = {
  name: 'execute-postgres',
  about:
    'waiting tasks done by a trivial handler, each completion durable (BullMQ: in the memory of Redis; redrive-audit: with an event for each)',
  async run(effort) {
    const result = await throughput(
      'execute',
      [
        { name: 'redrive', player: 'redrive', ground: 'postgres' },
        { name: 'redrive-audit', player: 'redrive-audit', ground: 'postgres' },
        { name: 'pg-boss', player: 'pg-boss', ground: 'postgres' },
        { name: 'graphile-worker', player: 'graphile-worker', ground: 'postgres' },
        { name: 'bullmq', player: 'bullmq', ground: 'redis' },
        { name: 'raw', player: 'raw-postgres', ground: 'postgres' },
      ],
      effort,
    );
    const { redrive, peers } = result;
    const best = bestPeer(result);
    return {
      ...result,
      verdicts: [
        atLeast(1.5, redrive, Number(peers[best]), `1.5 × the best peer, ${best}`),
        share(0.7, redrive, Number(peers['raw']), 'raw'),
      ],
    };
  },
};

export const executeSqlite: Case = {
  name: 'execute-sqlite',
  about:
    'the same in a SQLite file, durable commits (graphile-worker: in PostgreSQL; redrive-audit: with an event for each)',
  async run(effort) {
    const result = await throughput(
      'execute',
      [
        { name: 'redrive', player: 'redrive-sqlite', ground: 'file' },
        { name: 'redrive-audit', player: 'redrive-sqlite-audit', ground: 'file' },
        { name: 'graphile-worker', player: 'graphile-worker', ground: 'postgres' },
        { name: 'raw', player: 'raw-sqlite', ground: 'file' },
      ],
      effort,
    );
    const { redrive, peers } = result;
    return {
      ...result,
      verdicts: among(result, {
        raw: () => share(0.4, redrive, Number(peers['raw']), 'raw, the bare claim and settle'),
        'graphile-worker': () =>
          atLeast(
            1,
            redrive,
            Number(peers['graphile-worker']),
            'as fast as graphile-worker on PostgreSQL',
          ),
      }),
    };
  },
};

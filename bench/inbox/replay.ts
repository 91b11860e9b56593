import { throughput } from '../engine/throughput.ts';
import { share } from '../engine/verdicts.ts';
import type { Case } from '../result.ts';

/** A replay writes each task once more than `execute` does, and replays are paced: a fifth is enough. */
const TARGET = 0.2;

export const replay: Case = {
  name: 'replay',
  about: 'a bulk replay of 100 000 items, from the order to the last durable completion',
  async run({ turns, crowd }) {
    const result = await throughput(
      'execute',
      [
        { name: 'redrive', player: 'replay-postgres', ground: 'postgres' },
        { name: 'execute', player: 'redrive', ground: 'postgres' },
        { name: 'redrive-sqlite', player: 'replay-sqlite', ground: 'file' },
        { name: 'execute-sqlite', player: 'redrive-sqlite', ground: 'file' },
      ],
      { turns: Math.min(3, turns), tasks: crowd },
    );
    const { redrive, peers } = result;
    return {
      ...result,
      verdicts: [
        share(TARGET, redrive, Number(peers['execute']), 'execute, in PostgreSQL'),
        share(
          TARGET,
          Number(peers['redrive-sqlite']),
          Number(peers['execute-sqlite']),
          'execute, in SQLite',
        ),
      ],
      notes: [`${crowd.toLocaleString('en')} items, and as many tasks`, ...(result.notes ?? [])],
    };
  },
};

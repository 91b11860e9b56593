import { throughput } from '../engine/throughput.ts';
import { share } from '../engine/verdicts.ts';
import type { Case } from '../result.ts';

const LEAD_IN = 10_000;

export const ordered: Case = {
  name: 'ordered',
  about: '10 000 keys of 100 tasks each done in order, and as many tasks without keys',
  async run({ backlog }) {
    const result = await throughput(
      'execute',
      [
        { name: 'redrive', player: 'ordered-postgres', ground: 'postgres' },
        { name: 'unordered', player: 'redrive', ground: 'postgres' },
        { name: 'redrive-sqlite', player: 'ordered-sqlite', ground: 'file' },
        { name: 'unordered-sqlite', player: 'redrive-sqlite', ground: 'file' },
      ],
      // A turn takes a minute, which evens out more than short ones do.
      { turns: 1, tasks: backlog, leadIn: LEAD_IN },
    );
    const { redrive, peers } = result;
    return {
      ...result,
      verdicts: [
        share(0.5, redrive, Number(peers['unordered']), 'unordered, in PostgreSQL'),
        share(
          0.5,
          Number(peers['redrive-sqlite']),
          Number(peers['unordered-sqlite']),
          'unordered, in SQLite',
        ),
      ],
      notes: [`${backlog.toLocaleString('en')} tasks, 100 of a key`, ...(result.notes ?? [])],
    };
  },
};

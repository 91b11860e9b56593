import { keysOf } from '../engine/players/ordered.ts';
import { throughput } from '../engine/throughput.ts';
import { share } from '../engine/verdicts.ts';
import type { Case } from '../result.ts';

const LEAD_IN = 10_000;
const IN_ALL = 300_000;

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
      // One of a minute evens out as much as some short ones.
      { turns: Math.max(1, Math.round(IN_ALL / backlog)), tasks: backlog, leadIn: LEAD_IN },
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
      notes: [
        `${backlog.toLocaleString('en')} tasks, ${backlog / keysOf(backlog)} of a key`,
        ...(result.notes ?? []),
      ],
    };
  },
};

import type { Contestant } from '../engine/throughput.ts';
import { throughput } from '../engine/throughput.ts';
import { share } from '../engine/verdicts.ts';
import type { Case, Verdict } from '../result.ts';

const contestants: readonly Contestant[] = [
  { name: 'redrive', player: 'redrive-trail', ground: 'postgres' },
  { name: 'off', player: 'redrive', ground: 'postgres' },
  { name: 'successes', player: 'redrive-audit', ground: 'postgres' },
  { name: 'retrying', player: 'retrying-postgres-trail', ground: 'postgres' },
  { name: 'retrying-off', player: 'retrying-postgres', ground: 'postgres' },
  { name: 'redrive-sqlite', player: 'redrive-sqlite-trail', ground: 'file' },
  { name: 'off-sqlite', player: 'redrive-sqlite', ground: 'file' },
  { name: 'successes-sqlite', player: 'redrive-sqlite-audit', ground: 'file' },
  { name: 'retrying-sqlite', player: 'retrying-sqlite-trail', ground: 'file' },
  { name: 'retrying-off-sqlite', player: 'retrying-sqlite', ground: 'file' },
];

/** At most a fifth off. */
const LEAST = 0.8;

export const auditOn: Case = {
  name: 'audit-on',
  about:
    'tasks done with the trail on, off, and with successes; and each failing once before it is done',
  async run({ turns, tasks }) {
    const result = await throughput('execute', contestants, { turns, tasks });
    const { redrive, peers } = result;
    const rates: Record<string, number> = { redrive, ...peers };
    const judge = (on: string, off: string, text: string): Verdict =>
      share(LEAST, Number(rates[on]), Number(rates[off]), text);
    const part = (on: string, off: string) =>
      `${Math.round((Number(rates[on]) / Number(rates[off])) * 100)} %`;
    return {
      ...result,
      verdicts: [
        judge('redrive', 'off', 'off, in PostgreSQL'),
        judge('retrying', 'retrying-off', 'retrying-off, an event for each task, in PostgreSQL'),
        judge('redrive-sqlite', 'off-sqlite', 'off, in SQLite'),
        judge('retrying-sqlite', 'retrying-off-sqlite', 'retrying-off, in SQLite'),
      ],
      notes: [
        `with an event for each success: ${part('successes', 'off')} of off in PostgreSQL, ${part('successes-sqlite', 'off-sqlite')} in SQLite`,
        ...(result.notes ?? []),
      ],
    };
  },
};

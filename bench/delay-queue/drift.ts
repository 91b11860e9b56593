import type { Case } from '../result.ts';
import { Actor } from '../engine/actors.ts';
import { Grounds, type Ground } from '../engine/grounds.ts';
import type { PlayerName } from '../engine/players.ts';
import { figureOf, noiseNote, percentile, spreadOf, takeTurns } from '../engine/turns.ts';

const TASKS_PER_MS = 3000 / 8000;
const places: Partial<Record<PlayerName, Ground>> = {
  'delay-redis': 'redis',
  'bullmq-delayed': 'redis',
  'delay-postgres': 'postgres',
  'delay-sqlite': 'file',
};

export const drift: Case = {
  name: 'drift',
  about: 'the p99 of how late entries are handed over, 3000 of them due evenly over 8 s',
  async run({ turns, spanMs }) {
    await using grounds = new Grounds();
    const names = Object.keys(places) as PlayerName[];
    const late = await takeTurns(names, turns, (name) => driftOnce(name, grounds, spanMs));
    const figures = names.map((name) => {
      return [name, figureOf(late[name].map((one) => percentile(one, 0.99)))] as const;
    });
    const p99 = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
    const halves = names.map((name) => {
      const { median } = figureOf(late[name].map((one) => percentile(one, 0.5)));
      return `${name} ${median} ms`;
    });
    const early = Math.min(
      ...names.filter((name) => name !== 'bullmq-delayed').flatMap((name) => late[name].flat()),
    );
    if (early < -1) throw new Error(`an entry was handed over ${-early} ms early`);
    const { 'delay-redis': redrive = Number.NaN, 'bullmq-delayed': bullmq = Number.NaN } = p99;
    return {
      metric: 'ms',
      redrive,
      peers: {
        bullmq,
        'redrive-postgres': Number(p99['delay-postgres']),
        'redrive-sqlite': Number(p99['delay-sqlite']),
      },
      spread: spreadOf(
        figures.map(([name, figure]) => [name === 'delay-redis' ? 'redrive' : name, figure]),
      ),
      verdicts: [
        {
          target: 'at most half of bullmq',
          measured: `${Math.round((redrive / bullmq) * 100)} %`,
          met: redrive <= bullmq / 2,
        },
      ],
      notes: [`p50: ${halves.join(', ')}`, noiseNote()],
    };
  },
};

async function driftOnce(name: PlayerName, grounds: Grounds, spanMs: number): Promise<number[]> {
  const actor = new Actor(name);
  try {
    const place = await grounds.place(places[name]!);
    await actor.ask('open', place.address);
    const lateMs = await actor.ask('drift', Math.round(spanMs * TASKS_PER_MS), spanMs);
    await actor.ask('close');
    await place.remove();
    return lateMs;
  } finally {
    await actor.end();
  }
}

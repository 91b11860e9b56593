import type { Case, Verdict } from '../result.ts';
import { Actor } from './actors.ts';
import { present } from '../missing.ts';
import { Grounds, type Ground, serverOf } from './grounds.ts';
import type { PlayerName } from './players.ts';
import { type Figure, figureOf, noiseNote, percentile, spreadOf, takeTurns } from './turns.ts';

/** 3000 over 8 s. */
const TASKS_PER_MS = 3000 / 8000;

const grounds: Partial<Record<PlayerName, Ground>> = {
  redrive: 'postgres',
  'redrive-sqlite': 'file',
  bullmq: 'redis',
  'pg-boss': 'postgres',
  'graphile-worker': 'postgres',
};
/** They look for work at intervals: one turn shows how far off that is. */
const pollers: readonly PlayerName[] = ['pg-boss', 'graphile-worker'];

export const drift: Case = {
  name: 'drift',
  about: 'the p99 of how late tasks start, 3000 of them due evenly over 8 s',
  async run({ turns, spanMs }) {
    const notes = [noiseNote()];
    await using places = new Grounds();
    const play = (name: PlayerName) => driftOnce(name, places, spanMs);
    const all = (Object.keys(grounds) as PlayerName[]).map((name) => ({ name }));
    const { here, missing } = present(all, ({ name }) => serverOf[grounds[name]!]);
    const names = here.map(({ name }) => name);
    const close = names.filter((name) => !pollers.includes(name));
    const lateMs: Partial<Record<PlayerName, number[][]>> = {
      ...(await takeTurns(close, Math.max(1, turns - 2), play)),
      ...(await takeTurns(
        names.filter((name) => pollers.includes(name)),
        1,
        play,
      )),
    };
    const at = (share: number): Record<string, Figure> =>
      Object.fromEntries(
        names.map((name) => {
          return [name, figureOf((lateMs[name] ?? []).map((one) => percentile(one, share)))];
        }),
      );
    const p99 = at(0.99);
    const halves = Object.entries(at(0.5)).map(([name, { median }]) => `${name} ${median} ms`);
    const values = Object.fromEntries(names.map((name) => [name, Number(p99[name]?.median)]));
    const { redrive = Number.NaN, ...peers } = values;
    return {
      metric: 'ms',
      redrive,
      peers,
      spread: spreadOf(Object.entries(p99)),
      missing,
      verdicts: 'bullmq' in peers ? judge(values) : [],
      notes: [`p50: ${halves.join(', ')}`, ...notes],
    };
  },
};

async function driftOnce(name: PlayerName, places: Grounds, spanMs: number): Promise<number[]> {
  const actor = new Actor(name);
  try {
    const place = await places.place(grounds[name]!);
    await actor.ask('open', place.address);
    const lateMs = await actor.ask('drift', Math.round(spanMs * TASKS_PER_MS), spanMs);
    await actor.ask('close');
    await place.remove();
    return lateMs;
  } finally {
    await actor.end();
  }
}

function judge(p99: Record<string, number>): Verdict[] {
  return ['redrive', 'redrive-sqlite'].map((name) => {
    const part = Number(p99[name]) / Number(p99['bullmq']);
    return {
      target: `${name} at most a quarter of bullmq`,
      measured: `${Math.round(part * 100)} %`,
      met: part <= 0.25,
    };
  });
}

import { Actor } from '../engine/actors.ts';
import { Grounds, type Ground } from '../engine/grounds.ts';
import type { PlayerName } from '../engine/players.ts';
import type { Freshness } from '../engine/players/replay.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from '../engine/turns.ts';
import { share } from '../engine/verdicts.ts';
import type { Case } from '../result.ts';

/** Of the rate of `execute`. */
const OFFERED = 1 / 5;
/** At most a fifth off. */
const LEAST = 0.8;

/** With a replay beside them, and alone, in either store. */
const fields = {
  redrive: { player: 'replay-postgres', ground: 'postgres', isBeside: true },
  alone: { player: 'replay-postgres', ground: 'postgres', isBeside: false },
  'redrive-sqlite': { player: 'replay-sqlite', ground: 'file', isBeside: true },
  'alone-sqlite': { player: 'replay-sqlite', ground: 'file', isBeside: false },
} as const satisfies Record<string, { player: string; ground: Ground; isBeside: boolean }>;

type FieldName = keyof typeof fields;
const names = Object.keys(fields) as FieldName[];

export const fresh: Case = {
  name: 'replay-fresh',
  about: 'fresh tasks, a fifth of what execute can do, beside a bulk replay and alone',
  async run({ turns, tasks, crowd, spanMs }) {
    const notes = [noiseNote()];
    await using grounds = new Grounds();
    const offered = {
      postgres: OFFERED * (await executeRate('redrive', 'postgres', grounds, tasks)),
      file: OFFERED * (await executeRate('redrive-sqlite', 'file', grounds, tasks)),
    };
    const actors = new Map(names.map((name) => [name, new Actor(fields[name].player)]));
    const play = async (name: FieldName): Promise<Freshness> => {
      const { ground, isBeside } = fields[name];
      const actor = actors.get(name)!;
      const place = await grounds.place(ground);
      await actor.ask('open', place.address);
      await actor.ask('schedule', crowd);
      await place.rest();
      const found = await actor.ask('fresh', offered[ground], spanMs, isBeside ? crowd : 0);
      await actor.ask('close');
      await place.remove();
      return found;
    };
    try {
      // Once for nothing.
      for (const name of names) await play(name);
      const played = await takeTurns(names, Math.min(3, turns), play);
      const figures = names.map(
        (name) => [name, figureOf(played[name].map(({ perSecond }) => perSecond))] as const,
      );
      const rates = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
      const { redrive = Number.NaN, ...peers } = rates;
      return {
        metric: 'ops/s',
        redrive,
        peers,
        spread: spreadOf(figures),
        verdicts: [
          share(LEAST, redrive, Number(peers['alone']), 'what is done alone, in PostgreSQL'),
          share(
            LEAST,
            Number(peers['redrive-sqlite']),
            Number(peers['alone-sqlite']),
            'what is done alone, in SQLite',
          ),
        ],
        notes: [...names.map((name) => noteOf(name, played[name])), ...notes],
      };
    } finally {
      for (const actor of actors.values()) await actor.end();
    }
  },
};

/** Tasks a second of a warm process. */
async function executeRate(
  player: PlayerName & ('redrive' | 'redrive-sqlite'),
  ground: Ground,
  grounds: Grounds,
  tasks: number,
): Promise<number> {
  const actor = new Actor(player);
  let rate = Number.NaN;
  try {
    for (const _turn of ['for nothing', 'measured']) {
      const place = await grounds.place(ground);
      await actor.ask('open', place.address);
      await actor.ask('schedule', tasks);
      await place.rest();
      rate = (tasks * 1000) / (await actor.ask('execute', tasks));
      await actor.ask('close');
      await place.remove();
    }
    return rate;
  } finally {
    await actor.end();
  }
}

function noteOf(name: FieldName, played: readonly Freshness[]): string {
  const middle = (get: (one: Freshness) => number) => figureOf(played.map(get)).median.toFixed(0);
  const replayed = fields[name].isBeside
    ? `, ${middle((one) => one.replayedPerSecond)} replayed a second`
    : '';
  const lateness = `p50 and p99 of how late: same lane ${middle(({ same }) => same.p50)} and ${middle(({ same }) => same.p99)} ms, other lane ${middle(({ other }) => other.p50)} and ${middle(({ other }) => other.p99)} ms`;
  return `${name}: ${middle((one) => one.offered)} offered a second${replayed}; ${lateness}`;
}

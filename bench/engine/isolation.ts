import type { Case, Verdict } from '../result.ts';
import { Actor } from './actors.ts';
import { Grounds, type Ground, type Place } from './grounds.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from './turns.ts';

/** A healthy lane beside one that is down, and alone, in either store. */
const fields = {
  redrive: { player: 'backlog-postgres', ground: 'postgres', isSick: true },
  alone: { player: 'backlog-postgres', ground: 'postgres', isSick: false },
  'redrive-sqlite': { player: 'backlog-sqlite', ground: 'file', isSick: true },
  'alone-sqlite': { player: 'backlog-sqlite', ground: 'file', isSick: false },
} as const satisfies Record<string, { player: string; ground: Ground; isSick: boolean }>;

type FieldName = keyof typeof fields;
const names = Object.keys(fields) as FieldName[];

export const isolation: Case = {
  name: 'isolation',
  about: 'a lane that works, beside one that is down and has 100 000 tasks waiting, and alone',
  async run({ turns, tasks, crowd }) {
    const notes = [
      noiseNote(),
      `${crowd.toLocaleString('en')} tasks wait in the lane that is down`,
    ];
    await using grounds = new Grounds();
    const actors = new Map(names.map((name) => [name, new Actor(fields[name].player)]));
    const places = new Map<FieldName, Place>();
    const play = async (name: FieldName): Promise<number> => {
      const actor = actors.get(name)!;
      await actor.ask('schedule', tasks);
      await places.get(name)?.rest();
      const tookMs = await actor.ask('healthy', tasks);
      await actor.ask('close');
      return (tasks * 1000) / tookMs;
    };
    try {
      for (const name of names) {
        const { ground, isSick } = fields[name];
        const place = await grounds.place(ground);
        places.set(name, place);
        await actors.get(name)!.ask('open', place.address);
        if (isSick) await actors.get(name)!.ask('fillSick', crowd);
        await play(name);
      }
      const perSecond = await takeTurns(names, turns, play);
      const figures = names.map((name) => [name, figureOf(perSecond[name])] as const);
      const rates = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
      const { redrive = Number.NaN, ...peers } = rates;
      return {
        metric: 'ops/s',
        redrive,
        peers,
        spread: spreadOf(figures),
        verdicts: [
          judge('PostgreSQL', redrive, peers['alone']),
          judge('SQLite', peers['redrive-sqlite'], peers['alone-sqlite']),
        ],
        notes,
      };
    } finally {
      for (const actor of actors.values()) await actor.end();
    }
  },
};

function judge(where: string, beside = Number.NaN, alone = Number.NaN): Verdict {
  const slower = 1 - beside / alone;
  return {
    target: `${where}: slowed by no more than 10 %`,
    measured: `${(slower * 100).toFixed(1)} %`,
    met: slower <= 0.1,
  };
}

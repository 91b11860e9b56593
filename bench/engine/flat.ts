import type { Effort } from '../harness.ts';
import type { Case, Result, Verdict } from '../result.ts';
import { Actor } from './actors.ts';
import { Grounds, type Ground, type Place } from './grounds.ts';
import { type Figure, figureOf, noiseNote, percentile, spreadOf, takeTurns } from './turns.ts';

const CLAIMS = 30;
const PER_CLAIM = 100;
const TASKS_PER_MS = 3000 / 8000;
const MAX_RATIO = 1.3;
const MAX_MORE_MS = 5;
const MAX_MORE_BYTES = 50e6;

/** With the backlog and with none, in either store. */
const fields = {
  redrive: { player: 'backlog-postgres', ground: 'postgres', isFull: true },
  none: { player: 'backlog-postgres', ground: 'postgres', isFull: false },
  'redrive-sqlite': { player: 'backlog-sqlite', ground: 'file', isFull: true },
  'none-sqlite': { player: 'backlog-sqlite', ground: 'file', isFull: false },
} as const satisfies Record<string, { player: string; ground: Ground; isFull: boolean }>;

type FieldName = keyof typeof fields;
type Team = Record<FieldName, Actor<'backlog-postgres' | 'backlog-sqlite'>>;

export const flatClaim: Case = {
  name: 'flat-claim',
  about: `a claim of ${PER_CLAIM} due tasks beside a million that wait in the future, and beside none`,
  run: (effort) =>
    beside(effort, async (team) => {
      const perRound = await takeTurns(
        names,
        effort.turns,
        async (name) => figureOf(await team[name].ask('claims', CLAIMS, PER_CLAIM)).median,
      );
      const result = resultOf(perRound);
      return { ...result, verdicts: judge(result) };
    }),
};

export const flatDrift: Case = {
  name: 'flat-drift',
  about: `the p99 of how late tasks start, beside a million that wait in the future, and beside none`,
  run: (effort) =>
    beside(effort, async (team) => {
      const spanMs = effort.spanMs / 2;
      const bytes = Object.fromEntries(names.map((name) => [name, [] as number[]]));
      const perRound = await takeTurns(names, Math.max(1, effort.turns - 2), async (name) => {
        const lateMs = await team[name].ask('drift', spanMs * TASKS_PER_MS, spanMs);
        bytes[name]?.push(await team[name].ask('memoryBytes'));
        await team[name].ask('close');
        return percentile(lateMs, 0.99);
      });
      const result = resultOf(perRound);
      const size = (name: FieldName) => figureOf(bytes[name] ?? []).median;
      return { ...result, verdicts: [...judge(result), ...judgeMemory(size)] };
    }),
};

const names = Object.keys(fields) as FieldName[];

/** Fills what is to be full, and hands out players in fresh processes: to fill takes memory too. */
async function beside(effort: Effort, play: (team: Team) => Promise<Result>): Promise<Result> {
  const notes = [noiseNote(), `${effort.backlog.toLocaleString('en')} tasks wait`];
  await using grounds = new Grounds();
  const places = new Map<FieldName, Place>();
  for (const name of names) {
    const { player, ground, isFull } = fields[name];
    const place = await grounds.place(ground);
    const filler = new Actor(player);
    await filler.ask('open', place.address);
    if (isFull) await filler.ask('fillFuture', effort.backlog);
    await filler.end();
    await place.rest();
    places.set(name, place);
  }
  const team = Object.fromEntries(
    names.map((name) => [name, new Actor(fields[name].player)]),
  ) as Team;
  try {
    for (const name of names) await team[name].ask('open', places.get(name)!.address);
    const result = await play(team);
    return { ...result, notes: [...(result.notes ?? []), ...notes] };
  } finally {
    for (const actor of Object.values(team)) await actor.end();
  }
}

function resultOf(perRound: Record<FieldName, number[]>): Result {
  const figures = names.map((name): [FieldName, Figure] => [name, figureOf(perRound[name])]);
  const values = Object.fromEntries(figures.map(([name, figure]) => [name, figure.median]));
  const { redrive = Number.NaN, ...peers } = values;
  return { metric: 'ms', redrive, peers, spread: spreadOf(figures) };
}

function judge({ redrive, peers }: Result): Verdict[] {
  const pairs = [
    ['PostgreSQL', redrive, peers['none']],
    ['SQLite', peers['redrive-sqlite'], peers['none-sqlite']],
  ] as const;
  return pairs.map(([where, full = Number.NaN, empty = Number.NaN]) => ({
    target: `${where}: within ${MAX_RATIO} × or ${MAX_MORE_MS} ms of none`,
    measured: `${(full / empty).toFixed(2)} ×, ${(full - empty).toFixed(1)} ms more`,
    met: full <= empty * MAX_RATIO || full - empty <= MAX_MORE_MS,
  }));
}

function judgeMemory(bytesOf: (name: FieldName) => number): Verdict[] {
  const pairs = [
    ['PostgreSQL', bytesOf('redrive'), bytesOf('none')],
    ['SQLite', bytesOf('redrive-sqlite'), bytesOf('none-sqlite')],
  ] as const;
  return pairs.map(([where, full, empty]) => ({
    target: `${where}: the process takes less than ${MAX_MORE_BYTES / 1e6} MB more`,
    measured: `${((full - empty) / 1e6).toFixed(1)} MB more than ${(empty / 1e6).toFixed(0)} MB`,
    met: full - empty < MAX_MORE_BYTES,
  }));
}

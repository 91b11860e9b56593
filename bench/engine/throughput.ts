import type { Effort } from '../harness.ts';
import type { Result } from '../result.ts';
import { Actor } from './actors.ts';
import { cpuMs } from './cpu.ts';
import { present } from '../missing.ts';
import { Grounds, type Ground, serverOf } from './grounds.ts';
import type { PlayerName } from './players.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from './turns.ts';

export interface Contestant {
  /** As it is shown; one is called `redrive`. */
  name: string;
  player: PlayerName;
  ground: Ground;
  /** What of it is measured, where that differs from the others. */
  skill?: Skill;
}

export type Skill = 'schedule' | 'execute';

interface Turn {
  perSecond: number;
  /** CPU time of a task, in its own process and in the server's. */
  ownUs: number;
  serverUs: number;
}

/** Tasks a second: in turns, each turn in an empty place, on the same servers. */
export async function throughput(
  skill: Skill,
  all: readonly Contestant[],
  { turns, tasks, leadIn = tasks }: Pick<Effort, 'turns' | 'tasks'> & { leadIn?: number },
): Promise<Result> {
  const notes = [noiseNote()];
  const { here: contestants, missing } = present(all, ({ ground }) => serverOf[ground]);
  await using grounds = new Grounds();
  const actors = new Map(contestants.map(({ name, player }) => [name, new Actor(player)]));
  const play = (name: string, count: number) =>
    playOnce(
      contestants.find((one) => one.name === name)!,
      skill,
      actors.get(name)!,
      grounds,
      count,
    );
  const names = contestants.map(({ name }) => name);
  try {
    // Once for nothing: everything is compiled, and the server has grown its files, before it counts.
    for (const name of names) await play(name, leadIn);
    const played = await takeTurns(names, turns, (name) => play(name, tasks));
    return { ...resultOf(names, played), missing, notes: [cpuNote(names, played), ...notes] };
  } finally {
    for (const actor of actors.values()) await actor.end();
  }
}

async function playOnce(
  { ground, skill: own }: Contestant,
  skill: Skill,
  actor: Actor,
  grounds: Grounds,
  tasks: number,
): Promise<Turn> {
  const place = await grounds.place(ground);
  await actor.ask('open', place.address);
  const last = own ?? skill;
  if (last === 'execute') {
    await actor.ask('schedule', tasks);
    await place.rest();
  }
  const used = () => [cpuMs(actor.pid), place.serverPid ? cpuMs(place.serverPid) : 0] as const;
  const [ownBefore, serverBefore] = used();
  const tookMs = await actor.ask(last, tasks);
  const [ownAfter, serverAfter] = used();
  await actor.ask('close');
  await place.remove();
  return {
    perSecond: (tasks * 1000) / tookMs,
    ownUs: ((ownAfter - ownBefore) * 1000) / tasks,
    serverUs: ((serverAfter - serverBefore) * 1000) / tasks,
  };
}

function resultOf(names: readonly string[], played: Record<string, Turn[]>): Result {
  const figures = names.map((name) => {
    return [name, figureOf((played[name] ?? []).map(({ perSecond }) => perSecond))] as const;
  });
  const rates = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
  const spread = spreadOf(figures);
  const { redrive = Number.NaN, ...peers } = rates;
  return { metric: 'ops/s', redrive, peers, spread };
}

/** On a busy machine this says more than the clock: who needs less is faster where nothing else runs. */
function cpuNote(names: readonly string[], played: Record<string, Turn[]>): string {
  const each = names.map((name) => {
    const turns = played[name] ?? [];
    const own = figureOf(turns.map(({ ownUs }) => ownUs)).median;
    const server = figureOf(turns.map(({ serverUs }) => serverUs)).median;
    return `${name} ${own.toFixed(0)} + ${server.toFixed(0)}`;
  });
  return `CPU time of a task in µs, own process + server: ${each.join(', ')}`;
}

/** The service and the echo, each in a process of its own. Both run all the time, and rest while it is not their turn. */
import { join } from 'node:path';
import { cpuMs } from '../engine/cpu.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from '../engine/turns.ts';
import type { Effort } from '../harness.ts';
import type { Result, Verdict } from '../result.ts';
import { HttpClient } from '../service/http-client.ts';
import { type Program, redrive, Running } from '../service/stage/program.ts';
import { PATH } from './entities.ts';

const programs: Readonly<Record<Name, Program>> = {
  redrive,
  bare: { script: join(import.meta.dirname, 'bare/echo.ts') },
};
type Name = 'redrive' | 'bare';
const names: readonly Name[] = ['redrive', 'bare'];
const WARM_UPS = 3;

export interface Load {
  body: string;
  connections: number;
  /** Evaluations in one request. */
  size: number;
  judge: (rates: Readonly<Record<Name, number>>) => Verdict[];
}

interface Turn {
  perSecond: number;
  ownUs: number;
}

/** Evaluations per second of both, turn by turn. */
export async function raceOverHttp(effort: Effort, load: Load): Promise<Result> {
  const { turns, spanMs } = effort;
  const notes = [noiseNote()];
  await using crew = await Crew.start();
  const play = (name: Name) => crew.play(name, load, spanMs / 2);
  // For nothing, until all of it is compiled: services run for weeks.
  await takeTurns(names, WARM_UPS, play);
  const played = await takeTurns(names, turns, play);
  const figures = names.map((name) => {
    return [name, figureOf(played[name].map(({ perSecond }) => perSecond))] as const;
  });
  const rates = Object.fromEntries(figures.map(([name, { median }]) => [name, median])) as Record<
    Name,
    number
  >;
  const cpu = names.map((name) => {
    return `${name} ${figureOf(played[name].map(({ ownUs }) => ownUs)).median.toFixed(1)}`;
  });
  return {
    metric: 'ops/s',
    redrive: rates.redrive,
    peers: { bare: rates.bare },
    spread: spreadOf(figures),
    verdicts: load.judge(rates),
    notes: [`CPU time of an evaluation in µs, own process: ${cpu.join(', ')}`, ...notes],
  };
}

export class Crew implements AsyncDisposable {
  readonly #running: Readonly<Record<Name, Running>>;

  private constructor(running: Readonly<Record<Name, Running>>) {
    this.#running = running;
  }

  static async start(): Promise<Crew> {
    // All requests are those of one client, more than any client may have.
    const env = { CRITERION_RATE_LIMIT: '1000000' };
    const own = await Running.start(programs.redrive, { env });
    const bare = await Running.start(programs.bare, {});
    return new Crew({ redrive: own, bare });
  }

  async play(name: Name, { body, connections, size }: Load, forMs: number): Promise<Turn> {
    const running = this.#running[name];
    await using client = new HttpClient(await running.url, PATH, body, connections, 200);
    const before = cpuMs(running.pid);
    const { answers, tookMs } = await client.ask(forMs);
    const usedMs = cpuMs(running.pid) - before;
    const evaluations = answers * size;
    return { perSecond: (evaluations * 1000) / tookMs, ownUs: (usedMs * 1000) / evaluations };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const running of Object.values(this.#running)) await running.stop();
  }
}

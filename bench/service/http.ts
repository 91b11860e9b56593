import { cpuMs } from '../engine/cpu.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from '../engine/turns.ts';
import { share } from '../engine/verdicts.ts';
import type { Effort } from '../harness.ts';
import type { Case, Result } from '../result.ts';
import { HttpClient } from './http-client.ts';
import { payloadOf } from './stage/messages.ts';
import { bareHttp, redrive, Running } from './stage/program.ts';
import { numberIn } from './stage/sql.ts';
import { Stage } from './stage/stage.ts';

const PATH = '/api/v1/retries';
const ITEMS = 100;
const HOUR_MS = 3_600_000;
const LEAST = 0.5;
const WARM_UPS = 3;

const contestants = {
  redrive: { program: redrive, store: 'postgres' },
  bare: { program: bareHttp, store: 'postgres' },
  'redrive-sqlite': { program: redrive, store: 'sqlite' },
} as const;
type Name = keyof typeof contestants;
const names = Object.keys(contestants) as Name[];

export const httpSingle: Case = {
  name: 'http-single',
  about: 'requests with one task each, answered after the commit, over 64 connections',
  run: (effort) => race(effort, JSON.stringify(itemOf(0)), 64, 1),
};

export const httpBatch: Case = {
  name: 'http-batch',
  about: `tasks in requests of ${ITEMS}, answered after the commit, over 8 connections`,
  run: (effort) => {
    const items = Array.from({ length: ITEMS }, (_, n) => itemOf(n));
    return race(effort, JSON.stringify({ items }), 8, ITEMS);
  },
};

/** Due much later: what is measured is how they get in. */
function itemOf(n: number): object {
  return {
    destination: 'http://127.0.0.1:9/hook',
    payload: JSON.parse(payloadOf(n).toString()) as unknown,
    due_at: new Date(Date.now() + HOUR_MS).toISOString(),
  };
}

interface Turn {
  perSecond: number;
  ownUs: number;
  databaseUs: number;
  clientUs: number;
}

async function race(
  { turns, spanMs }: Effort,
  body: string,
  connections: number,
  itemsPerRequest: number,
): Promise<Result> {
  const notes = [noiseNote()];
  await using stage = new Stage();
  await using crew = new Crew();
  for (const name of names) await crew.add(name, stage);
  const play = (name: Name, forMs: number) =>
    crew.load(name, { body, connections, itemsPerRequest, forMs });
  const turnMs = spanMs / 2;
  // For nothing, until all of it is compiled: services run for weeks.
  await takeTurns(names, WARM_UPS, (name) => play(name, turnMs));
  await crew.rest();
  const played = await takeTurns(names, turns, (name) => play(name, turnMs));
  await crew.check();
  const figures = names.map((name) => {
    return [name, figureOf(played[name].map(({ perSecond }) => perSecond))] as const;
  });
  const rates = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
  const { redrive: rate = Number.NaN, ...peers } = rates;
  return {
    metric: 'ops/s',
    redrive: rate,
    peers,
    spread: spreadOf(figures),
    verdicts: [share(LEAST, rate, Number(peers['bare']), 'bare fastify with group commit')],
    notes: [cpuNote(played), ...notes],
  };
}

interface Load {
  body: string;
  connections: number;
  itemsPerRequest: number;
  forMs: number;
}

/** All contestants run all the time, and have nothing to do while it is not their turn. */
class Crew implements AsyncDisposable {
  readonly #running = new Map<Name, Member>();

  async add(name: Name, stage: Stage): Promise<void> {
    const { program, store } = contestants[name];
    const database = store === 'postgres' ? await stage.database() : undefined;
    const env = database ? { DATABASE_URL: database.address } : {};
    const running = await Running.start(program, {
      // All requests are those of one client.
      env: { ...env, REDRIVE_RATE_LIMIT: '1000000' },
    });
    this.#running.set(name, { running, database, stored: 0 });
  }

  async load(name: Name, { body, connections, itemsPerRequest, forMs }: Load): Promise<Turn> {
    const member = this.#running.get(name)!;
    const { running, database } = member;
    await using client = new HttpClient(await running.url, PATH, body, connections);
    const used = () => ({
      own: cpuMs(running.pid),
      database: database?.serverPid ? cpuMs(database.serverPid) : 0,
      client: process.cpuUsage(),
    });
    const before = used();
    const { answers, tookMs } = await client.ask(forMs);
    const after = used();
    const tasks = answers * itemsPerRequest;
    member.stored += tasks;
    const { user, system } = after.client;
    return {
      perSecond: (tasks * 1000) / tookMs,
      ownUs: ((after.own - before.own) * 1000) / tasks,
      databaseUs: ((after.database - before.database) * 1000) / tasks,
      clientUs: (user + system - before.client.user - before.client.system) / tasks,
    };
  }

  async rest(): Promise<void> {
    for (const { database } of this.#running.values()) await database?.rest();
  }

  /** Whatever was answered is stored. */
  async check(): Promise<void> {
    for (const [name, { database, stored }] of this.#running) {
      if (!database) continue;
      const count = await numberIn(database.address, 'SELECT count(*) FROM retry_queue');
      if (count !== stored) {
        throw new Error(`${name}: ${stored} tasks were answered, and ${count} are stored`);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { running } of this.#running.values()) await running.stop();
  }
}

interface Member {
  running: Running;
  database: Awaited<ReturnType<Stage['database']>> | undefined;
  stored: number;
}

function cpuNote(played: Record<Name, Turn[]>): string {
  const each = names.map((name) => {
    const middle = (part: keyof Turn) =>
      figureOf(played[name].map((turn) => turn[part])).median.toFixed(0);
    return `${name} ${middle('ownUs')} + ${middle('databaseUs')} + ${middle('clientUs')}`;
  });
  return `CPU time of a task in µs, own process + PostgreSQL + client: ${each.join(', ')}`;
}

import type { NewTask, Store } from '@redrive/engine';
import { postgres } from '@redrive/engine/postgres';
import { sqlite } from '@redrive/engine/sqlite';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BATCH, timed } from '../engine/player.ts';
import { noiseNote } from '../engine/turns.ts';
import type { Case, Verdict } from '../result.ts';
import { payloadOf } from './stage/messages.ts';
import { redrive, Running } from './stage/program.ts';
import { Stage, type TurnPlace } from './stage/stage.ts';

const MAX_BYTES = 200e6;
const DAY_MS = 86_400_000;
/** As Prometheus does. */
const SCRAPE_MS = 5000;

type Memory = ReturnType<Running['memory']>;

export const memory: Case = {
  name: 'memory',
  about: 'what the process takes of the memory with a million tasks waiting, after 20 s',
  async run({ backlog, spanMs }) {
    const notes = [noiseNote(), `${backlog.toLocaleString('en')} tasks wait`];
    const forMs = spanMs * 2.5;
    await using stage = new Stage();
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    try {
      const file = join(folder, 'redrive.db');
      const found: Record<string, Memory> = {
        redrive: await inPostgres(await stage.place(), backlog, forMs),
        'redrive-sqlite': await inFile(await stage.place('sqlite'), file, backlog, forMs),
        empty: await inPostgres(await stage.place(), 0, forMs),
      };
      const bytes = Object.entries(found).map(([name, one]) => [name, one.residentBytes]);
      const { redrive: own = Number.NaN, ...peers } = Object.fromEntries(bytes) as Record<
        string,
        number
      >;
      return {
        metric: 'bytes',
        redrive: own,
        peers,
        verdicts: [judge('PostgreSQL', own), judge('SQLite', Number(peers['redrive-sqlite']))],
        notes: [noteOf(found), ...notes],
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function inPostgres(place: TurnPlace, tasks: number, forMs: number): Promise<Memory> {
  await fill(postgres({ url: place.database!.address }), place.queues.work, tasks);
  await place.database!.rest();
  const found = await run(place.env, forMs);
  await place.remove();
  return found;
}

async function inFile(
  place: TurnPlace,
  file: string,
  tasks: number,
  forMs: number,
): Promise<Memory> {
  await fill(sqlite(file), place.queues.work, tasks);
  const found = await run({ ...place.env, REDRIVE_DATA_DIR: join(file, '..') }, forMs);
  await place.remove();
  return found;
}

async function run(env: Record<string, string>, forMs: number): Promise<Memory> {
  await using running = await Running.start(redrive, { env });
  const url = `${await running.url}/metrics`;
  while (running.ageMs < forMs) {
    const page = await (await fetch(url)).text();
    if (!page.includes('retry_queue_depth')) throw new Error('the service shows no depth');
    await new Promise((resolve) => {
      setTimeout(resolve, Math.min(SCRAPE_MS, forMs - running.ageMs));
    });
  }
  return running.memory();
}

/** Messages of a queue that wait until tomorrow. */
async function fill(store: Store, queue: string, tasks: number): Promise<void> {
  await store.open();
  const starts = Array.from({ length: Math.ceil(tasks / BATCH) }, (_, batch) => batch * BATCH);
  const write = (start: number) => {
    const size = Math.min(BATCH, tasks - start);
    return store.insert(Array.from({ length: size }, (_, i) => taskOf(queue, start + i)));
  };
  await timed(starts, write);
  await store.close();
}

function taskOf(queue: string, n: number): NewTask {
  return {
    messageId: randomUUID(),
    destination: { kind: 'queue', address: queue },
    lane: `queue:${queue}`,
    payload: payloadOf(n),
    status: 'pending',
    attempt: 1,
    maxAttempts: 4,
    uncounted: 0,
    delayMs: DAY_MS,
    generation: 0,
    claims: 0,
    arrived: false,
    cancelling: false,
    blocked: false,
    due: { inMs: DAY_MS + n },
    failure: { class: 'transient', message: 'connect ETIMEDOUT' },
  };
}

function judge(where: string, bytes: number): Verdict {
  return {
    target: `${where}: under ${MAX_BYTES / 1e6} MB`,
    measured: `${(bytes / 1e6).toFixed(0)} MB`,
    met: bytes < MAX_BYTES,
  };
}

function noteOf(found: Readonly<Record<string, Memory>>): string {
  const each = Object.entries(found).map(([name, { peakBytes }]) => {
    return `${name} ${(peakBytes / 1e6).toFixed(0)}`;
  });
  return `at most, in MB: ${each.join(', ')}; empty: PostgreSQL without tasks`;
}

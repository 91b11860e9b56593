import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMs } from '../engine/cpu.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from '../engine/turns.ts';
import type { Case } from '../result.ts';
import { redrive, Running, type RunOptions } from './stage/program.ts';
import { Stage } from './stage/stage.ts';

const MAX_MS = 2000;
const LOOK_MS = 5;

const names = ['redrive', 'redrive-again', 'redrive-servers'] as const;
type Name = (typeof names)[number];

interface Start {
  tookMs: number;
  cpuMs: number;
}

export const start: Case = {
  name: 'start',
  about: 'from the start of the process until /health/ready answers 200, with nothing configured',
  async run({ turns }) {
    const notes = [noiseNote()];
    await using stage = new Stage();
    const cache = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    const play = (name: Name) => (name === 'redrive-servers' ? withServers(stage) : alone(name));
    try {
      await stage.place();
      await alone('redrive-again');
      const played = await takeTurns(names, turns, play);
      const middle = (of: (one: Start) => number) =>
        names.map((name) => [name, figureOf(played[name].map(of))] as const);
      const figures = middle(({ tookMs }) => tookMs);
      const cpu = middle((one) => one.cpuMs).map(([name, one]) => `${name} ${one.median} ms`);
      const values = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
      const { redrive: ms = Number.NaN, ...peers } = values;
      return {
        metric: 'ms',
        redrive: ms,
        peers,
        spread: spreadOf(figures),
        verdicts: [
          {
            target: `SQLite in an empty folder, nothing compiled: under ${MAX_MS} ms`,
            measured: `${ms.toFixed(0)} ms`,
            met: ms < MAX_MS,
          },
        ],
        notes: [
          `CPU time of the process until then: ${cpu.join(', ')}`,
          'redrive-again: what the start before had compiled is found; redrive-servers: the same with PostgreSQL, an empty database, and RabbitMQ',
          ...notes,
        ],
      };
    } finally {
      rmSync(cache, { recursive: true, force: true });
    }

    /** In an empty folder; with an empty cache of compiled code too, or with the one of the start before. */
    async function alone(name: 'redrive' | 'redrive-again'): Promise<Start> {
      const folder = name === 'redrive' ? mkdtempSync(join(tmpdir(), 'redrive-bench-')) : cache;
      const found = await timeOf({ env: { NODE_COMPILE_CACHE: folder } });
      if (folder !== cache) rmSync(folder, { recursive: true, force: true });
      return found;
    }

    async function withServers(on: Stage): Promise<Start> {
      const place = await on.place();
      const found = await timeOf({ env: { ...place.env, NODE_COMPILE_CACHE: cache } });
      await place.remove();
      return found;
    }
  },
};

async function timeOf(options: RunOptions): Promise<Start> {
  await using running = new Running(redrive, options);
  const url = `${await running.url}/health/ready`;
  while ((await fetch(url)).status !== 200) {
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_MS);
    });
  }
  return { tookMs: running.ageMs, cpuMs: cpuMs(running.pid) };
}

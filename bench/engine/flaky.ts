import { createEngine } from '@redrive/engine';
import { http } from '@redrive/engine/http';
import { sqlite } from '@redrive/engine/sqlite';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from 'redrive/testing';
import type { Case, Result, Verdict } from '../result.ts';
import { figureOf, noiseNote, takeTurns } from './turns.ts';

const TASKS = 3000;
const shares = [0.1, 0.3, 0.5, 0.7];
/** Before the outage, so that the lane is known to work. */
const WARM = 200;
const OUTAGE_MS = 3000;
/** Never opens: no lane has so many failures in a row. */
const NEVER = 1_000_000;
const CONCURRENCY = 10;
/** When any five failures in a row opened the breaker it was those that had started together. */
const CALLS_BEFORE = CONCURRENCY;

export const flaky: Case = {
  name: 'flaky',
  about: `${TASKS} tasks to a receiver with random 503s, with and without a breaker; and an outage`,
  async run({ turns }) {
    const rates: Record<string, number> = {};
    const verdicts: Verdict[] = [];
    const notes = [noiseNote(), 'deliveries a second that worked; a share of all answers is 503'];
    for (const share of shares) {
      const each = await takeTurns(['without', 'with'], turns, (how) =>
        deliver(share, how === 'with' ? 5 : NEVER),
      );
      const without = figureOf(each.without).median;
      const withBreaker = figureOf(each.with).median;
      const percent = `${share * 100} %`;
      rates[`none at ${percent}`] = without;
      rates[`breaker at ${percent}`] = withBreaker;
      const ratio = withBreaker / without;
      verdicts.push({
        target: `${percent} random failures: at least 80 % of what it is without a breaker`,
        measured: `${(ratio * 100).toFixed(0)} %`,
        met: ratio >= 0.8,
      });
    }
    const calls = await callsInOutage();
    verdicts.push({
      target: `an outage: at most ten calls more than ${CALLS_BEFORE}`,
      measured: `${calls}`,
      met: calls <= CALLS_BEFORE + 10,
    });
    const { 'breaker at 50 %': redrive = Number.NaN, ...peers } = rates;
    return { metric: 'ops/s', redrive, peers, verdicts, notes } satisfies Result;
  },
};

/** Deliveries a second that worked. */
async function deliver(share: number, failures: number): Promise<number> {
  const random = seededRandom(7);
  await using field = await Field.open(failures, () => random() < share);
  const startedAt = performance.now();
  await field.submit(TASKS);
  await field.worked(TASKS);
  return (TASKS * 1000) / (performance.now() - startedAt);
}

/** How often a lane that worked is called in the first seconds after it went down. */
async function callsInOutage(): Promise<number> {
  let isDown = false;
  await using field = await Field.open(5, () => isDown);
  await field.submit(WARM);
  await field.worked(WARM);
  isDown = true;
  const before = field.calls;
  await field.submit(TASKS);
  await new Promise((resolve) => {
    setTimeout(resolve, OUTAGE_MS);
  });
  return field.calls - before;
}

/** A receiver and an engine that delivers to it. */
class Field implements AsyncDisposable {
  calls = 0;
  #worked = 0;
  #wanted = Infinity;
  #reached: () => void = () => undefined;
  readonly #end: () => Promise<void>;
  readonly #submit: (count: number) => Promise<void>;
  readonly #fails: () => boolean;

  private constructor(failures: number, fails: () => boolean, port: number, close: () => void) {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    const engine = createEngine({
      store: sqlite(join(folder, 'tasks.db')),
      deliveries: [http({ allow: ['127.0.0.1'] })],
      lane: { failures, concurrency: CONCURRENCY },
      policy: { maxAttempts: 100, base: 50, cap: 50, jitter: 'full' },
    });
    this.#fails = fails;
    this.#submit = async (count) => {
      await engine.start();
      const to = `http://127.0.0.1:${port}/` as const;
      await engine.submitMany(Array.from({ length: count }, (_, n) => ({ to, payload: n })));
    };
    this.#end = async () => {
      await engine.stop();
      close();
      rmSync(folder, { recursive: true, force: true });
    };
  }

  static async open(failures: number, fails: () => boolean): Promise<Field> {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(field.#answer()).end();
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const field = new Field(failures, fails, port, () => {
      server.close();
      server.closeAllConnections();
    });
    return field;
  }

  submit(count: number): Promise<void> {
    return this.#submit(count);
  }

  /** Resolves when so many were delivered since the last time. */
  async worked(count: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wanted = count;
      this.#reached = resolve;
      this.#look();
    });
    this.#worked = 0;
    this.#wanted = Infinity;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }

  #answer(): number {
    this.calls += 1;
    if (this.#fails()) return 503;
    this.#worked += 1;
    this.#look();
    return 200;
  }

  #look(): void {
    if (this.#worked >= this.#wanted) this.#reached();
  }
}

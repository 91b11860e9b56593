import { join } from 'node:path';
import { cpuMs } from '../engine/cpu.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from '../engine/turns.ts';
import { share } from '../engine/verdicts.ts';
import type { Effort } from '../harness.ts';
import type { Case, Result } from '../result.ts';
import { type Program, redrive, Running } from '../service/stage/program.ts';
import { Stage, type StoreName } from '../service/stage/stage.ts';
import { newNotifications, policy, REPORTS, reportsOf } from './reported.ts';

const LEAST = 0.5;
const WARM_UPS = 2;
const PATH = '/api/v1/notifications';
const bare: Program = { script: join(import.meta.dirname, 'bare-http.ts') };
const names = ['redrive', 'bare'] as const;

export const reportHttpCase: Case = {
  name: 'report-http',
  about: `the same through the API: requests with ${REPORTS} reports, on SQLite`,
  run: (effort) => compare(effort, 'sqlite'),
};

export const reportHttpPostgresCase: Case = {
  name: 'report-http-postgres',
  about: 'the same through the API, on PostgreSQL',
  run: (effort) => compare(effort, 'postgres'),
};

async function compare({ turns, spanMs }: Effort, store: StoreName): Promise<Result> {
  const notes = [noiseNote()];
  await using stage = new Stage();
  await using service = await Reported.start(redrive, store, stage);
  await using limit = await Reported.start(bare, store, stage);
  await service.create();
  const play = (name: (typeof names)[number]) =>
    (name === 'redrive' ? service : limit).report(spanMs / 2);
  // For nothing, until all of it is compiled: services run for weeks.
  await takeTurns(names, WARM_UPS, play);
  const played = await takeTurns(names, turns, play);
  const figures = names.map((name) => {
    return [name, figureOf(played[name].map(({ perSecond }) => perSecond))] as const;
  });
  const rate = (name: (typeof names)[number]) => new Map(figures).get(name)!.median;
  const us = (name: (typeof names)[number]) =>
    figureOf(played[name].map(({ cpuUs }) => cpuUs)).median;
  const parts = store === 'postgres' ? 'of the service and of PostgreSQL' : 'of the service';
  const part = Math.round((100 * us('bare')) / us('redrive'));
  return {
    metric: 'ops/s',
    redrive: rate('redrive'),
    peers: { bare: rate('bare') },
    spread: spreadOf(figures),
    verdicts: [share(LEAST, rate('redrive'), rate('bare'), 'bare fastify with the bare writes')],
    notes: [
      'bare: fastify, JSON, and the same rows in two commits per request, without reading, deciding or an audit trail',
      `time of the processor for a report, ${parts}: redrive ${us('redrive').toFixed(1)} µs, bare ${us('bare').toFixed(1)} µs (${part} %)`,
      ...notes,
    ],
  };
}

/** A service that is told of failures, one request after another. */
class Reported implements AsyncDisposable {
  readonly #running: Running;
  readonly #url: string;
  readonly #pids: readonly number[];
  #attempt = 1;

  private constructor(running: Running, url: string, pids: readonly number[]) {
    this.#running = running;
    this.#url = url;
    this.#pids = pids;
  }

  static async start(program: Program, store: StoreName, stage: Stage): Promise<Reported> {
    const database = store === 'postgres' ? await stage.database() : undefined;
    const running = await Running.start(program, {
      env: {
        NOTIFICATIONS: 'on',
        // All requests are those of one client.
        REDRIVE_RATE_LIMIT: '1000000',
        ...(database ? { DATABASE_URL: database.address } : {}),
      },
      config: { policies: { 'notification.high': policy } },
    });
    const pids = [running.pid, database?.serverPid].filter((pid) => pid !== undefined);
    return new Reported(running, await running.url, pids);
  }

  /** The bare one makes its own rows. */
  async create(): Promise<void> {
    const items = newNotifications.map(({ recipient, ttlMs, ...rest }) => {
      return { ...rest, recipient: { user_id: recipient.userId }, ttl_ms: ttlMs };
    });
    await this.#post(PATH, items);
    await this.#post(`${PATH}/failures`, itemsOf(1));
  }

  async report(forMs: number): Promise<{ perSecond: number; cpuUs: number }> {
    const startMs = performance.now();
    const beforeMs = this.#cpuMs();
    let reports = 0;
    for (; performance.now() - startMs < forMs; reports += REPORTS) {
      this.#attempt += 1;
      const accepted = await this.#post(`${PATH}/failures`, itemsOf(this.#attempt));
      const scheduled = accepted.filter(({ decision }) => decision === 'scheduled');
      if (scheduled.length !== REPORTS) throw new Error(`${scheduled.length} were scheduled`);
    }
    const tookMs = performance.now() - startMs;
    return {
      perSecond: (reports * 1000) / tookMs,
      cpuUs: ((this.#cpuMs() - beforeMs) * 1000) / reports,
    };
  }

  #cpuMs(): number {
    return this.#pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
  }

  async #post(path: string, items: readonly object[]): Promise<{ decision?: string }[]> {
    const response = await fetch(new URL(path, this.#url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ items }),
    });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    const { accepted = [] } = (await response.json()) as { accepted?: { decision?: string }[] };
    return accepted;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#running.stop();
  }
}

function itemsOf(attempt: number): object[] {
  return reportsOf(attempt).map(({ notificationId, deviceId, attemptNumber }) => ({
    notification_id: notificationId,
    device_id: deviceId,
    attempt_number: attemptNumber,
  }));
}

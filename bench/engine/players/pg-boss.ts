import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { BATCH, batchesOf, dueTimes, type Player, timed, type Work, workOf } from '../player.ts';
import { Tally } from '../tally.ts';

const QUEUE = 'work';

/**
 * Its best, by its documentation and by trial: `insert` in batches without asking for the ids; for the workers batches
 * of 1000, each completed by one statement, fetched again without a pause while they come back full
 * (`burstWhenBatchFull`). Supervision and schedules are off. A partition of its own for the queue gained nothing.
 */
const WORKERS = 3;
/** The shortest that it allows. */
const POLL_SECONDS = 0.5;

export class PgBossPlayer implements Player {
  #url = '';
  #boss: PgBoss | undefined;

  async open(url: string): Promise<void> {
    this.#url = url;
    const boss = await this.#start();
    await boss.createQueue(QUEUE);
  }

  async schedule(tasks: number): Promise<number> {
    const boss = await this.#start();
    const batches = batchesOf(tasks, (n) => ({ data: workOf(n) }));
    return timed(batches, (jobs) => boss.insert(QUEUE, jobs));
  }

  async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    const boss = await this.#start();
    await this.#work(tally, WORKERS);
    await tally.all;
    // Resolves when the workers have completed what they fetched.
    await boss.offWork(QUEUE, { wait: true });
    const tookMs = tally.elapsedMs;
    await this.#check(tasks);
    return tookMs;
  }

  async drift(tasks: number, spanMs: number): Promise<number[]> {
    const tally = new Tally(tasks);
    const boss = await this.#start();
    await this.#work(tally, 1);
    const dueAt = dueTimes(tasks, spanMs);
    for (const batch of batchesOf(tasks, (n) => workOf(n, dueAt(n)))) {
      const jobs = batch.map((data) => ({ data, startAfter: new Date(data.dueAtMs) }));
      await boss.insert(QUEUE, jobs);
    }
    await tally.all;
    await boss.offWork(QUEUE, { wait: true });
    await this.#check(tasks);
    return tally.lateMs;
  }

  async close(): Promise<void> {
    await this.#boss?.stop({ graceful: true });
    this.#boss = undefined;
  }

  async #start(): Promise<PgBoss> {
    if (this.#boss) return this.#boss;
    const quiet = { supervise: false, schedule: false };
    this.#boss = new PgBoss({ connectionString: this.#url, max: 10, ...quiet });
    this.#boss.on('error', (error) => {
      throw error;
    });
    return this.#boss.start();
  }

  async #work(tally: Tally, localConcurrency: number): Promise<void> {
    const options = {
      batchSize: BATCH,
      localConcurrency,
      pollingIntervalSeconds: POLL_SECONDS,
      burstWhenBatchFull: true,
    };
    await this.#boss?.work<Work>(QUEUE, options, async (jobs) => {
      for (const { data } of jobs) tally.did(data);
      return Promise.resolve();
    });
  }

  async #check(tasks: number): Promise<void> {
    const client = new pg.Client(this.#url);
    await client.connect();
    const sql = `SELECT count(*)::int AS done FROM pgboss.job WHERE state = 'completed'`;
    const { rows } = await client.query<{ done: number }>(sql);
    await client.end();
    if (rows[0]?.done !== tasks) throw new Error(`only ${rows[0]?.done} are completed`);
  }
}

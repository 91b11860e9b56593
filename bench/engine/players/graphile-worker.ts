import { Logger, makeWorkerUtils, run, type Runner, type WorkerUtils } from 'graphile-worker';
import { BATCH, batchesOf, dueTimes, type Player, timed, type Work, workOf } from '../player.ts';
import { Tally, until } from '../tally.ts';

const TASK = 'work';

/**
 * Its best, by its page on performance and by trial: `addJobs`; 24 jobs at once, a local queue that is fetched by 1000
 * (its page has 500, which is slower), and completions written together (`completeJobBatchDelay`). What is done it
 * deletes, and keeps no trace of.
 */
const JOBS_AT_ONCE = 24;
const BATCH_DELAY_MS = 0;
const POLL_MS = 2000;
/** As short as one likes, at the price of that many queries: these are twenty a second. */
const DRIFT_POLL_MS = 50;

const logger = new Logger(() => (level, message) => {
  if (level === 'error') console.error(`graphile-worker: ${message}`);
});

export class GraphileWorkerPlayer implements Player {
  #url = '';
  #utils: WorkerUtils | undefined;
  #runner: Runner | undefined;

  async open(url: string): Promise<void> {
    this.#url = url;
    this.#utils = await makeWorkerUtils({ connectionString: url, logger, maxPoolSize: 10 });
    await this.#utils.migrate();
  }

  async schedule(tasks: number): Promise<number> {
    const batches = batchesOf(tasks, (n) => ({ identifier: TASK, payload: workOf(n) }));
    return timed(batches, async (specs) => this.#utils?.addJobs(specs));
  }

  async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    await this.#run(tally, POLL_MS);
    await tally.all;
    await until(() => this.#isEmpty());
    return tally.elapsedMs;
  }

  async drift(tasks: number, spanMs: number): Promise<number[]> {
    const tally = new Tally(tasks);
    await this.#run(tally, DRIFT_POLL_MS);
    const dueAt = dueTimes(tasks, spanMs);
    for (const batch of batchesOf(tasks, (n) => workOf(n, dueAt(n)))) {
      const specs = batch.map((payload) => ({
        identifier: TASK,
        payload,
        runAt: new Date(payload.dueAtMs),
      }));
      await this.#utils?.addJobs(specs);
    }
    await tally.all;
    await until(() => this.#isEmpty());
    return tally.lateMs;
  }

  async close(): Promise<void> {
    await this.#runner?.stop();
    await this.#utils?.release();
    this.#runner = undefined;
  }

  async #run(tally: Tally, pollInterval: number): Promise<void> {
    this.#runner = await run({
      preset: {
        worker: {
          connectionString: this.#url,
          concurrentJobs: JOBS_AT_ONCE,
          maxPoolSize: JOBS_AT_ONCE + 2,
          pollInterval,
          localQueue: { size: BATCH },
          completeJobBatchDelay: BATCH_DELAY_MS,
          failJobBatchDelay: BATCH_DELAY_MS,
          logger,
        },
      },
      noHandleSignals: true,
      taskList: { [TASK]: (payload) => tally.did(payload as Work) },
    });
  }

  /** Its events come before its commits, so that only the table says when all is safe. */
  async #isEmpty(): Promise<boolean> {
    const sql = 'SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS is_there';
    const answer = await this.#utils?.withPgClient((client) =>
      client.query<{ is_there: boolean }>(sql),
    );
    return answer?.rows[0]?.is_there === false;
  }
}

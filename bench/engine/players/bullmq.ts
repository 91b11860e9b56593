import { Queue, Worker } from 'bullmq';
import { batchesOf, dueTimes, type Player, timed, type Work, workOf } from '../player.ts';
import { Tally, until } from '../tally.ts';

const QUEUE = 'work';

/**
 * Its best, by its documentation and by trial: `addBulk`, one worker with 200 jobs at once, and jobs removed when they
 * are done. Its Redis keeps nothing on disk: what is done here would be forgotten if the server ended.
 */
const JOBS_AT_ONCE = 200;

export class BullMqPlayer implements Player {
  #url = '';
  #queue: Queue<Work> | undefined;
  #worker: Worker<Work> | undefined;
  readonly #delayMs: number;

  /** With a delay its jobs wait among the delayed ones, as entries of a delay queue do. */
  constructor(delayMs = 0) {
    this.#delayMs = delayMs;
  }

  async open(url: string): Promise<void> {
    this.#url = url;
    this.#queue = new Queue(QUEUE, { connection: { url } });
    await this.#queue.waitUntilReady();
  }

  async schedule(tasks: number): Promise<number> {
    const batches = batchesOf(tasks, (n) => {
      const job = { name: QUEUE, data: workOf(n) };
      return this.#delayMs === 0 ? job : { ...job, opts: { delay: this.#delayMs } };
    });
    return timed(batches, async (jobs) => this.#queue?.addBulk(jobs));
  }

  async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    const completed = await this.#work(tally);
    await tally.all;
    await until(() => completed.count === tasks);
    return tally.elapsedMs;
  }

  async drift(tasks: number, spanMs: number): Promise<number[]> {
    const tally = new Tally(tasks);
    const completed = await this.#work(tally);
    const dueAt = dueTimes(tasks, spanMs);
    for (const batch of batchesOf(tasks, (n) => workOf(n, dueAt(n)))) {
      const timestamp = Date.now();
      const jobs = batch.map((data) => {
        return { name: QUEUE, data, opts: { timestamp, delay: data.dueAtMs - timestamp } };
      });
      await this.#queue?.addBulk(jobs);
    }
    await tally.all;
    await until(() => completed.count === tasks);
    return tally.lateMs;
  }

  async close(): Promise<void> {
    await this.#worker?.close();
    await this.#queue?.obliterate({ force: true });
    await this.#queue?.close();
    this.#worker = undefined;
  }

  async #work(tally: Tally): Promise<{ count: number }> {
    const completed = { count: 0 };
    this.#worker = new Worker<Work>(QUEUE, async ({ data }) => Promise.resolve(tally.did(data)), {
      connection: { url: this.#url },
      concurrency: JOBS_AT_ONCE,
      removeOnComplete: { count: 0 },
    });
    this.#worker.on('completed', () => {
      completed.count += 1;
    });
    this.#worker.on('error', (error) => {
      throw error;
    });
    await this.#worker.waitUntilReady();
    return completed;
  }
}

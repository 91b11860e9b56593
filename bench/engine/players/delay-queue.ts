import type { DelayedEntry, DelayQueue, DueEntry } from '@redrive/engine';
import { batchesOf, dueTimes, type Player, timed, type Work, workOf } from '../player.ts';
import { Tally, until } from '../tally.ts';

/** How many entries a consumer asks for at once, and how many batches it has under way. */
const LIMITS = { maxBatch: 500, concurrency: 4 };
/** Entries of one call in `drift`: what waits for its batch is late by that. */
const DRIFT_BATCH = 100;

export interface OpenedQueue {
  queue: DelayQueue;
  close(): Promise<void>;
}

/** A delay queue, on whatever it is. */
export class DelayQueuePlayer implements Player {
  readonly #openAt: (place: string) => Promise<OpenedQueue>;
  #opened: OpenedQueue | undefined;

  constructor(openAt: (place: string) => Promise<OpenedQueue>) {
    this.#openAt = openAt;
  }

  async open(place: string): Promise<void> {
    this.#opened = await this.#openAt(place);
  }

  async schedule(tasks: number): Promise<number> {
    const batches = batchesOf(tasks, (n) => entryOf(workOf(n), 1));
    return timed(batches, (entries) => this.#queue.schedule(entries));
  }

  async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    tally.begin();
    const consumer = await this.#consume(tally);
    await tally.all;
    // The last answers are written when the consumer has stopped.
    await consumer.stop();
    const { elapsedMs } = tally;
    if ((await this.#queue.depth()) > 0) throw new Error('something is left in the queue');
    return elapsedMs;
  }

  async drift(tasks: number, spanMs: number): Promise<number[]> {
    const tally = new Tally(tasks);
    const consumer = await this.#consume(tally);
    const dueAt = dueTimes(tasks, spanMs);
    for (let n = 0; n < tasks; n += DRIFT_BATCH) {
      const nowMs = Date.now();
      const works = Array.from({ length: Math.min(DRIFT_BATCH, tasks - n) }, (_, i) =>
        workOf(n + i, dueAt(n + i)),
      );
      await this.#queue.schedule(works.map((work) => entryOf(work, work.dueAtMs - nowMs)));
    }
    await tally.all;
    await until(async () => (await this.#queue.depth()) === 0);
    await consumer.stop();
    return tally.lateMs;
  }

  async close(): Promise<void> {
    await this.#opened?.close();
    this.#opened = undefined;
  }

  get #queue(): DelayQueue {
    if (!this.#opened) throw new Error('it is not open');
    return this.#opened.queue;
  }

  #consume(tally: Tally) {
    return this.#queue.consume(async (batch) => {
      for (const entry of batch) tally.did(workIn(entry));
      return batch.map(() => ({ type: 'done' }));
    }, LIMITS);
  }
}

function entryOf(work: Work, delayMs: number): DelayedEntry {
  const payload = Buffer.from(JSON.stringify(work));
  return { id: `notification:device:${work.n}`, delayMs, payload };
}

function workIn({ payload }: DueEntry): Work {
  return JSON.parse(Buffer.from(payload).toString()) as Work;
}

import { Coalescer } from './coalescer.ts';
import { EngineError, isStoreError } from './errors.ts';
import type { Host } from './host.ts';
import { accept, type Accepted, type Arrival } from './moves.ts';
import type { Schedule } from './ports/schedule.ts';

const MAX_BATCH = 1000;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
const MAX_UNDERWAY = 2;
const MAX_WAITING_BYTES = 256 * 1024 * 1024;
/** What a task weighs beside its payload. */
const TASK_BYTES = 1024;

/** What became of one arrival of a batch. */
type Answer = Accepted | { error: unknown };

/** Stores what comes in, and answers only when it is committed. */
export class Intake {
  readonly #schedule: Schedule;
  readonly #seed: () => number;
  /** The store's time, as far as it is known here. */
  readonly #nowMs: () => number;
  readonly #batches: Coalescer<Arrival, Answer>;
  /** Bytes that wait to be stored. */
  #bytes = 0;

  constructor(schedule: Schedule, host: Host, seed: () => number, nowMs: () => number) {
    this.#schedule = schedule;
    this.#seed = seed;
    this.#nowMs = nowMs;
    this.#batches = new Coalescer((arrivals) => this.#storeEach(arrivals), {
      maxItems: MAX_BATCH,
      maxBytes: MAX_BATCH_BYTES,
      bytesOf: ({ task }) => task.payload.length,
      maxUnderway: MAX_UNDERWAY,
      defer: host.defer,
    });
  }

  /** Stored together with whatever else comes at this moment: one commit for many. */
  async add(arrival: Arrival): Promise<Accepted> {
    const bytes = arrival.task.payload.length + TASK_BYTES;
    if (this.#bytes + bytes > MAX_WAITING_BYTES) {
      throw new EngineError(
        'INTAKE_FULL',
        `More than ${MAX_WAITING_BYTES} bytes wait to be stored. Submit fewer at a time, and look at the store.`,
      );
    }
    this.#bytes += bytes;
    try {
      const answer = await this.#batches.add(arrival);
      if (typeof answer !== 'string') throw answer.error;
      return answer;
    } finally {
      this.#bytes -= bytes;
    }
  }

  /** Those that belong to different callers: what is wrong with one must not fail the others. */
  async #storeEach(arrivals: readonly Arrival[]): Promise<Answer[]> {
    try {
      return await this.store(arrivals);
    } catch (error) {
      if (isStoreError(error)) throw error;
      if (arrivals.length === 1) return [{ error }];
      const middle = arrivals.length >> 1;
      return [
        ...(await this.#storeEach(arrivals.slice(0, middle))),
        ...(await this.#storeEach(arrivals.slice(middle))),
      ];
    }
  }

  /** One result for each, or what is wrong with it. */
  async storeAll(arrivals: readonly Arrival[]): Promise<Answer[]> {
    return this.#storeEach(arrivals);
  }

  /** Stores a batch of one's own, or joins the caller's transaction. */
  async store(arrivals: readonly Arrival[], tx?: unknown): Promise<Accepted[]> {
    const results: Accepted[] = Array.from({ length: arrivals.length }, () => 'duplicate');
    const fresh: { index: number; task: Arrival['task'] }[] = [];
    const known: number[] = [];
    for (const [index, arrival] of arrivals.entries()) {
      const { result, task } = accept(arrival, undefined, this.#nowMs(), this.#seed());
      // What goes straight to the inbox needs its item in the same commit.
      if (result === 'accepted' && task && !('id' in task)) fresh.push({ index, task });
      else known.push(index);
    }
    if (fresh.length > 0) {
      const ids = await this.#schedule.insert(
        fresh.map(({ task }) => task),
        tx,
      );
      for (const [i, { index }] of fresh.entries()) {
        if (ids[i] !== undefined) results[index] = 'accepted';
        else known.push(index);
      }
    }
    if (known.length > 0) {
      const keys = known.map((index) => arrivals[index]!.task);
      const move = (task: Parameters<typeof accept>[1], nowMs: number, i: number) =>
        accept(arrivals[known[i]!]!, task, nowMs, this.#seed());
      const answers = await this.#schedule.change(keys, move, tx);
      for (const [i, index] of known.entries()) results[index] = answers[i]!;
    }
    return results;
  }
}

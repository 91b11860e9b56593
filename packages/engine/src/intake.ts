import { Coalescer } from './coalescer.ts';
import type { Host } from './host.ts';
import { accept, type Accepted, type Arrival } from './moves.ts';
import type { Schedule } from './ports/schedule.ts';

const MAX_BATCH = 1000;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
const MAX_UNDERWAY = 2;

/** Stores what comes in, and answers only when it is committed. */
export class Intake {
  readonly #schedule: Schedule;
  readonly #seed: () => number;
  /** The store's time, as far as it is known here. */
  readonly #nowMs: () => number;
  readonly #batches: Coalescer<Arrival, Accepted>;

  constructor(schedule: Schedule, host: Host, seed: () => number, nowMs: () => number) {
    this.#schedule = schedule;
    this.#seed = seed;
    this.#nowMs = nowMs;
    this.#batches = new Coalescer((arrivals) => this.store(arrivals), {
      maxItems: MAX_BATCH,
      maxBytes: MAX_BATCH_BYTES,
      bytesOf: ({ task }) => task.payload.length,
      maxUnderway: MAX_UNDERWAY,
      defer: host.defer,
    });
  }

  /** Stored together with whatever else comes at this moment: one commit for many. */
  add(arrival: Arrival): Promise<Accepted> {
    return this.#batches.add(arrival);
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
        else if (arrivals[index]!.type === 'failure') known.push(index);
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

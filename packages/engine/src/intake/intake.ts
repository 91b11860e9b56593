import { Coalescer } from '../coalescer.ts';
import { EngineError, isStoreError } from '../errors.ts';
import type { Host } from '../host.ts';
import {
  accept,
  type Accepted,
  type Arrival,
  type Change,
  isConflict,
  isOther,
} from '../model/moves.ts';
import type { Observer } from '../audit/observer.ts';
import type { NewTask } from '../model/task.ts';
import type { Schedule } from '../ports/schedule.ts';

const MAX_BATCH = 1000;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
const MAX_UNDERWAY = 2;
/** From so many on a caller's batch goes by itself: it gains nothing from others. */
const MIN_ALONE = 250;
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
  readonly #came: Observer['came'];
  readonly #batches: Coalescer<Arrival, Answer>;
  /** One batch at a time, so that those of one key are stored in the order in which they came. */
  readonly #ordered: Coalescer<Arrival, Answer>;
  /** What each of several callers has of its own. */
  readonly #groups: Coalescer<readonly Arrival[], readonly Answer[]>;
  /** Bytes that wait to be stored. */
  #bytes = 0;

  /** `came` hears of what became of each. */
  constructor(
    schedule: Schedule,
    host: Host,
    seed: () => number,
    nowMs: () => number,
    came: Observer['came'] = () => undefined,
  ) {
    this.#schedule = schedule;
    this.#came = came;
    this.#seed = seed;
    this.#nowMs = nowMs;
    const batches = (maxUnderway: number) =>
      new Coalescer<Arrival, Answer>((arrivals) => this.#storeEach(arrivals), {
        maxItems: MAX_BATCH,
        maxBytes: MAX_BATCH_BYTES,
        bytesOf: ({ task }) => task.payload.length,
        maxUnderway,
        defer: host.defer,
      });
    this.#batches = batches(MAX_UNDERWAY);
    this.#ordered = batches(1);
    this.#groups = new Coalescer((groups) => this.#storeGroups(groups), {
      maxItems: MAX_BATCH,
      maxBytes: 1,
      bytesOf: shareOf,
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
      const isOrdered = arrival.task.orderingKey !== undefined;
      const answer = await (isOrdered ? this.#ordered : this.#batches).add(arrival);
      if (typeof answer !== 'string') throw answer.error;
      return answer;
    } finally {
      this.#bytes -= bytes;
    }
  }

  /** Those that belong to different callers: what is wrong with one must not fail the others. */
  async #storeEach(arrivals: readonly Arrival[]): Promise<Answer[]> {
    const answers: Answer[] = [];
    try {
      return await this.#storeInto(answers, arrivals);
    } catch (error) {
      // What is stored already is stored, whatever became of the rest.
      const left = arrivals.flatMap((arrival, index) =>
        answers[index] ? [] : [{ arrival, index }],
      );
      const rest = await this.#storeRest(
        left.map(({ arrival }) => arrival),
        error,
      );
      for (const [i, { index }] of left.entries()) answers[index] = rest[i]!;
      return answers;
    }
  }

  /** After a batch has failed: by halves, until what is wrong stands alone. A store that is away fails all. */
  async #storeRest(arrivals: readonly Arrival[], error: unknown): Promise<Answer[]> {
    if (isStoreError(error) || arrivals.length === 1) return arrivals.map(() => ({ error }));
    const middle = arrivals.length >> 1;
    return [
      ...(await this.#storeEach(arrivals.slice(0, middle))),
      ...(await this.#storeEach(arrivals.slice(middle))),
    ];
  }

  /** One result for each, or what is wrong with it. */
  async storeAll(arrivals: readonly Arrival[]): Promise<readonly Answer[]> {
    const isLarge = arrivals.length >= MIN_ALONE;
    const answers = await (isLarge ? this.#storeEach(arrivals) : this.#groups.add(arrivals));
    // They are one caller's, who may ask for all of them again.
    for (const one of answers)
      if (typeof one !== 'string' && isStoreError(one.error)) throw one.error;
    return answers;
  }

  /** One commit for all of them: what a batch costs by itself is shared. */
  async #storeGroups(groups: readonly (readonly Arrival[])[]): Promise<(readonly Answer[])[]> {
    const answers = await this.#storeEach(groups.length === 1 ? groups[0]! : groups.flat());
    let end = 0;
    return groups.map(({ length }) => answers.slice(end, (end += length)));
  }

  /** Stores a batch of one's own, or joins the caller's transaction. */
  async store(arrivals: readonly Arrival[], tx?: unknown): Promise<Answer[]> {
    return this.#storeInto([], arrivals, tx);
  }

  /** Writes each answer as soon as it is committed: what comes after it may fail. */
  async #storeInto(
    results: Answer[],
    arrivals: readonly Arrival[],
    tx?: unknown,
  ): Promise<Answer[]> {
    const fresh: { index: number; task: Arrival['task']; change: Change<Accepted> }[] = [];
    const known: number[] = [];
    for (const [index, arrival] of arrivals.entries()) {
      const change = accept(arrival, undefined, this.#nowMs(), this.#seed());
      const { result, task } = change;
      // What goes straight to the inbox needs its item in the same commit.
      if (result === 'accepted' && task && !('id' in task)) fresh.push({ index, task, change });
      else known.push(index);
    }
    if (fresh.length > 0) {
      const ids = await this.#schedule.insert(
        fresh.map(({ task }) => task),
        tx,
      );
      for (const [i, { index, change }] of fresh.entries()) {
        if (ids[i] === undefined) known.push(index);
        else {
          results[index] = 'accepted';
          this.#came(arrivals[index]!.task, change);
        }
      }
    }
    if (known.length > 0) {
      const others = await this.#change(results, arrivals, known, tx);
      if (others.length > 0) await this.#storeOthers(results, arrivals, others, tx);
    }
    return results;
  }

  /** Those that are other messages than the tasks of their ids. */
  async #change(
    results: Answer[],
    arrivals: readonly Arrival[],
    known: readonly number[],
    tx: unknown,
  ): Promise<number[]> {
    const keys = known.map((index) => arrivals[index]!.task);
    const changes: Change<Accepted>[] = [];
    // Called again, it replaces what was not committed.
    const move = (task: Parameters<typeof accept>[1], nowMs: number, i: number) => {
      const arrival = arrivals[known[i]!]!;
      if (task && isOther(arrival, task)) return { result: 'other' as const };
      if (task && isConflict(arrival, task)) return { result: 'conflict' as const };
      return (changes[i] = accept(arrival, task, nowMs, this.#seed()));
    };
    const answers = await this.#schedule.change<Accepted | 'other' | 'conflict'>(keys, move, tx);
    return known.filter((index, i) => {
      const answer = answers[i]!;
      if (answer === 'other') return true;
      if (answer === 'conflict') results[index] = { error: mismatch(arrivals[index]!.task) };
      else {
        results[index] = answer;
        this.#came(arrivals[index]!.task, changes[i]!);
      }
      return false;
    });
  }

  async #storeOthers(
    results: Answer[],
    arrivals: readonly Arrival[],
    others: readonly number[],
    tx: unknown,
  ): Promise<void> {
    const renamed = others.map((index): Arrival => {
      const { otherId, ...arrival } = arrivals[index]!;
      return { ...arrival, task: { ...arrival.task, messageId: otherId! } };
    });
    const answers = await this.#storeInto([], renamed, tx);
    for (const [i, index] of others.entries()) results[index] = answers[i]!;
  }
}

function mismatch({ messageId }: NewTask): EngineError {
  const code = 'IDEMPOTENCY_MISMATCH';
  const message = `The same key was used for another payload before, in the task ${messageId}. Use another key for another message, or onConflict: 'duplicate' to keep the first one.`;
  return new EngineError(code, message, { faults: [{ path: 'payload', code, message }] });
}

/** How much of a batch a caller's arrivals take: 1 fills it. */
function shareOf(arrivals: readonly Arrival[]): number {
  let bytes = 0;
  for (const { task } of arrivals) bytes += task.payload.length;
  return Math.max(arrivals.length / MAX_BATCH, bytes / MAX_BATCH_BYTES);
}

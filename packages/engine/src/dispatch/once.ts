import {
  classify,
  type Clock,
  idempotencyKey,
  type IdempotencyStore,
  idempotent,
  type IdempotentOptions,
  isIdempotencyError,
} from 'redrive';
import { idempotencyKeyOf, type Task } from '../model/task.ts';
import type { Outcome, Run } from '../ports/delivery.ts';
import { isTransactional, type Transaction } from '../ports/idempotency.ts';

export interface OnceSettings {
  leaseMs: number;
  /** How long a record is kept. */
  keptMs: number;
  clock: Clock;
  /** Who hears what happens to the key of a task. */
  audit?: ((task: Task) => Pick<IdempotentOptions, 'audit' | 'subject'>) | undefined;
}

/** What the work of a task gets beside its payload. */
export interface OnceContext {
  readonly signal: AbortSignal;
  /** Only where the keys are kept in a database that has transactions. */
  readonly tx?: Transaction;
}

/** The work. It never throws: a failure is an outcome. */
type Work = (context: OnceContext) => Promise<Outcome>;

/**
 * Runs the work of a task under its idempotency key. Only `done` is recorded: every other outcome frees the key, and rolls
 * back the transaction where there is one. A task whose key has a record is done without running.
 */
export class OnceRunner {
  readonly #keys: IdempotencyStore;
  readonly #settings: OnceSettings;
  #pruneAtMs = -Infinity;

  constructor(keys: IdempotencyStore, settings: OnceSettings) {
    this.#keys = keys;
    this.#settings = settings;
  }

  /** Makes the table of the keys where it is missing. */
  async open(): Promise<void> {
    await this.#keys.prune(0);
  }

  /** Deletes expired records, at most so many; answers how many. Some stores look at all keys for it, so that it is done seldom. */
  async prune(limit: number): Promise<number> {
    const nowMs = this.#settings.clock.monotonic();
    if (nowMs < this.#pruneAtMs) return 0;
    const pruned = await this.#keys.prune(limit);
    if (pruned < limit) this.#pruneAtMs = nowMs + PRUNE_EVERY_MS;
    return pruned;
  }

  async run(task: Task, run: Run, work: Work): Promise<Outcome> {
    const keys = this.#keys;
    const limit = new ClaimLimit(run, this.#settings.clock);
    const { signal } = limit;
    let outcome: Outcome | undefined;
    const under = (store: IdempotencyStore, tx?: Transaction) =>
      idempotent(
        store,
        keyOf(task),
        async (claim) => {
          limit.claimed();
          outcome = await work({ signal: claim.signal, ...(tx ? { tx } : {}) });
          // To throw is how the key is freed and the transaction rolled back.
          if (outcome.type !== 'done') throw new Error('The work is not done.');
        },
        this.#options(task, signal),
      );
    try {
      const limits = { timeoutMs: Math.ceil(run.remainingMs), signal };
      const running = isTransactional(keys)
        ? keys.transaction((tx, inside) => under(inside, tx), limits)
        : under(unlessAborted(keys, signal));
      // A store may take its time to answer also after the signal.
      await Promise.race([running, limit.passed]);
      return done;
    } catch (error) {
      if (!outcome) return limit.hasRun ? this.#failed(error) : this.#notRun(error, run.signal);
      if (outcome.type !== 'done') return outcome;
      // The effect happened and stays, though its record was refused. In a transaction both are rolled back.
      return isTransactional(keys) ? this.#failed(error) : done;
    } finally {
      limit.close();
    }
  }

  #options(task: Task, signal: AbortSignal): IdempotentOptions {
    const { leaseMs, keptMs, clock, audit } = this.#settings;
    return {
      // Half of the task's, so that the key of a worker that died is free when its task is delivered again.
      lease: Math.max(MIN_LEASE_MS, leaseMs / 2),
      whileRunning: 'conflict',
      expiresIn: Math.max(1, keptMs),
      signal,
      clock,
      ...audit?.(task),
    };
  }

  /** Nothing ran, so that no attempt is used up. */
  #notRun(error: unknown, signal: AbortSignal): Outcome {
    if (isIdempotencyError(error) && error.code === 'IDEMPOTENCY_CONFLICT') {
      // A store that says 0 does not know: a transaction has the key, which ends with its time limit at the latest.
      return { type: 'held', delayMs: error.retryAfterMs || this.#settings.leaseMs / UNKNOWN_PART };
    }
    const failed = this.#failed(error);
    if (signal.aborted) return failed;
    return { type: 'refused', failure: failed.failure, neverStarted: true };
  }

  #failed(error: unknown): Extract<Outcome, { type: 'failed' }> {
    return { type: 'failed', failure: classify(error, { nowMs: this.#settings.clock.now() }) };
  }
}

const done: Outcome = { type: 'done' };
const MIN_LEASE_MS = 50;
const PRUNE_EVERY_MS = 600_000;
const MAX_KEY_LENGTH = 255;
/** Where nobody knows how long a key is held, the task comes back after this part of a lease. */
const UNKNOWN_PART = 10;

/**
 * Half of the time of an execution for the claim: an execution whose time is up has failed, and where only its key took so
 * long nothing has.
 */
class ClaimLimit {
  hasRun = false;
  /** Rejects when the limit is passed, or the execution is to end, before the work has begun. */
  readonly passed: Promise<never>;
  /** Aborted with the execution, and when the limit is passed. */
  readonly signal: AbortSignal;
  readonly #run: Run;
  readonly #clock: Clock;
  readonly #timer: unknown;
  readonly #end: () => void;

  constructor(run: Run, clock: Clock) {
    this.#run = run;
    this.#clock = clock;
    const controller = new AbortController();
    this.signal = controller.signal;
    let pass: (reason: unknown) => void = () => undefined;
    this.passed = new Promise((_, reject) => {
      pass = reject;
    });
    // Nobody waits for it any more once the key is answered.
    this.passed.catch(() => undefined);
    const abort = (reason: unknown) => {
      controller.abort(reason);
      if (!this.hasRun) pass(reason);
    };
    this.#end = () => abort(run.signal.reason);
    if (run.signal.aborted) this.#end();
    else run.signal.addEventListener('abort', this.#end, { once: true });
    this.#timer = clock.setTimer(() => abort(late()), run.remainingMs / 2, true);
  }

  /** The work begins. */
  claimed(): void {
    this.hasRun = true;
    this.#clock.clearTimer(this.#timer);
  }

  close(): void {
    this.#clock.clearTimer(this.#timer);
    this.#run.signal.removeEventListener('abort', this.#end);
  }
}

function late(): DOMException {
  return new DOMException('The store of keys took too long.', 'TimeoutError');
}

/** Tasks of one message at several handlers have keys of their own. */
function keyOf(task: Task): string {
  const key = `${task.lane}:${idempotencyKeyOf(task)}`;
  if (key.length <= MAX_KEY_LENGTH) return key;
  return idempotencyKey({ operation: task.lane, correlationId: idempotencyKeyOf(task) });
}

/** Work that ignores its signal must not keep its key for ever: from then on the lease is not renewed. */
function unlessAborted(keys: IdempotencyStore, signal: AbortSignal): IdempotencyStore {
  return {
    claim: (request) => keys.claim(request),
    renew: (key, owner, leaseMs) => !signal.aborted && keys.renew(key, owner, leaseMs),
    record: (key, owner, record) => keys.record(key, owner, record),
    read: (key) => keys.read(key),
    release: (key, owner) => keys.release(key, owner),
    prune: (limit) => keys.prune(limit),
  };
}

import type { Failure } from 'redrive';
import type { TaskFault } from '../errors.ts';
import type { Destination, Reason, Task, TaskContext } from '../model/task.ts';

/** Brings one task to its destination and says how that went. It never throws for a failure of the destination. */
export interface Delivery {
  /** The kind of destinations it serves. */
  readonly kind: string;
  /** It only hands over: one that takes too long has executed nothing, and burns no attempt. */
  readonly handsOver?: boolean;
  deliver(task: Task, run: Run): Promise<Outcome>;
  /** What is wrong with a task for such a destination, said when it is submitted. */
  check?(destination: Destination, context: TaskContext | undefined): readonly TaskFault[];
  close?(): Promise<void>;
}

export interface Run {
  /** Aborted when the lease is lost, when the time is up, and on stop. Made when it is first looked at. */
  readonly signal: AbortSignal;
  /** The 1-based number of this execution. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** What is left of the time for this execution. */
  readonly remainingMs: number;
}

/**
 * `done`: it worked. `taken`: a broker has it now. `failed`: an execution failed. `refused`: the lane is in trouble
 * and nothing ran. `lost`: the way there broke under it, which says nothing of the lane. `away`: there is no way there now.
 * `unroutable`: nobody is there. `invalid`: the payload is not what the destination takes; `oversized`: its headers are too
 * large; `impossible`: it can never be sent as it is. `held`: somebody else runs it under its idempotency key. The last three
 * are a handler's own wishes.
 */
export type Outcome =
  | { type: 'done' }
  | { type: 'taken' }
  | { type: 'failed'; failure: Failure; answer?: string }
  /** `neverStarted`: also the work of this process did not begin, so that its lost leases stay counted. */
  | { type: 'refused'; failure: Failure; neverStarted?: true }
  | { type: 'lost' | 'away'; failure: Failure }
  | { type: 'unroutable' | 'invalid' | 'oversized' | 'impossible'; failure: Failure }
  | { type: 'held'; delayMs: number }
  | { type: 'retryIn'; delayMs: number; failure: Failure }
  /** `reason`: why it is in the inbox then; `GAVE_UP` unless given. */
  | { type: 'giveUp'; failure: Failure; reason?: Reason }
  | { type: 'snooze'; delayMs: number };

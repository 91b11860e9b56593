import type { AuditEntry, Fault } from 'redrive';
import { DurableEngine } from './durable-engine.ts';
import type { SourceOptions } from './intake/consumer.ts';
import type { By, EngineInbox } from './inbox/engine-inbox.ts';
import type { EngineOptions, LaneOptions } from './engine-options.ts';
import { checkEngine, withAllFaults } from './engine-faults.ts';
import type { EngineError, TaskFault } from './errors.ts';
import type { Handler, HandlerContext, IdempotentContext } from './dispatch/handlers.ts';
import { checkNode } from './node-version.ts';
import type { laneStates } from './lanes/lane-state.ts';
import type { WatchedLane } from './lanes/watched-lanes.ts';
import type { AuditPage, AuditQuery } from './ports/audit.ts';
import type { TaskQuery, TransactionClient } from './ports/schedule.ts';
import type { Transaction, TransactionalIdempotency } from './ports/idempotency.ts';
import type { Census, TransactionalStore } from './ports/store.ts';
import type { FailureReport, Reported } from './intake/report.ts';
import type { InputOf, OutputOf, StandardSchema } from './dispatch/standard-schema.ts';
import type { Submission, SubmitOptions } from './intake/submission.ts';
import type { Submitted } from './intake/submitter.ts';
import type { Destination, Task } from './model/task.ts';

/**
 * The engine on a store. Nothing happens before `start`, but one may submit. Where the idempotency keys are kept in
 * PostgreSQL, idempotent handlers get a `tx`.
 */
export function createEngine<Tasks extends object = Record<string, unknown>>(
  options: EngineOptions & TransactionalKeys,
): Engine<Tasks, Transaction>;
export function createEngine<Tasks extends object = Record<string, unknown>>(
  options: EngineOptions,
): Engine<Tasks>;
export function createEngine(options: EngineOptions): unknown {
  checkNode('@redrive/engine');
  try {
    checkEngine(options);
    return new DurableEngine(options);
  } catch (error) {
    throw withAllFaults(error, options);
  }
}

type TransactionalKeys =
  | { store: TransactionalStore; idempotency?: undefined }
  | { idempotency: TransactionalIdempotency };

export interface HandlerOptions extends LaneOptions {
  /** Any Standard Schema: payloads are checked when they are submitted, and when they are delivered. */
  schema?: StandardSchema;
  /**
   * Runs each task under its idempotency key: one that is recorded as done is not run again, also after a crash. False
   * unless given.
   */
  idempotent?: boolean;
}

/** What a handler gets beside its payload. */
type ContextOf<Idempotent, Tx> = Idempotent extends true ? IdempotentContext<Tx> : HandlerContext;

/** A URL or a queue needs no handler. */
export type Elsewhere = `http://${string}` | `https://${string}` | Destination;

/** What a destination takes. One signature for all of them: of several, the compiler would explain the wrong one. */
export type PayloadTo<To, Tasks> = To extends keyof Tasks ? Tasks[To] : unknown;

/** No demand where the payload that a handler takes fits what will be submitted to it. Otherwise the compiler explains it by `Fit`. */
export type Takes<Name, Tasks, Payload, Fit> =
  unknown extends PayloadTo<Name, Tasks>
    ? unknown
    : [PayloadTo<Name, Tasks>] extends [Payload]
      ? unknown
      : Fit;

/** One of many: each is held to the payload of its own handler. */
export interface SubmissionTo<To, Tasks> extends SubmitOptions {
  to: To;
  payload: PayloadTo<To, Tasks>;
}

/**
 * Durable retries: what is submitted is kept until it worked, or lies in the inbox.
 *
 * `Tasks` maps the names of handlers to their payloads: it grows with each `handle`, or is given to
 * `createEngine` where the handlers live in another process. `Tx` is what idempotent handlers write through, or undefined.
 */
export interface Engine<Tasks extends object = Record<string, unknown>, Tx = undefined> {
  /** Registers the work for tasks of this name. Returns the engine, which now knows the payload's type. */
  handle<Name extends string, Schema extends StandardSchema, Idempotent extends boolean = false>(
    name: Name,
    options: HandlerOptions & {
      schema: Schema & Takes<Name, Tasks, InputOf<Schema>, StandardSchema<PayloadTo<Name, Tasks>>>;
      idempotent?: Idempotent;
    },
    run: Handler<OutputOf<Schema>, ContextOf<Idempotent, Tx>>,
  ): Engine<Tasks & Record<Name, InputOf<Schema>>, Tx>;
  handle<Name extends string, Payload = PayloadTo<Name, Tasks>, Idempotent extends boolean = false>(
    name: Name,
    options: HandlerOptions & { schema?: undefined; idempotent?: Idempotent },
    run: Handler<Payload, ContextOf<Idempotent, Tx>> &
      Takes<Name, Tasks, Payload, Handler<PayloadTo<Name, Tasks>, ContextOf<Idempotent, Tx>>>,
  ): Engine<Tasks & Record<Name, Payload>, Tx>;
  handle<Name extends string, Payload = PayloadTo<Name, Tasks>>(
    name: Name,
    run: Handler<Payload> & Takes<Name, Tasks, Payload, Handler<PayloadTo<Name, Tasks>>>,
  ): Engine<Tasks & Record<Name, Payload>, Tx>;

  /** Stores a task. Resolves after a durable commit; with `tx`, it is part of that transaction. */
  submit<const To extends (keyof Tasks & string) | Elsewhere>(
    to: To,
    payload: PayloadTo<To, Tasks>,
    options?: SubmitOptions & { tx?: TransactionClient | undefined },
  ): Promise<Submitted>;
  /** Stores many at once. A task that cannot be accepted is rejected by itself; the others go in. */
  submitMany<const To extends readonly ((keyof Tasks & string) | Elsewhere)[]>(
    tasks: { readonly [Index in keyof To]: SubmissionTo<To[Index], Tasks> },
    options?: { tx?: TransactionClient | undefined },
  ): Promise<(Submitted | Rejected)[]>;

  /** Every fault for which a submit would be refused, but for those that the schema of a handler finds. Stores nothing. */
  faultsOf(submission: Submission<string | Destination>): readonly (TaskFault | Fault)[];

  /** Takes in executions that failed elsewhere. Resolves after a durable commit; one with faults is rejected by itself. */
  report(failures: readonly FailureReport[]): Promise<(Reported | Rejected)[]>;
  /** Takes in failures from a broker, from the start on. */
  consume(source: SourceOptions): void;

  /** Opens the store and begins to deliver. Safe to call again. */
  start(): Promise<void>;
  /** Gives back what was not started, waits for what runs, then aborts it. Called again: aborts at once. */
  stop(): Promise<void>;

  /** Takes effect at once, or where it is in delivery, when that fails. */
  cancel(
    id: string,
    to?: string | Destination,
    options?: By,
  ): Promise<'cancelled' | 'cancelling' | 'over' | 'unknown'>;
  /** Makes a waiting task due now. */
  expedite(
    id: string,
    to?: string | Destination,
    options?: By,
  ): Promise<'expedited' | 'in_delivery' | 'over' | 'unknown'>;
  /** Says that what a broker took over has worked: for a destination that cannot say so itself. */
  succeeded(
    id: string,
    to?: string | Destination,
    options?: By,
  ): Promise<'done' | 'pending' | 'over' | 'unknown'>;
  get(id: string, to?: string | Destination): Promise<Task | undefined>;
  list(query: TaskQuery): Promise<Task[]>;
  /** What never worked, and what one does about it. */
  readonly inbox: EngineInbox;

  /** What waits where, and in which state the lanes are, in the order of their names. Page on with `after: last.lane`. */
  lanes(query?: LaneQuery): Promise<LaneReport[]>;
  /** How many lanes there are, by state. At most 5 s old: counting goes through all of them. */
  laneCounts(): Promise<LaneCounts>;
  /**
   * Stops deliveries of a lane in all instances. `known` is false where nothing waits and nothing was delivered lately:
   * the lane is paused all the same, but its name may be misspelt.
   */
  pause(lane: string, by?: string): Promise<{ known: boolean }>;
  resume(lane: string, by?: string): Promise<void>;
  /**
   * A lane that you serve beside the engine, such as the consumer of a delay queue: it is listed, paused and resumed as others
   * are. `paused` is told whether it is paused, at once and when that changes, by whichever instance. Call it after `start`.
   * The answer ends it.
   */
  watchLane(lane: string, watched: WatchedLane): () => void;
  /** How much waits and lies open in all, counted exactly: ask seldom. */
  census(): Promise<Census>;
  /** The trail of decisions, the newest first, where its sink can be read. */
  auditEvents(query: AuditQuery): Promise<AuditPage>;
  /** Writes a decision that was made beside the engine into the trail, such as one of a router. Never throws or waits. */
  audit(entry: AuditEntry): void;
  /** What this instance holds and owes. */
  stats(): EngineStats;
}

/** What is wrong with one of many: of the first fault, and all of them. */
export interface Rejected {
  status: 'rejected';
  code: EngineError['code'];
  message: string;
  path: string;
  faults: EngineError['faults'];
}

export interface LaneQuery {
  state?: LaneReport['state'];
  /** `handler`, `http` (also https), or the kind of a broker, such as `queue`. */
  kind?: string;
  /** Only names that begin so. */
  prefix?: string;
  /** Only lanes in which tasks wait behind an item of the inbox, or only others. */
  blocked?: boolean;
  /** Only names after this one. */
  after?: string;
  /** 1000 unless given, and at most. */
  limit?: number;
}

/** Lanes by state, and those in which tasks wait behind an item of the inbox. */
export type LaneCounts = Record<LaneReport['state'] | 'blocked', number>;

export interface LaneReport {
  lane: string;
  /** `NO_HANDLER`: this instance cannot deliver there. */
  state: (typeof laneStates)[number];
  running: number;
  /** Ms until the first of what waits is due; absent: nothing waits. */
  nextInMs?: number;
  /**
   * Tasks that wait behind an open item of the inbox with the same ordering key, and how many such items there are.
   * Absent: none. At most 1000 items are looked at, and 1000 tasks behind each.
   */
  blocked?: number;
  blockedBy?: number;
  /** Of a paused one: who did it, where that was said. */
  pausedBy?: string;
  /** Of an open one: ms until somebody tries whether it works. */
  probeInMs?: number;
  /** Absent where this instance cannot deliver there. */
  limits?: LaneLimits;
}

export interface LaneLimits {
  concurrency: number;
  timeoutMs: number;
  failures: number;
  ratePerSecond?: number;
}

export interface EngineStats {
  running: number;
  held: number;
  unsettled: number;
  auditDropped: number;
  outboxStuck: number;
  /** The jitter's seed, one per deployment. 0 until the store is open, and where the store keeps none. */
  seed: number;
  /**
   * How far this host's clock is ahead of the store's; negative: behind. 0 within what can be told. Absent until the store
   * has answered.
   */
  clockSkewMs?: number;
  sources: SourceReport[];
}

/** A source of failures: `stopped` by itself, and why. */
export interface SourceReport {
  source: string;
  state: 'waiting' | 'consuming' | 'stopped';
  why?: string;
}

import type { Line } from '../model/line.ts';
import type { Change } from '../model/moves.ts';
import type { AttemptRecord, Destination, NewTask, Task, TaskStatus } from '../model/task.ts';
import type { NewItem } from './inbox.ts';

/**
 * A transaction of the caller: a client of `pg` (`Client`, or the `PoolClient` of `pool.connect()`) on which BEGIN was
 * called. A pool is none, since each of its queries may go to another connection.
 */
export interface TransactionClient {
  query(text: string, values?: unknown[]): PromiseLike<unknown>;
  /** What a pool has and a client does not. */
  readonly totalCount?: never;
}

/**
 * The durable schedule: what waits, what is in delivery, what is over.
 *
 * Every method resolves only after a durable commit and is safe to call again when its answer was lost.
 * All times are the store's own: the engine hands in delays, and gets delays back.
 * Trouble that passes is an EngineError whose code begins with STORE_; anything else is taken for a fault of the input.
 */
export interface Schedule {
  readonly capabilities: ScheduleCapabilities;

  /**
   * Stores what is new. For each: its id, or undefined where its identity (message id, destination) is known, or where
   * somebody has it locked: `change` finds out, and waits. With `tx` it is written in that transaction of the caller; a
   * `tx` that is in no transaction is refused with `NOT_IN_TRANSACTION`.
   */
  insert(tasks: readonly NewTask[], tx?: unknown): Promise<(number | undefined)[]>;

  /**
   * Reads, moves and writes tasks one by one under a lock, all in one commit. `move` is pure and may be called
   * again. A key without a task gets undefined; what `move` returns for it is inserted.
   */
  change<T>(
    keys: readonly TaskKey[],
    move: (task: Task | undefined, nowMs: number, index: number) => Change<T>,
    tx?: unknown,
  ): Promise<T[]>;

  /**
   * Leases tasks, earliest first: each gets the token, one more in `claims`, and is hidden until the end of the
   * lease; then it is simply due again, as one of the `lost`. At most `maxBytes` of payload in all, but always one;
   * where bytes are short every lane gets its first before any gets its second.
   */
  claim(request: ClaimRequest): Promise<Claim>;

  /** Gives back whatever was leased under this token, as if it had not been: the answer of that claim was lost. */
  abandon(lease: number): Promise<void>;

  /** Ends leases. One that is not held any more changes nothing and says so. A row that is locked elsewhere never holds up the others. */
  settle(settlements: readonly Settlement[]): Promise<Settled[]>;

  /** Prolongs leases from now on. */
  renew(leases: readonly Lease[], leaseMs: number): Promise<Renewed[]>;

  get(key: TaskKey): Promise<Task | undefined>;
  /** Newest first by id, keyset paging. */
  list(query: TaskQuery): Promise<Task[]>;

  /** The lanes after that name in which something waits, the lost included, in order, and how long until the first of it is visible. */
  lanes(page: { after?: string; limit: number }): Promise<LaneAgenda[]>;

  /**
   * The lanes in which tasks wait behind an open item of the inbox with the same ordering key, sorted by name. Looks at no
   * more items than `limits.items`, and at no more tasks behind each than `limits.tasks`. Needed with `ordering`.
   */
  blocked(limits: BlockedLimits): Promise<BlockedLane[]>;

  /** Small shared documents (lanes, policies, the seed) whose key begins so, with the store's time. */
  readState(prefix: string): Promise<{ nowMs: number; documents: StateDocument[] }>;
  /** Writes one if its version is still the one that was read (0: there was none). False: somebody was faster. */
  writeState(key: string, value: unknown, version: number): Promise<boolean>;
  /** Deletes documents whose version is still the one that was read. Answers how many. Nobody is told of it. */
  dropState(documents: readonly Pick<StateDocument, 'key' | 'version'>[]): Promise<number>;

  /** Deletes finished tasks and their attempts, at most `limit`. Failed ones stay while their item is open. */
  prune(request: PruneRequest): Promise<number>;

  /** Leases outbox messages, oldest first. */
  takeOutbox(limit: number, leaseMs: number, only?: OutboxFilter): Promise<OutboxMessage[]>;
  dropOutbox(ids: readonly number[]): Promise<void>;

  /** Calls back when something may be due earlier than known, or shared state changed. Returns the end of it. */
  watch(listener: (hint: Hint) => void): () => void;
}

export interface ScheduleCapabilities {
  /** Several processes may use it at once. */
  shared: boolean;
  /** Survives the end of the process. */
  durable: boolean;
  /** `list` works. */
  listing: boolean;
  /** `change` works on tasks that wait, so that they can be cancelled and moved. */
  changing: boolean;
  /** Ordering keys are honoured: after every commit, `turnOf` says who of a line may be claimed. */
  ordering: boolean;
  /** `insert` and `change` can join the caller's own transaction. */
  transactions: boolean;
}

export type TaskKey = { id: number } | { messageId: string; destination: Destination };

export interface ClaimRequest {
  from: ClaimFrom;
  /** The fencing token of all that this claim leases; unique per claim. */
  lease: number;
  leaseMs: number;
  maxBytes: number;
}

/**
 * `due`: what waits and was not claimed since it was last settled (`claims` is 0). `lost`: what was claimed before
 * and whose lease is over. `expired`: what is past its `expiresAtMs`, in any lane, unless a lease still runs.
 */
export type ClaimFrom =
  | { kind: 'due'; lanes: readonly { lane: string; limit: number }[] }
  | { kind: 'lost'; lanes: readonly string[]; limit: number }
  | { kind: 'expired'; limit: number };

export interface Claim {
  tasks: Task[];
  /** The store's time of the claim. */
  nowMs: number;
  /**
   * For `due`, one per lane, in order; for `lost`, one for all of its lanes: ms until there is more; 0: perhaps now;
   * undefined: nothing waits there. Empty for `expired`.
   */
  nextInMs: (number | undefined)[];
}

export interface Lease {
  id: number;
  lease: number;
}

/**
 * How a lease ends. Where a failure arrived meanwhile the task becomes pending with what arrived, whatever the
 * settlement says; where it was cancelled meanwhile, `pending` becomes `cancelled`.
 */
export type Settlement = Lease & {
  /** The line of an ordered task: whose turn it is there is settled in the same commit. */
  line?: Line;
} & (
    | { to: 'done' | 'retried' | 'cancelled' }
    | {
        to: 'pending';
        delayMs: number;
        attempt: number;
        uncounted: number;
        /** What `claims` becomes: 0, or for a task that was never started what it was before. */
        claims: number;
        /** True: due in `delayMs`, by a new promise. False: a release, visible again at `dueAtMs` as it was. */
        reschedule: boolean;
        record?: AttemptRecord;
      }
    | {
        to: 'failed';
        attempt: number;
        item: NewItem;
        outbox?: NewOutboxMessage;
        record?: AttemptRecord;
      }
  );

/**
 * `cancelled`: somebody had cancelled it meanwhile, and that won. `rearmed`: what had arrived won. `lost`: somebody else holds it, or it is settled already. `busy`: the row is
 * locked by somebody who takes long; try again.
 */
export type Settled = 'settled' | 'cancelled' | 'rearmed' | 'lost' | 'busy';

/** `arrived`: held, but a failure arrived meanwhile: what has not started should be given back. */
export type Renewed = 'held' | 'arrived' | 'lost' | 'busy';

export interface TaskQuery {
  status?: TaskStatus;
  lane?: string;
  messageId?: string;
  /** Leaves out tasks whose destination is of this kind. */
  exceptKind?: string;
  /** Only ids below this one. */
  before?: number;
  limit: number;
}

export interface LaneAgenda {
  lane: string;
  inMs: number;
}

export interface BlockedLimits {
  items: number;
  /** Behind each item. */
  tasks: number;
}

export interface BlockedLane {
  lane: string;
  /** Items that tasks wait behind, and how many tasks do. */
  items: number;
  tasks: number;
}

export interface StateDocument {
  key: string;
  value: unknown;
  version: number;
}

export interface PruneRequest {
  /** Finished tasks older than this, by status. */
  olderThanMs: { done: number; retried: number; cancelled: number };
  limit: number;
}

/** Which of them. */
export interface OutboxFilter {
  /** Only destinations of these kinds: what cannot be sent here is left to others. */
  kinds?: readonly string[];
  /** Payloads of no more bytes in all, but always one. */
  maxBytes?: number;
}

export interface NewOutboxMessage {
  destination: Destination;
  payload: Uint8Array;
  /** A `content-type` among them is that of the message. */
  headers: Readonly<Record<string, string>>;
}

export interface OutboxMessage extends NewOutboxMessage {
  id: number;
}

/** What a watcher may know. Each part may be missing: then look for yourself. */
export interface Hint {
  lanes?: readonly string[];
  inMs?: number;
  state?: boolean;
}

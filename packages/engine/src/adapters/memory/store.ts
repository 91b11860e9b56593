import { type Clock, type IdempotencyStore, memoryIdempotency } from 'redrive';
import { EngineError } from '../../errors.ts';
import { release } from '../../model/judge.ts';
import { type Change, settle } from '../../model/moves.ts';
import { lineOf } from '../../model/line.ts';
import type {
  ActResult,
  Frozen,
  Group,
  GroupQuery,
  InboxItem,
  ItemAction,
  ItemFilter,
  ItemPage,
  ItemQuery,
  JobHold,
  JobTally,
  Member,
  MemberQuery,
  RawItem,
} from '../../ports/inbox.ts';
import type {
  BlockedLane,
  BlockedLimits,
  Claim,
  ClaimRequest,
  Hint,
  LaneAgenda,
  Lease,
  NewOutboxMessage,
  OutboxFilter,
  OutboxMessage,
  PruneRequest,
  Renewed,
  ScheduleCapabilities,
  Settled,
  Settlement,
  StateDocument,
  TaskKey,
  TaskQuery,
} from '../../ports/schedule.ts';
import type { Census, Store } from '../../ports/store.ts';
import type { AttemptRecord, NewTask, Task } from '../../model/task.ts';
import { MemoryAudit } from './audit.ts';
import { Actions, hasOther } from './actions.ts';
import { Documents } from './documents.ts';
import { MemoryInbox } from './inbox.ts';
import { Members } from './members.ts';
import { MemoryOutbox } from './outbox.ts';
import { TaskTable } from './tasks.ts';

/** Keeps everything in this process, by the pure moves alone: for tests, and the model that other stores are held to. */
export class MemoryStore implements Store {
  readonly capabilities: ScheduleCapabilities = {
    shared: false,
    durable: false,
    listing: true,
    changing: true,
    ordering: true,
    transactions: false,
  };
  readonly audit: MemoryAudit;
  readonly idempotency: IdempotencyStore;
  readonly #clock: Clock;
  readonly #maxTasks: number;
  readonly #tasks = new TaskTable();
  readonly #inbox = new MemoryInbox((id) => this.#tasks.get(id));
  readonly #outbox = new MemoryOutbox();
  readonly #documents = new Documents();
  readonly #members = new Members();
  readonly #actions = new Actions({
    tasks: this.#tasks,
    inbox: this.#inbox,
    outbox: this.#outbox,
    documents: this.#documents,
    members: this.#members,
  });
  readonly #watchers = new Set<(hint: Hint) => void>();

  constructor(clock: Clock, maxTasks: number) {
    this.audit = new MemoryAudit(undefined, clock);
    this.idempotency = memoryIdempotency({ clock, maxKeys: maxTasks });
    this.#clock = clock;
    this.#maxTasks = maxTasks;
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  async insert(tasks: readonly NewTask[], tx?: unknown): Promise<(number | undefined)[]> {
    refuseTransaction(tx);
    const move = (known: Task | undefined, _: number, index: number): Change<boolean> =>
      known ? { result: false } : { result: true, task: tasks[index]! };
    const stored = this.#commit(tasks, move);
    return stored.map(({ change, row }) => (change.result ? row?.id : undefined));
  }

  async change<T>(
    keys: readonly TaskKey[],
    move: (task: Task | undefined, nowMs: number, index: number) => Change<T>,
    tx?: unknown,
  ): Promise<T[]> {
    refuseTransaction(tx);
    return this.#commit(keys, move).map(({ change }) => change.result);
  }

  async claim({ from, lease, leaseMs, maxBytes }: ClaimRequest): Promise<Claim> {
    const nowMs = this.#clock.now();
    const chosen = this.#tasks.choose(from, nowMs);
    const tasks: Task[] = [];
    let bytes = 0;
    for (const task of chosen.tasks) {
      bytes += task.payload.length;
      if (tasks.length > 0 && bytes > maxBytes) break;
      const visibleAtMs = nowMs + leaseMs;
      const claims = task.claims + 1;
      const leased = this.#tasks.write({ ...task, lease, claims, arrived: false, visibleAtMs });
      tasks.push(handedOut(leased));
    }
    // What did not fit in the bytes is still due.
    const isCut = tasks.length < chosen.tasks.length;
    return { tasks, nowMs, nextInMs: isCut ? chosen.nextInMs.map(() => 0) : chosen.nextInMs };
  }

  async abandon(lease: number): Promise<void> {
    const held = this.#tasks.leasedUnder(lease);
    this.#commit(held, (task, nowMs) => settle(task, release(task!), nowMs));
  }

  async settle(settlements: readonly Settlement[]): Promise<Settled[]> {
    const move = (task: Task | undefined, nowMs: number, index: number) =>
      settle(task, settlements[index]!, nowMs);
    return this.#commit(settlements, move).map(({ change }) => change.result);
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<Renewed[]> {
    return leases.map(({ id, lease }) => {
      const task = this.#tasks.get(id);
      if (task?.lease !== lease || task.status !== 'pending') return 'lost';
      this.#tasks.write({ ...task, visibleAtMs: this.#clock.now() + leaseMs });
      return task.arrived ? 'arrived' : 'held';
    });
  }

  /** Everything as it is this moment, for whoever checks it. */
  peek(): { tasks: Iterable<Task> } & ReturnType<MemoryInbox['peek']> {
    return { tasks: this.#tasks.values(), ...this.#inbox.peek() };
  }

  peekState(prefix: string): StateDocument[] {
    return this.#documents.read(prefix);
  }

  async get(key: TaskKey): Promise<Task | undefined> {
    const task = this.#tasks.find(key);
    return task && handedOut(task);
  }

  async list(query: TaskQuery): Promise<Task[]> {
    const { status, lane, messageId, exceptKind, before = Infinity, limit } = query;
    return [...this.#tasks.values()]
      .filter(
        (task) =>
          task.id < before &&
          (status === undefined || task.status === status) &&
          (lane === undefined || task.lane === lane) &&
          task.destination.kind !== exceptKind &&
          (messageId === undefined || task.messageId === messageId),
      )
      .sort((a, b) => b.id - a.id)
      .slice(0, limit)
      .map(handedOut);
  }

  async lanes(page: { after?: string; limit: number }): Promise<LaneAgenda[]> {
    return this.#tasks.lanes(page, this.#clock.now());
  }

  async blocked(limits: BlockedLimits): Promise<BlockedLane[]> {
    return this.#tasks.blocked(limits);
  }

  async census(): Promise<Census> {
    return { ...this.#tasks.census(this.#clock.now()), open: this.#inbox.openByReason() };
  }

  async readState(prefix: string): Promise<{ nowMs: number; documents: StateDocument[] }> {
    return { nowMs: this.#clock.now(), documents: this.#documents.read(prefix) };
  }

  async writeState(key: string, value: unknown, version: number): Promise<boolean> {
    if (!this.#documents.has(key, version)) return false;
    this.#documents.write(key, value, version);
    for (const watcher of this.#watchers) watcher({ state: true });
    return true;
  }

  async dropState(documents: readonly Omit<StateDocument, 'value'>[]): Promise<number> {
    return documents.filter(({ key, version }) => this.#documents.drop(key, version)).length;
  }

  async prune({ olderThanMs, limit }: PruneRequest): Promise<number> {
    const nowMs = this.#clock.now();
    let pruned = 0;
    for (const task of this.#tasks.values()) {
      if (pruned >= limit) break;
      if (task.status === 'pending' || task.status === 'failed') continue;
      if ((task.finishedAtMs ?? nowMs) > nowMs - olderThanMs[task.status]) continue;
      this.#inbox.outlive(task);
      this.#tasks.remove(task);
      pruned += 1;
    }
    return pruned;
  }

  async takeOutbox(
    limit: number,
    leaseMs: number,
    only: OutboxFilter = {},
  ): Promise<OutboxMessage[]> {
    return this.#outbox.take(limit, leaseMs, only, this.#clock.now());
  }

  async dropOutbox(ids: readonly number[]): Promise<void> {
    this.#outbox.drop(ids);
  }

  watch(listener: (hint: Hint) => void): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }

  async append(items: readonly (RawItem & { outbox?: NewOutboxMessage })[]): Promise<void> {
    for (const { outbox, ...item } of items) {
      const nowMs = this.#clock.now();
      this.#inbox.appendRaw(item, nowMs);
      if (outbox) this.#outbox.send(outbox, item.messageId, nowMs);
    }
  }

  async item(id: number): Promise<InboxItem | undefined> {
    return this.#inbox.get(id);
  }

  async items(query: ItemQuery): Promise<ItemPage> {
    return this.#inbox.list(query);
  }

  async count(filter: ItemFilter): Promise<number> {
    return this.#inbox.count(filter);
  }

  async groups(query: GroupQuery): Promise<Group[]> {
    return this.#inbox.groups(query);
  }

  async annotate(fingerprint: string, by: { note?: string; owner?: string }): Promise<boolean> {
    return this.#inbox.annotate(fingerprint, by);
  }

  async attempts(
    taskId: number,
  ): Promise<(AttemptRecord & { generation: number; atMs: number })[]> {
    return this.#inbox.attempts(taskId);
  }

  act(ids: readonly number[], action: ItemAction): Promise<ActResult[]>;
  act(
    ids: readonly number[],
    action: ItemAction,
    under: JobHold<ActResult[]>,
  ): Promise<ActResult[] | undefined>;
  async act(
    ids: readonly number[],
    action: ItemAction,
    under?: JobHold<ActResult[]>,
  ): Promise<ActResult[] | undefined> {
    const touched: (Task | undefined)[] = [];
    const results = this.#actions.act(ids, action, under, this.#clock.now(), touched);
    this.#advance(touched);
    this.#wake(touched.flatMap((row) => (row ? (this.#tasks.get(row.id) ?? []) : [])));
    return results;
  }

  async erase(messageId: string, by?: string): Promise<'erased' | 'busy' | 'unknown'> {
    const touched: (Task | undefined)[] = [];
    const result = this.#actions.erase(messageId, by, this.#clock.now(), touched);
    this.#advance(touched);
    return result;
  }

  async freeze(
    filter: ItemFilter,
    page: { before: number; limit: number },
    under: JobHold<Frozen>,
  ): Promise<Frozen | undefined> {
    return this.#actions.freeze(filter, page, under);
  }

  async members(query: MemberQuery): Promise<Member[]> {
    return this.#members.list(query);
  }

  async tally(job: number, most: number): Promise<JobTally> {
    return this.#actions.tally(job, most);
  }

  async forgetJob(job: number, limit: number): Promise<boolean> {
    return this.#actions.forgetJob(job, limit);
  }

  async pruneItems({ closedForMs, limit }: { closedForMs: number; limit: number }) {
    return this.#inbox.prune(closedForMs, limit, this.#clock.now());
  }

  /** Lets the lines of these rows go on, and tells of those whose turn it is now. */
  #advance(rows: readonly (Task | undefined)[]): void {
    const lines = rows.flatMap((row) => (row ? (lineOf(row) ?? []) : []));
    this.#wake(lines.flatMap((line) => this.#tasks.advance(line) ?? []));
  }

  /** Moves tasks one after the other, then writes what goes with them. A move that throws undoes all before it. */
  #commit<T>(
    keys: readonly TaskKey[],
    move: (task: Task | undefined, nowMs: number, index: number) => Change<T>,
  ): { change: Change<T>; row?: Task }[] {
    const nowMs = this.#clock.now();
    const undo: (() => void)[] = [];
    let moved: { change: Change<T>; before?: Task; row?: Task }[];
    try {
      moved = keys.map((key, index) => {
        const known = this.#tasks.find(key);
        const change = move(known && { ...known }, nowMs, index);
        if (!change.task) return { change };
        const before = 'id' in change.task ? this.#tasks.get(change.task.id) : undefined;
        const row = 'id' in change.task ? this.#tasks.write(change.task) : this.#add(change.task);
        undo.push(() => (before ? this.#tasks.write(before) : this.#tasks.remove(row)));
        return { change, row, ...(before ? { before } : {}) };
      });
    } catch (error) {
      for (const one of undo.toReversed()) one();
      throw error;
    }
    for (const { before, row } of moved) {
      if (before && row && hasOther(before, row)) this.#inbox.keep(before);
    }
    for (const { change, row } of moved) this.#follow(change, row, nowMs);
    this.#advance(moved.flatMap(({ before, row }) => [before, row]));
    this.#wake(moved.flatMap(({ row }) => (row ? (this.#tasks.get(row.id) ?? []) : [])));
    return moved;
  }

  #follow(
    { task, item, occurrence, outbox, record }: Change<unknown>,
    row: Task | undefined,
    nowMs: number,
  ) {
    const own = task && !('id' in task) ? task.record : undefined;
    for (const one of [own, record]) if (row && one) this.#inbox.record(row, one, nowMs);
    if (row && item) this.#inbox.open(row, item, nowMs);
    if (occurrence) this.#inbox.occurred(occurrence.taskId, nowMs);
    if (outbox) this.#outbox.send(outbox, row?.messageId, nowMs);
  }

  #add(task: NewTask): Task {
    const { size } = this.#tasks;
    if (size < this.#maxTasks) return this.#tasks.addNew(task, this.#clock.now());
    throw new EngineError(
      'STORE_FULL',
      `The memory store holds ${size} tasks; its limit is ${this.#maxTasks}. Raise maxTasks, or use a store on disk.`,
    );
  }

  #wake(rows: readonly Task[]): void {
    const tasks = rows.filter(isWaiting);
    if (tasks.length === 0 || this.#watchers.size === 0) return;
    const firstMs = tasks.reduce((first, task) => Math.min(first, task.visibleAtMs), Infinity);
    const lanes = [...new Set(tasks.map((task) => task.lane))];
    const hint: Hint = { lanes, inMs: Math.max(0, firstMs - this.#clock.now()) };
    for (const watcher of this.#watchers) watcher(hint);
  }
}

function refuseTransaction(tx: unknown): void {
  if (tx === undefined) return;
  throw new EngineError(
    'NO_TRANSACTIONS',
    'The memory store cannot join a transaction. Submit without `tx`, or use PostgreSQL.',
  );
}

function isWaiting({ status, lease, blocked }: Task): boolean {
  return status === 'pending' && lease === undefined && !blocked;
}

/** A copy, as from any other store: what its reader does to it stays with the reader. */
function handedOut(task: Task): Task {
  return { ...task, payload: new Uint8Array(task.payload) };
}

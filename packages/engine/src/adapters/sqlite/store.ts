import type { Clock } from 'redrive';
import { EngineError } from '../../errors.ts';
import type { Change } from '../../moves.ts';
import type { AuditSink } from '../../ports/audit.ts';
import type { InboxItem, ItemQuery, RawItem } from '../../ports/inbox.ts';
import type {
  Claim,
  ClaimRequest,
  Hint,
  LaneAgenda,
  Lease,
  NewOutboxMessage,
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
import type { Store } from '../../ports/store.ts';
import type { AttemptRecord, NewTask, Task } from '../../task.ts';
import type { Database } from './database.ts';
import { type Filters, itemFilters, type Page, taskFilters } from './listing.ts';
import type { Statements } from './statements.ts';
import { Wake, Watchers } from './watch.ts';

/** An insert is cut into parts of this size, which share commits as far as time allows. */
const PART_TASKS = 500;
const PART_BYTES = 1024 * 1024;
const PRUNE_AT_ONCE = 250;

/** Schedule and inbox in one SQLite file. */
export class SqliteStore implements Store {
  readonly capabilities: ScheduleCapabilities = {
    shared: true,
    durable: true,
    listing: true,
    changing: true,
    ordering: false,
    transactions: false,
  };
  readonly audit: AuditSink;
  readonly #database: Database<Statements>;
  readonly #clock: Clock;
  readonly #watchers: Watchers;

  constructor(database: Database<Statements>, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
    this.#watchers = new Watchers(clock, () => database.statements?.dataVersion);
    this.audit = { write: (events) => database.write(({ audit }) => audit.write(events)) };
  }

  async open(): Promise<void> {
    await this.#database.open();
    this.#watchers.resume();
  }

  async close(): Promise<void> {
    this.#watchers.pause();
    await this.#database.close();
  }

  async insert(tasks: readonly NewTask[], tx?: unknown): Promise<(number | undefined)[]> {
    refuseTransaction(tx);
    const parts = await Promise.all(
      partsOf(tasks).map((part) =>
        this.#writeAndWake(({ changer }, nowMs, wake) =>
          part.map((task) => changer.insert(task, nowMs, wake)),
        ),
      ),
    );
    return parts.flat();
  }

  async change<T>(
    keys: readonly TaskKey[],
    move: (task: Task | undefined, nowMs: number, index: number) => Change<T>,
    tx?: unknown,
  ): Promise<T[]> {
    refuseTransaction(tx);
    return this.#writeAndWake(({ changer }, nowMs, wake) =>
      keys.map((key, i) => changer.change(key, (task) => move(task, nowMs, i), nowMs, wake)),
    );
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return this.#database.write(
      ({ claimer }) => claimer.claim(request, this.#clock.now()),
      ({ claimer }) => claimer.glance(request, this.#clock.now()),
    );
  }

  abandon(lease: number): Promise<void> {
    return this.#writeAndWake(({ settler }, nowMs, wake) => settler.abandon(lease, nowMs, wake));
  }

  settle(settlements: readonly Settlement[]): Promise<Settled[]> {
    return this.#writeAndWake(({ settler }, nowMs, wake) =>
      settlements.map((one) => settler.settle(one, nowMs, wake)),
    );
  }

  renew(leases: readonly Lease[], leaseMs: number): Promise<Renewed[]> {
    return this.#database.write(({ settler }) => {
      const endMs = this.#clock.now() + leaseMs;
      return leases.map((lease) => settler.renew(lease, endMs));
    });
  }

  get(key: TaskKey): Promise<Task | undefined> {
    return this.#database.read(({ tasks }) => tasks.find(key));
  }

  list(query: TaskQuery): Promise<Task[]> {
    return this.#list(query, taskFilters(query), ({ taskList }, ...page) => taskList.page(...page));
  }

  lanes({ after = '', limit }: { after?: string; limit: number }): Promise<LaneAgenda[]> {
    return this.#database.read(({ agenda }) => agenda.lanes(after, limit, this.#clock.now()));
  }

  readState(prefix: string): Promise<{ nowMs: number; documents: StateDocument[] }> {
    return this.#database.read(({ state }) => ({
      nowMs: this.#clock.now(),
      documents: state.read(prefix),
    }));
  }

  async writeState(key: string, value: unknown, version: number): Promise<boolean> {
    const isWritten = await this.#database.write(({ state }) => state.write(key, value, version));
    if (isWritten) this.#watchers.tell({ state: true });
    return isWritten;
  }

  async prune({ olderThanMs, limit }: PruneRequest): Promise<number> {
    let pruned = 0;
    for (;;) {
      const request = { olderThanMs, limit: Math.min(limit - pruned, PRUNE_AT_ONCE) };
      const count = await this.#database.write(
        ({ pruner }) => pruner.prune(request, this.#clock.now()),
        ({ pruner }) => (pruner.hasNone(olderThanMs, this.#clock.now()) ? 0 : undefined),
      );
      pruned += count;
      if (count < request.limit || pruned >= limit) return pruned;
    }
  }

  takeOutbox(limit: number, leaseMs: number): Promise<OutboxMessage[]> {
    return this.#database.write(
      ({ outbox }) => outbox.take(limit, leaseMs, this.#clock.now()),
      ({ outbox }) => (outbox.isEmpty(this.#clock.now()) ? [] : undefined),
    );
  }

  dropOutbox(ids: readonly number[]): Promise<void> {
    return this.#database.write(({ outbox }) => outbox.drop(ids));
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#watchers.add(listener);
  }

  append(items: readonly (RawItem & { outbox?: NewOutboxMessage })[]): Promise<void> {
    return this.#database.write(({ inbox, outbox }) => {
      const nowMs = this.#clock.now();
      for (const item of items) {
        inbox.append(item, nowMs);
        if (item.outbox) outbox.add(item.outbox, nowMs);
      }
    });
  }

  item(id: number): Promise<InboxItem | undefined> {
    return this.#database.read(({ inbox }) => inbox.item(id));
  }

  items(query: ItemQuery): Promise<InboxItem[]> {
    return this.#list(query, itemFilters(query), ({ itemList }, ...page) => itemList.page(...page));
  }

  attempts(taskId: number): Promise<(AttemptRecord & { generation: number; atMs: number })[]> {
    return this.#database.read(({ inbox }) => inbox.attempts(taskId));
  }

  /** Writes, and tells the watchers after the commit what became due. The time is that of the lock, not of the call. */
  async #writeAndWake<R>(
    work: (statements: Statements, nowMs: number, wake: Wake) => R,
  ): Promise<R> {
    const { result, hint } = await this.#database.write((statements) => {
      const nowMs = this.#clock.now();
      const wake = new Wake();
      return { result: work(statements, nowMs, wake), hint: wake.hint(nowMs) };
    });
    if (hint) this.#watchers.tell(hint);
    return result;
  }

  async #list<T>(
    { before = Infinity, limit }: { before?: number; limit: number },
    filters: Filters | undefined,
    read: (statements: Statements, filters: Filters, before: number, limit: number) => Page<T>,
  ): Promise<T[]> {
    const found: T[] = [];
    if (!filters) return found;
    let below: number | undefined = before;
    while (below !== undefined) {
      const beforeId: number = below;
      const page: Page<T> = await this.#database.read((statements) =>
        read(statements, filters, beforeId, limit - found.length),
      );
      found.push(...page.found);
      below = page.before;
    }
    return found;
  }
}

function refuseTransaction(tx: unknown): void {
  if (tx === undefined) return;
  throw new EngineError(
    'NO_TRANSACTIONS',
    'A SQLite store has its own connection and cannot join a transaction. Submit without `tx`, or use PostgreSQL.',
  );
}

function partsOf(tasks: readonly NewTask[]): NewTask[][] {
  const parts: NewTask[][] = [];
  let part: NewTask[] = [];
  let bytes = 0;
  for (const task of tasks) {
    bytes += task.payload.length;
    if (part.length === PART_TASKS || (part.length > 0 && bytes > PART_BYTES)) {
      parts.push(part);
      part = [];
      bytes = task.payload.length;
    }
    part.push(task);
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

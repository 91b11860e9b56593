import type { Clock, IdempotencyStore } from 'redrive';
import { EngineError } from '../../errors.ts';
import type { Change } from '../../model/moves.ts';
import type { AuditSink } from '../../ports/audit.ts';
import type {
  BlockedLane,
  BlockedLimits,
  Claim,
  ClaimRequest,
  Hint,
  LaneAgenda,
  Lease,
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
import type { Census, NotReached, Store } from '../../ports/store.ts';
import type { NewTask, Task } from '../../model/task.ts';
import { auditSink } from './audit.ts';
import { blockedLanes } from './schedule/blocked.ts';
import { census } from './census.ts';
import type { Database } from './database.ts';
import { keysOn } from './idempotency/keys.ts';
import { type Filters, type Page, taskFilters } from './inbox/listing.ts';
import { SqliteInbox } from './inbox/sqlite-inbox.ts';
import type { Statements } from './statements.ts';
import { Watchers } from './watch.ts';
import { Writer } from './writer.ts';

/** An insert is cut into parts of this size, which share commits as far as time allows. */
const PART_TASKS = 500;
const PART_BYTES = 1024 * 1024;
const PRUNE_AT_ONCE = 250;
const SWEEP_LINES = 200;

/** Schedule and inbox in one SQLite file. */
export class SqliteStore extends SqliteInbox implements Store {
  readonly capabilities: ScheduleCapabilities = {
    shared: true,
    durable: true,
    listing: true,
    changing: true,
    ordering: true,
    transactions: false,
  };
  readonly audit: AuditSink;
  readonly idempotency: IdempotencyStore;
  readonly #database: Database<Statements>;
  readonly #clock: Clock;
  readonly #watchers: Watchers;
  readonly #writer: Writer;
  #swept = 0;

  constructor(database: Database<Statements>, clock: Clock) {
    const watchers = new Watchers(clock, () => {
      database.look();
      return database.statements?.dataVersion;
    });
    const writer = new Writer(database, clock, watchers);
    super(database, clock, writer);
    this.#database = database;
    this.#clock = clock;
    this.#watchers = watchers;
    this.#writer = writer;
    this.audit = auditSink(database, clock);
    this.idempotency = keysOn(database, clock);
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
        this.#writer.write(({ changer }, nowMs, after) =>
          part.map((task) => changer.insert(task, nowMs, after)),
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
    return this.#writer.write(({ changer }, nowMs, after) =>
      keys.map((key, i) => changer.change(key, (task) => move(task, nowMs, i), nowMs, after)),
    );
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return this.#database.write(
      ({ claimer }) => claimer.claim(request, this.#clock.now()),
      ({ claimer }) => claimer.glance(request, this.#clock.now()),
    );
  }

  abandon(lease: number): Promise<void> {
    return this.#writer.writeEnd(({ settler }, nowMs, after) =>
      settler.abandon(lease, nowMs, after),
    );
  }

  settle(settlements: readonly Settlement[]): Promise<Settled[]> {
    return this.#writer.writeEnd(({ settler }, nowMs, after) =>
      settlements.map((one) => settler.settle(one, nowMs, after)),
    );
  }

  renew(leases: readonly Lease[], leaseMs: number): Promise<Renewed[]> {
    return this.#database.writeEnd(({ settler }) => {
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

  blocked(limits: BlockedLimits): Promise<BlockedLane[]> {
    return this.#database.readInSteps((db) => blockedLanes(db, this.#clock, limits));
  }

  census(): Promise<Census> {
    return this.#database.readInSteps((db) => census(db, this.#clock));
  }

  /** The file has zeros where something was erased (`secure_delete`); its log still has the pages from before. */
  async scrub(): Promise<NotReached[]> {
    const isEmpty = await this.#database.read((statements) => statements.emptyLog());
    return isEmpty ? [movedRows] : [busyLog, movedRows];
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

  dropState(documents: readonly Pick<StateDocument, 'key' | 'version'>[]): Promise<number> {
    return this.#database.write(
      ({ state }) => documents.filter(({ key, version }) => state.drop(key, version)).length,
    );
  }

  async prune(request: PruneRequest): Promise<number> {
    await this.#sweep();
    return this.#prune(request);
  }

  takeOutbox(limit: number, leaseMs: number, only: OutboxFilter = {}): Promise<OutboxMessage[]> {
    return this.#database.write(
      ({ outbox }) => outbox.take(limit, leaseMs, only, this.#clock.now()),
      ({ outbox }) => (outbox.isEmpty(this.#clock.now()) ? [] : undefined),
    );
  }

  dropOutbox(ids: readonly number[]): Promise<void> {
    return this.#database.writeEnd(({ outbox }) => outbox.drop(ids));
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#watchers.add(listener);
  }

  async #prune({ olderThanMs, limit }: PruneRequest): Promise<number> {
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

  /** The safety net of lines: looks at some of them, and lets go on where somebody waits in vain. */
  async #sweep(): Promise<void> {
    const { stuck, after } = await this.#database.read(({ turns }) =>
      turns.stuck(this.#swept, SWEEP_LINES),
    );
    this.#swept = after ?? 0;
    if (stuck.length === 0) return;
    await this.#writer.write((_, _nowMs, aftermath) => {
      for (const line of stuck) aftermath.touchLine(line);
    });
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

const busyLog: NotReached = {
  what: 'sqlite_log',
  why: 'The write-ahead log of the SQLite file (-wal) could not be emptied: another connection reads an older state. It still holds pages from before.',
  todo: 'End long reads of the file, such as a backup, and erase the item once more. The log is also emptied when the last process closes the file.',
};

/** `secure_delete` clears what is deleted where it lies, but not where SQLite had moved it from. */
const movedRows: NotReached = {
  what: 'sqlite_pages',
  why: 'SQLite moves rows between the pages of its file as others come and go, and may leave old bytes of them in unused parts of pages. Nobody can read them through Redrive.',
  todo: 'If no byte may stay in the file, run VACUUM on it: sqlite3 redrive.db VACUUM. Writes wait meanwhile, so stop the service if the file is large.',
};

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

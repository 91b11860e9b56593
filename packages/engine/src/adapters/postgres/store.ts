import type { Change } from '../../model/moves.ts';
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
import type { Census, NotReached, TransactionalStore } from '../../ports/store.ts';
import type { AttemptRecord, NewTask, Task } from '../../model/task.ts';
import { Actor } from './inbox/act.ts';
import { AuditTable } from './audit.ts';
import { blockedLanes } from './schedule/blocked.ts';
import { Changer } from './schedule/change.ts';
import { Claimer } from './schedule/claim.ts';
import type { Connections } from './connection/connections.ts';
import type { Database, Session } from './connection/database.ts';
import { copies, erase } from './inbox/erase.ts';
import { GroupTable } from './inbox/groups.ts';
import type { PostgresIdempotency } from './idempotency/store.ts';
import { InboxTable } from './inbox/inbox.ts';
import { Inserter } from './schedule/insert.ts';
import { JobTable } from './inbox/jobs.ts';
import { join } from './join.ts';
import { LineKeeper, LineSet } from './schedule/lines.ts';
import type { Listener } from './connection/listen.ts';
import type { Names } from './names.ts';
import type { Notifier } from './connection/notify.ts';
import { OutboxTable } from './inbox/outbox.ts';
import { prune, pruneItems } from './schedule/prune.ts';
import { Reader } from './schedule/read.ts';
import { Settler } from './schedule/settle.ts';
import { StateTable } from './state.ts';
import { Wake } from './connection/wake.ts';

/** How often housekeeping looks at a thousand lines. */
const LOOKS = 5;

interface StoreParts {
  database: Database;
  connections: Connections;
  names: Names;
  notifier: Notifier;
  /** Absent: others' news is found by polling alone. */
  listener: Listener | undefined;
  /** Makes sure that the tables are there and that this program may use them. */
  prepare: () => Promise<void>;
  keys: PostgresIdempotency;
}

/** Schedule and inbox in one PostgreSQL database. */
export class PostgresStore implements TransactionalStore {
  readonly capabilities: ScheduleCapabilities = {
    shared: true,
    durable: true,
    listing: true,
    changing: true,
    ordering: true,
    transactions: true,
  };
  readonly audit: AuditTable;
  readonly idempotency: PostgresIdempotency;
  readonly #parts: StoreParts;
  readonly #inserter: Inserter;
  readonly #changer: Changer;
  readonly #claimer: Claimer;
  readonly #settler: Settler;
  readonly #reader: Reader;
  readonly #state: StateTable;
  readonly #outbox: OutboxTable;
  readonly #inbox: InboxTable;
  readonly #groups: GroupTable;
  readonly #actor: Actor;
  readonly #jobs: JobTable;
  readonly #keeper: LineKeeper;
  #opening: Promise<void> | undefined;

  constructor(parts: StoreParts) {
    const { database, names } = parts;
    this.#parts = parts;
    this.audit = new AuditTable(database, names);
    this.idempotency = parts.keys;
    this.#inserter = new Inserter(database, names);
    this.#changer = new Changer(names, this.#inserter);
    this.#claimer = new Claimer(database, names);
    this.#settler = new Settler(database, names);
    this.#reader = new Reader(database, names);
    this.#state = new StateTable(database, names);
    this.#outbox = new OutboxTable(database, names);
    this.#inbox = new InboxTable(database, names);
    this.#groups = new GroupTable(database, names);
    this.#actor = new Actor(database, names, this.#inserter);
    this.#jobs = new JobTable(database, names);
    this.#keeper = new LineKeeper(database, names);
  }

  open(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    const { connections, prepare, listener } = this.#parts;
    connections.begin();
    await prepare();
    listener?.start();
  }

  async close(): Promise<void> {
    const { connections, notifier, listener } = this.#parts;
    this.#opening = undefined;
    await listener?.stop();
    await notifier.flush();
    await this.idempotency.close();
    await connections.end();
  }

  async insert(tasks: readonly NewTask[], tx?: unknown): Promise<(number | undefined)[]> {
    if (tasks.length === 0) return [];
    const session = tx === undefined ? undefined : await join(tx);
    const wake = new Wake();
    try {
      return await (session
        ? this.#inserter.insertFor(session, tasks, wake)
        : this.#inserter.insert(tasks, wake));
    } finally {
      await this.#tell(wake.hint, session);
    }
  }

  async change<T>(
    keys: readonly TaskKey[],
    move: (task: Task | undefined, nowMs: number, index: number) => Change<T>,
    tx?: unknown,
  ): Promise<T[]> {
    if (keys.length === 0) return [];
    const lines = new LineSet();
    if (tx !== undefined) {
      const session = await join(tx);
      const wake = new Wake();
      const results = await this.#changer.change(session, keys, move, wake, 'caller', lines);
      await this.#tell(wake.hint, session);
      return results;
    }
    const { results, wake } = await this.#parts.database.transaction(async (session) => {
      const fresh = new Wake();
      const moved = await this.#changer.change(session, keys, move, fresh, 'ours', lines);
      return { results: moved, wake: fresh };
    });
    await this.#tell(wake.hint);
    return results;
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return this.#claimer.claim(request);
  }

  async abandon(lease: number): Promise<void> {
    const hint = await this.#claimer.abandon(lease);
    await this.#tell(hint);
  }

  async settle(settlements: readonly Settlement[]): Promise<Settled[]> {
    const { results, hint } = await this.#settler.settle(settlements);
    // Others need not know: this instance is here to deliver it, and if it dies they poll.
    if (hint) this.#parts.notifier.tellHere(hint);
    return results;
  }

  renew(leases: readonly Lease[], leaseMs: number): Promise<Renewed[]> {
    return this.#settler.renew(leases, leaseMs);
  }

  get(key: TaskKey): Promise<Task | undefined> {
    return this.#reader.get(key);
  }

  list(query: TaskQuery): Promise<Task[]> {
    return this.#reader.list(query);
  }

  lanes(page: { after?: string; limit: number }): Promise<LaneAgenda[]> {
    return this.#reader.lanes(page);
  }

  blocked(limits: BlockedLimits): Promise<BlockedLane[]> {
    return blockedLanes(this.#parts.database, this.#parts.names, limits);
  }

  census(): Promise<Census> {
    return this.#reader.census();
  }

  readState(prefix: string): Promise<{ nowMs: number; documents: StateDocument[] }> {
    return this.#state.read(prefix);
  }

  async writeState(key: string, value: unknown, version: number): Promise<boolean> {
    const isWritten = await this.#state.write(key, value, version);
    if (isWritten) this.#parts.notifier.tell({ state: true });
    return isWritten;
  }

  dropState(documents: readonly Pick<StateDocument, 'key' | 'version'>[]): Promise<number> {
    return this.#state.drop(documents);
  }

  async prune(request: PruneRequest): Promise<number> {
    const pruned = await prune(this.#parts.database, this.#parts.names, request);
    await this.#groups.fold();
    const wake = new Wake();
    // Deleting comes first: it is called again at once while there is more of it.
    await this.#keeper.sweep(pruned < request.limit ? LOOKS : 1, wake);
    await this.#tell(wake.hint);
    return pruned;
  }

  takeOutbox(limit: number, leaseMs: number, only: OutboxFilter = {}): Promise<OutboxMessage[]> {
    return this.#outbox.take(limit, leaseMs, only);
  }

  dropOutbox(ids: readonly number[]): Promise<void> {
    return this.#outbox.drop(ids);
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#parts.notifier.watch(listener);
  }

  append(items: readonly (RawItem & { outbox?: NewOutboxMessage })[]): Promise<void> {
    return this.#inbox.append(items);
  }

  item(id: number): Promise<InboxItem | undefined> {
    return this.#inbox.item(id);
  }

  items(query: ItemQuery): Promise<ItemPage> {
    return this.#inbox.items(query);
  }

  count(filter: ItemFilter): Promise<number> {
    return this.#inbox.count(filter);
  }

  groups(query: GroupQuery): Promise<Group[]> {
    return this.#groups.list(query);
  }

  annotate(fingerprint: string, by: { note?: string; owner?: string }): Promise<boolean> {
    return this.#groups.annotate(fingerprint, by);
  }

  attempts(taskId: number): Promise<(AttemptRecord & { generation: number; atMs: number })[]> {
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
    const acted = await this.#actor.act(ids, action, under);
    await this.#tell(acted?.wake.hint);
    return acted?.results;
  }

  async erase(messageId: string, by?: string): Promise<'erased' | 'busy' | 'unknown'> {
    const { database, names } = this.#parts;
    const { result, wake } = await erase(database, names, messageId, by);
    await this.#tell(wake.hint);
    return result;
  }

  async scrub(): Promise<NotReached[]> {
    return [...copies];
  }

  freeze(
    filter: ItemFilter,
    page: { before: number; limit: number },
    under: JobHold<Frozen>,
  ): Promise<Frozen | undefined> {
    return this.#jobs.freeze(filter, page, under);
  }

  members(query: MemberQuery): Promise<Member[]> {
    return this.#jobs.members(query);
  }

  tally(job: number, most: number): Promise<JobTally> {
    return this.#jobs.tally(job, most);
  }

  forgetJob(job: number, limit: number): Promise<boolean> {
    return this.#jobs.forget(job, limit);
  }

  pruneItems(request: { closedForMs: number; limit: number }): Promise<number> {
    const { database, names } = this.#parts;
    return pruneItems(database, names, this.#groups, request);
  }

  /** In a transaction of the caller nothing is due before that commits, so that the news has to come from there. */
  async #tell(hint: Hint | undefined, session?: Session): Promise<void> {
    if (!hint) return;
    if (session) await this.#parts.notifier.tellIn(session, hint);
    else this.#parts.notifier.tell(hint);
  }
}

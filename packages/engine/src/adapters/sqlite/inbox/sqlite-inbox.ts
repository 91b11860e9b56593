import type { Clock } from 'redrive';
import type {
  ActResult,
  Frozen,
  Group,
  GroupQuery,
  Inbox,
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
} from '../../../ports/inbox.ts';
import type { NewOutboxMessage } from '../../../ports/schedule.ts';
import type { AttemptRecord } from '../../../model/task.ts';
import type { Database } from '../database.ts';
import type { Statements } from '../statements.ts';
import type { Writer } from '../writer.ts';

/** Short transactions: other processes wait for them, and so does the event loop. An item stands in many indexes. */
const PRUNE_AT_ONCE = 100;
const FORGET_AT_ONCE = 1000;

/** The inbox in a SQLite file. */
export class SqliteInbox implements Inbox {
  readonly #database: Database<Statements>;
  readonly #clock: Clock;
  readonly #writer: Writer;

  constructor(database: Database<Statements>, clock: Clock, writer: Writer) {
    this.#database = database;
    this.#clock = clock;
    this.#writer = writer;
  }

  append(items: readonly (RawItem & { outbox?: NewOutboxMessage })[]): Promise<void> {
    return this.#database.write(({ inbox, outbox }) => {
      const nowMs = this.#clock.now();
      for (const item of items) {
        inbox.append(item, nowMs);
        if (item.outbox) outbox.add(item.outbox, item.messageId, nowMs);
      }
    });
  }

  item(id: number): Promise<InboxItem | undefined> {
    return this.#database.read(({ inbox }) => inbox.item(id));
  }

  items(query: ItemQuery): Promise<ItemPage> {
    return this.#database.read(({ itemList, inbox }) => {
      const { ids, next } = itemList.page(query);
      const items = ids.flatMap((id) => inbox.item(id) ?? []);
      return { items, ...(next === undefined ? {} : { next }) };
    });
  }

  async count(filter: ItemFilter): Promise<number> {
    let total = 0;
    for (let before: number | undefined = Infinity; before !== undefined;) {
      const below: number = before;
      const part = await this.#database.read(({ itemList }) => itemList.count(filter, below));
      total += part.count;
      before = part.next;
    }
    return total;
  }

  attempts(taskId: number): Promise<(AttemptRecord & { generation: number; atMs: number })[]> {
    return this.#database.read(({ inbox }) => inbox.attempts(taskId));
  }

  groups(query: GroupQuery): Promise<Group[]> {
    return this.#database.read(({ groups }) => groups.list(query));
  }

  annotate(fingerprint: string, by: { note?: string; owner?: string }): Promise<boolean> {
    return this.#database.write(({ groups }) => groups.annotate(fingerprint, by));
  }

  act(ids: readonly number[], action: ItemAction): Promise<ActResult[]>;
  act(
    ids: readonly number[],
    action: ItemAction,
    under: JobHold<ActResult[]>,
  ): Promise<ActResult[] | undefined>;
  act(
    ids: readonly number[],
    action: ItemAction,
    under?: JobHold<ActResult[]>,
  ): Promise<ActResult[] | undefined> {
    return this.#writer.write(({ actions }, nowMs, after) =>
      actions.act(ids, action, under, nowMs, after),
    );
  }

  erase(messageId: string, by?: string): Promise<'erased' | 'busy' | 'unknown'> {
    return this.#writer.write(({ eraser }, nowMs, after) =>
      eraser.erase(messageId, by, nowMs, after),
    );
  }

  freeze(
    filter: ItemFilter,
    page: { before: number; limit: number },
    under: JobHold<Frozen>,
  ): Promise<Frozen | undefined> {
    return this.#database.write(({ actions }) => actions.freeze(filter, page, under));
  }

  members(query: MemberQuery): Promise<Member[]> {
    return this.#database.read(({ jobs }) => jobs.list(query));
  }

  tally(job: number, most: number): Promise<JobTally> {
    return this.#database.read(({ jobs }) => jobs.tally(job, most));
  }

  async forgetJob(job: number, limit: number): Promise<boolean> {
    for (let left = limit; ; left -= FORGET_AT_ONCE) {
      const step = Math.min(left, FORGET_AT_ONCE);
      const isGone = await this.#database.write(({ actions }) => actions.forgetJob(job, step));
      if (isGone || left <= FORGET_AT_ONCE) return isGone;
    }
  }

  async pruneItems(request: { closedForMs: number; limit: number }): Promise<number> {
    const { closedForMs, limit } = request;
    const beforeMs = () => this.#clock.now() - closedForMs;
    for (let pruned = 0; ;) {
      const step = Math.min(limit - pruned, PRUNE_AT_ONCE);
      const count = await this.#database.write(
        ({ pruner }) => pruner.pruneItems(beforeMs(), step),
        ({ pruner }) => (pruner.hasNoItems(beforeMs()) ? 0 : undefined),
      );
      pruned += count;
      if (count < step || pruned >= limit) return pruned;
    }
  }
}

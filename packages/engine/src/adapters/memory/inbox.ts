import type { Failure } from 'redrive';
import { erasedAddress } from '../../model/address.ts';
import type {
  Group,
  GroupQuery,
  InboxItem,
  ItemFilter,
  ItemPage,
  ItemQuery,
  JobTally,
  NewItem,
  RawItem,
} from '../../ports/inbox.ts';
import { MAX_ATTEMPTS } from '../../ports/inbox.ts';
import type { Census } from '../../ports/store.ts';
import type { AttemptRecord, Task } from '../../model/task.ts';

type Attempt = AttemptRecord & { generation: number; atMs: number };
/** An item as it is kept: payload and context of a task stay with the task, until an operator changes them there. */
type Entry = Omit<InboxItem, 'payload'> & { payload?: Uint8Array };
type TaskOf = (id: number) => Task | undefined;

export class MemoryInbox {
  readonly #items = new Map<number, Entry>();
  readonly #groups = new Map<string, Group>();
  /** The open item of a task, and that of a message without one. */
  readonly #openOf = new Map<number, number>();
  readonly #raw = new Map<string, number>();
  readonly #attempts = new Map<number, Attempt[]>();
  readonly #taskOf: TaskOf;
  #lastId = 0;

  constructor(taskOf: TaskOf) {
    this.#taskOf = taskOf;
  }

  open(task: Task, item: NewItem, nowMs: number): void {
    this.#add({
      ...item,
      taskId: task.id,
      messageId: task.messageId,
      destination: task.destination,
      lane: task.lane,
      attempt: task.attempt,
      maxAttempts: task.maxAttempts,
      generation: task.generation,
      ...(task.orderingKey === undefined ? {} : { orderingKey: task.orderingKey }),
      ...(task.job === undefined ? {} : { job: task.job }),
      ...seen(nowMs),
    });
  }

  appendRaw({ source, ...item }: RawItem, nowMs: number): void {
    const known = this.#raw.get(item.messageId);
    if (known !== undefined) return this.#again(known, nowMs);
    const destination = { kind: 'source', address: source };
    const lane = `source:${source}`;
    const counts = { attempt: 0, maxAttempts: 0, generation: 0 };
    const payload = new Uint8Array(item.payload);
    this.#add({ ...item, payload, destination, lane, ...counts, ...seen(nowMs) });
  }

  occurred(taskId: number, nowMs: number): void {
    const id = this.#openOf.get(taskId);
    if (id !== undefined) this.#again(id, nowMs);
  }

  record(task: Task, record: AttemptRecord, atMs: number): void {
    const list = this.#attempts.get(task.id) ?? [];
    list.push({ ...record, generation: task.generation, atMs });
    this.#attempts.set(task.id, list);
  }

  attempts(taskId: number): Attempt[] {
    return (this.#attempts.get(taskId) ?? []).slice(0, MAX_ATTEMPTS);
  }

  /** Whether its message came back after it, to the same task. */
  hasLater({ id, taskId }: InboxItem): boolean {
    return [...this.#items.values()].some((item) => item.taskId === taskId && item.id > id);
  }

  get(id: number): InboxItem | undefined {
    const item = this.#items.get(id);
    return item && this.#whole(item);
  }

  list({ before = Infinity, limit, ...filter }: ItemQuery): ItemPage {
    const found = [...this.#items.values()]
      .filter((item) => item.id < before && matches(item, filter))
      .sort((a, b) => b.id - a.id);
    const items = found.slice(0, limit).map((item) => this.#whole(item));
    return { items, ...(found.length > limit ? { next: items.at(-1)!.id } : {}) };
  }

  count(filter: ItemFilter): number {
    return [...this.#items.values()].filter((item) => matches(item, filter)).length;
  }

  openByReason(): Census['open'] {
    const open: Census['open'] = {};
    for (const { state, reason } of this.#items.values()) {
      if (state === 'open') open[reason] = (open[reason] ?? 0) + 1;
    }
    return open;
  }

  groups({ fingerprint, lane, all, before, limit }: GroupQuery): Group[] {
    return [...this.#groups.values()]
      .filter(
        (group) =>
          (all || group.open > 0) &&
          (fingerprint === undefined || group.fingerprint === fingerprint) &&
          (lane === undefined || group.lane === lane) &&
          (!before || byLastSeen(before, group) < 0),
      )
      .sort(byLastSeen)
      .slice(0, limit)
      .map((group) => ({ ...group }));
  }

  annotate(fingerprint: string, { note, owner }: { note?: string; owner?: string }): boolean {
    const group = this.#groups.get(fingerprint);
    if (!group) return false;
    const { note: oldNote = '', owner: oldOwner = '', ...rest } = group;
    const texts = { note: note ?? oldNote, owner: owner ?? oldOwner };
    this.#groups.set(fingerprint, {
      ...rest,
      ...(texts.note ? { note: texts.note } : {}),
      ...(texts.owner ? { owner: texts.owner } : {}),
    });
    return true;
  }

  /** The item as an action made it. One with a change keeps what was there before: its task gets another. */
  write(item: InboxItem): void {
    const before = this.#items.get(item.id)!;
    this.#close(before);
    const { payload, context, ...rest } = item;
    const isOwn = before.payload !== undefined || item.edit !== undefined;
    const own = { payload: new Uint8Array(payload), ...(context ? { context } : {}) };
    const task = before.taskId === undefined ? undefined : this.#taskOf(before.taskId);
    const { taskEdited: edited, taskOnDead: onDead } = before;
    const marks = marksOf(before.payload === undefined ? (task ?? {}) : { edited, onDead });
    this.#set({ ...rest, ...(isOwn ? { ...own, ...marks } : {}) });
  }

  /** False: there is nothing of that message here. */
  erase(messageId: string, by: string | undefined, nowMs: number): boolean {
    const items = [...this.#items.values()].filter((item) => item.messageId === messageId);
    for (const item of items) {
      this.#close(item);
      if (item.taskId !== undefined) this.#attempts.delete(item.taskId);
      const { context: _, edit: _edit, orderingKey: _key, closedBy: _by, ...rest } = item;
      const address = erasedAddress(item.destination);
      this.#set({
        ...rest,
        payload: new Uint8Array(),
        destination: { ...item.destination, ...(address === undefined ? {} : { address }) },
        failure: { class: item.failure.class, code: 'ERASED' },
        state: 'erased',
        closedAtMs: item.closedAtMs ?? nowMs,
        ...(by === undefined ? {} : { closedBy: by }),
      });
      const group = this.#groups.get(item.fingerprint)!;
      const { class: kind, code } = group.failure;
      const failure = { class: kind, ...(code === undefined ? {} : { code }) };
      this.#groups.set(item.fingerprint, { ...group, failure });
    }
    return items.length > 0;
  }

  /** A message without a task is open once. */
  hasOpenRaw(messageId: string): boolean {
    return this.#raw.has(messageId);
  }

  /** What came back of a job, and why the last of it. */
  back(job: number): Pick<JobTally, 'back' | 'failure'> {
    const items = [...this.#items.values()].filter((item) => item.job === job);
    const last = items.at(-1);
    return { back: items.length, ...(last ? { failure: last.failure } : {}) };
  }

  prune(closedForMs: number, limit: number, nowMs: number): number {
    let pruned = 0;
    for (const item of this.#items.values()) {
      if (pruned >= limit) return pruned;
      if (item.closedAtMs === undefined || item.closedAtMs > nowMs - closedForMs) continue;
      this.#items.delete(item.id);
      this.#forgetLast(item.taskId);
      pruned += 1;
    }
    const used = new Set([...this.#items.values()].map(({ fingerprint }) => fingerprint));
    for (const { fingerprint, note, owner } of this.#groups.values()) {
      if (used.has(fingerprint) || note !== undefined || owner !== undefined) continue;
      this.#groups.delete(fingerprint);
    }
    return pruned;
  }

  /** The open item of each task that has one, and how many items there are. */
  peek(): {
    openItems: ReadonlyMap<number, number>;
    items: ReadonlyMap<number, Omit<InboxItem, 'payload'>>;
    groups: ReadonlyMap<string, Group>;
  } {
    return { openItems: this.#openOf, items: this.#items, groups: this.#groups };
  }

  forget(taskId: number): void {
    this.#attempts.delete(taskId);
  }

  /** The executions of a task belong to another row from now on. */
  moveAttempts(from: number, to: number): void {
    const list = this.#attempts.get(from);
    this.#attempts.delete(from);
    if (list) this.#attempts.set(to, list);
  }

  /** Its task is deleted: its items keep what was in it, and its executions stay with them. */
  outlive(task: Task): void {
    if (!this.keep(task)) this.#attempts.delete(task.id);
  }

  /** Its items keep what is in it now. False: it has none. */
  keep(task: Task): boolean {
    const { id, payload, context } = task;
    const own = [...this.#items.values()].filter(({ taskId }) => taskId === id);
    const kept = { payload, ...(context ? { context } : {}), ...marksOf(task) };
    for (const item of own) {
      if (item.payload === undefined) this.#items.set(item.id, { ...item, ...kept });
    }
    return own.length > 0;
  }

  /** With the last item of a task that is gone, its executions go too. */
  #forgetLast(taskId: number | undefined): void {
    if (taskId === undefined || this.#taskOf(taskId)) return;
    const isLast = ![...this.#items.values()].some((item) => item.taskId === taskId);
    if (isLast) this.#attempts.delete(taskId);
  }

  #add(item: Omit<Entry, 'id'>): void {
    this.#lastId += 1;
    this.#set({ ...item, id: this.#lastId });
    const { fingerprint, lane, reason, failure, firstSeenMs, lastSeenMs } = item;
    const group = this.#groups.get(fingerprint)!;
    const first = Math.min(group.firstSeenMs, firstSeenMs);
    this.#groups.set(fingerprint, {
      ...group,
      lane,
      reason,
      failure,
      firstSeenMs: first,
      lastSeenMs,
    });
  }

  #set(item: Entry): void {
    this.#items.set(item.id, item);
    if (item.state !== 'open') return;
    if (item.taskId === undefined) this.#raw.set(item.messageId, item.id);
    else this.#openOf.set(item.taskId, item.id);
    this.#countGroup(item, 1);
  }

  #close(item: Entry): void {
    if (item.state !== 'open') return;
    if (item.taskId === undefined) this.#raw.delete(item.messageId);
    else this.#openOf.delete(item.taskId);
    this.#countGroup(item, -1);
  }

  #countGroup(item: Entry, by: number): void {
    const { fingerprint, lane, reason, failure, firstSeenMs, lastSeenMs } = item;
    const fresh = { fingerprint, lane, reason, failure, open: 0, firstSeenMs, lastSeenMs };
    const group = this.#groups.get(fingerprint) ?? fresh;
    this.#groups.set(fingerprint, { ...group, open: group.open + by });
  }

  #again(id: number, nowMs: number): void {
    const item = this.#items.get(id)!;
    const occurrences = item.occurrences + 1;
    this.#items.set(id, { ...item, occurrences, lastSeenMs: nowMs });
    const group = this.#groups.get(item.fingerprint)!;
    this.#groups.set(item.fingerprint, { ...group, lastSeenMs: nowMs });
  }

  #whole(item: Entry): InboxItem {
    const task = item.taskId === undefined ? undefined : this.#taskOf(item.taskId);
    const own = item.payload !== undefined;
    const context = own ? item.context : task?.context;
    const { context: _, payload: __, ...rest } = item;
    const payload = new Uint8Array(item.payload ?? task?.payload ?? []);
    return { ...rest, payload, ...(context ? { context } : {}) };
  }
}

interface Marks {
  edited?: Task['edited'] | undefined;
  onDead?: Task['onDead'] | undefined;
}

/** What an item keeps of its task beside payload and context. */
function marksOf({ edited, onDead }: Marks): Pick<InboxItem, 'taskEdited' | 'taskOnDead'> {
  return {
    ...(edited === undefined ? {} : { taskEdited: edited }),
    ...(onDead ? { taskOnDead: onDead } : {}),
  };
}

function seen(nowMs: number) {
  return { state: 'open' as const, occurrences: 1, firstSeenMs: nowMs, lastSeenMs: nowMs };
}

function matches(item: Entry, filter: ItemFilter): boolean {
  const { ids, class: kind, text, fromMs, toMs, ...equal } = filter;
  const { failure, lastSeenMs } = item;
  return (
    (!ids || ids.includes(item.id)) &&
    (kind === undefined || failure.class === kind) &&
    (text === undefined || says(failure, text)) &&
    (fromMs === undefined || lastSeenMs >= fromMs) &&
    (toMs === undefined || lastSeenMs < toMs) &&
    Object.entries(equal).every(
      ([name, value]) => value === undefined || item[name as keyof typeof equal] === value,
    )
  );
}

function says({ message = '', code = '' }: Failure, text: string): boolean {
  const wanted = text.toLowerCase();
  return message.toLowerCase().includes(wanted) || code.toLowerCase().includes(wanted);
}

type Seen = Pick<Group, 'lastSeenMs' | 'fingerprint'>;

function byLastSeen(a: Seen, b: Seen): number {
  if (a.lastSeenMs !== b.lastSeenMs) return b.lastSeenMs - a.lastSeenMs;
  if (a.fingerprint === b.fingerprint) return 0;
  return a.fingerprint < b.fingerprint ? 1 : -1;
}

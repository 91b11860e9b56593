import type { Failure } from 'redrive';
import type { InboxItem, ItemQuery, NewItem, RawItem } from '../../ports/inbox.ts';
import type { AttemptRecord, Task } from '../../task.ts';

type Attempt = AttemptRecord & { generation: number; atMs: number };
/** An item as it is kept: payload and counts of a task stay with the task. */
type Entry = Omit<InboxItem, 'payload' | 'context'> &
  Pick<RawItem, 'context'> & { payload?: Uint8Array };

export class MemoryInbox {
  readonly #items = new Map<number, Entry>();
  /** The open item of a task, and that of a message without one. */
  readonly #openOf = new Map<number, number>();
  readonly #raw = new Map<string, number>();
  readonly #attempts = new Map<number, Attempt[]>();
  #lastId = 0;

  open(task: Task, item: NewItem, nowMs: number): void {
    const id = this.#add({
      ...item,
      taskId: task.id,
      messageId: task.messageId,
      destination: task.destination,
      lane: task.lane,
      attempt: task.attempt,
      maxAttempts: task.maxAttempts,
      generation: task.generation,
      ...seen(nowMs),
    });
    this.#openOf.set(task.id, id);
  }

  appendRaw({ source, ...item }: RawItem, nowMs: number): void {
    const known = this.#raw.get(item.messageId);
    if (known !== undefined) return this.#again(known, item.failure, nowMs);
    const destination = { kind: 'source', address: source };
    const lane = `source:${source}`;
    const counts = { attempt: 0, maxAttempts: 0, generation: 0 };
    this.#raw.set(
      item.messageId,
      this.#add({ ...item, destination, lane, ...counts, ...seen(nowMs) }),
    );
  }

  occurred(taskId: number, failure: Failure, nowMs: number): void {
    const id = this.#openOf.get(taskId);
    if (id !== undefined) this.#again(id, failure, nowMs);
  }

  record(task: Task, record: AttemptRecord, atMs: number): void {
    const list = this.#attempts.get(task.id) ?? [];
    list.push({ ...record, generation: task.generation, atMs });
    this.#attempts.set(task.id, list);
  }

  attempts(taskId: number): Attempt[] {
    return [...(this.#attempts.get(taskId) ?? [])];
  }

  get(id: number, taskOf: (id: number) => Task | undefined): InboxItem | undefined {
    const item = this.#items.get(id);
    return item && withPayload(item, taskOf);
  }

  list(query: ItemQuery, taskOf: (id: number) => Task | undefined): InboxItem[] {
    const { before = Infinity, limit, ...wanted } = query;
    return [...this.#items.values()]
      .filter((item) => item.id < before && matches(item, wanted))
      .sort((a, b) => b.id - a.id)
      .slice(0, limit)
      .map((item) => withPayload(item, taskOf));
  }

  /** The open item of each task that has one, and how many items there are. */
  peek(): { openItems: ReadonlyMap<number, number>; items: number } {
    return { openItems: this.#openOf, items: this.#items.size };
  }

  forget(taskId: number): void {
    this.#attempts.delete(taskId);
  }

  #add(item: Omit<Entry, 'id'>): number {
    this.#lastId += 1;
    this.#items.set(this.#lastId, { ...item, id: this.#lastId });
    return this.#lastId;
  }

  #again(id: number, failure: Failure, nowMs: number): void {
    const item = this.#items.get(id)!;
    const occurrences = item.occurrences + 1;
    this.#items.set(id, { ...item, failure, occurrences, lastSeenMs: nowMs });
  }
}

function seen(nowMs: number) {
  return { state: 'open' as const, occurrences: 1, firstSeenMs: nowMs, lastSeenMs: nowMs };
}

function matches(item: Entry, wanted: Omit<ItemQuery, 'before' | 'limit'>): boolean {
  return Object.entries(wanted).every(
    ([name, value]) => value === undefined || item[name as keyof typeof wanted] === value,
  );
}

function withPayload(item: Entry, taskOf: (id: number) => Task | undefined): InboxItem {
  const task = item.taskId === undefined ? undefined : taskOf(item.taskId);
  const context = task?.context ?? item.context;
  const { context: _, ...rest } = item;
  const payload = task?.payload ?? item.payload ?? new Uint8Array();
  return { ...rest, payload, ...(context ? { context } : {}) };
}

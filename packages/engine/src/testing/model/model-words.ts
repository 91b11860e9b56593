import type { Group, InboxItem } from '../../ports/inbox.ts';
import type { Task } from '../../model/task.ts';
import { uuidOf } from '../../model/uuid.ts';
import { HOUR_MS } from '../fixtures.ts';

type Named = Pick<Task, 'messageId' | 'destination'>;

/** What is said of a store: without its ids, nor times unless both stores have the same clock. */
export class Words {
  nowMs = 0;
  readonly #isExact: boolean;
  /** Messages that could not be read become tasks whose message ids come from the store's own numbers. */
  readonly #made = new Map<string, string>();
  readonly #seen = new Map<string, number>();

  constructor(isExact: boolean) {
    this.#isExact = isExact;
  }

  /** Remembers who they are, before anything can be made of them. */
  meet(items: readonly InboxItem[]): void {
    const raw = items.filter(({ taskId }) => taskId === undefined);
    for (const { id, messageId } of raw.toSorted((a, b) => a.id - b.id)) {
      const made = uuidOf(messageId, `${id}`);
      if (this.#made.has(made)) continue;
      const count = (this.#seen.get(messageId) ?? 0) + 1;
      this.#seen.set(messageId, count);
      this.#made.set(made, `made of ${messageId}, ${count}`);
    }
  }

  name({ messageId, destination }: Named): string {
    return `${this.#made.get(messageId) ?? messageId} ${destination.kind}:${destination.address}`;
  }

  byName = (a: Named, b: Named): number => compare(this.name(a), this.name(b));

  /** Of one task the oldest first: those that came together may be numbered in any order. */
  byItem = (a: InboxItem, b: InboxItem): number => this.byName(a, b) || a.id - b.id;

  /** With texts in place of bytes and of names that only one store knows. What is undefined is left out. */
  plain(value: unknown): unknown {
    let text = JSON.stringify(value, textOfBytes);
    if (text === undefined) return undefined;
    for (const [made, name] of this.#made) text = text.replaceAll(made, name);
    return JSON.parse(text);
  }

  task(task: Task): unknown {
    const { id: _, payload, ...rest } = task;
    return this.plain({
      ...rest,
      payload: textOf(payload),
      dueAtMs: this.when(task.dueAtMs),
      visibleAtMs: this.when(task.visibleAtMs),
      createdAtMs: this.when(task.createdAtMs),
      expiresAtMs: this.when(task.expiresAtMs),
      firstAtMs: this.when(task.firstAtMs),
      finishedAtMs: this.when(task.finishedAtMs),
    });
  }

  item(item: InboxItem, tasks: ReadonlyMap<number, Task>): unknown {
    const { id: _, taskId, payload, edit, ...rest } = item;
    const task = taskId === undefined ? undefined : tasks.get(taskId);
    return this.plain({
      ...rest,
      task: task ? this.name(task) : taskId === undefined ? 'none' : 'deleted',
      payload: textOf(payload),
      edit: edit && { ...edit, payload: edit.payload && textOf(edit.payload) },
      firstSeenMs: this.when(item.firstSeenMs),
      lastSeenMs: this.when(item.lastSeenMs),
      closedAtMs: this.when(item.closedAtMs),
    });
  }

  group({ reason, ...group }: Group, items: readonly InboxItem[]): unknown {
    const own = items.filter(({ fingerprint }) => fingerprint === group.fingerprint);
    const lastMs = Math.max(...own.map(({ firstSeenMs }) => firstSeenMs));
    const newest = own.filter(({ firstSeenMs }) => firstSeenMs === lastMs);
    return this.plain({
      ...group,
      // Which of several that failed together is the newest is nobody's promise.
      ...(newest.length === 1 ? { reason } : {}),
      firstSeenMs: this.when(group.firstSeenMs),
      lastSeenMs: this.when(group.lastSeenMs),
    });
  }

  when(atMs: number | undefined): number | undefined {
    return atMs === undefined || this.#isExact
      ? atMs
      : Math.round((atMs - this.nowMs) / HOUR_MS) + 0;
  }

  howLong(inMs: number | undefined): number | undefined {
    return inMs === undefined || this.#isExact ? inMs : Math.round(inMs / HOUR_MS);
  }
}

export function textOf(payload: Uint8Array): string {
  return new TextDecoder().decode(payload);
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function textOfBytes(_: string, value: unknown): unknown {
  return value instanceof Uint8Array ? textOf(value) : value;
}

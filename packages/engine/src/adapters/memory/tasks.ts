import type { ClaimFrom, TaskKey } from '../../ports/schedule.ts';
import type { Task } from '../../task.ts';
import { Agenda } from './agenda.ts';

/** The rows, and what a claim needs to find them. A row is never changed, only replaced. */
export class TaskTable {
  readonly #rows = new Map<number, Task>();
  readonly #ids = new Map<string, number>();
  /** By lane: what waits, and what was claimed since it was last settled. */
  readonly #due = new Map<string, Agenda>();
  readonly #claimed = new Map<string, Agenda>();
  readonly #expiring = new Agenda();
  readonly #held = new Set<number>();
  #lastId = 0;

  get size(): number {
    return this.#rows.size;
  }

  get(id: number): Task | undefined {
    return this.#rows.get(id);
  }

  find(key: TaskKey): Task | undefined {
    const id = 'id' in key ? key.id : this.#ids.get(identity(key));
    return id === undefined ? undefined : this.#rows.get(id);
  }

  values(): Iterable<Task> {
    return this.#rows.values();
  }

  add(task: Omit<Task, 'id'>): Task {
    this.#lastId += 1;
    const row = this.write({ ...task, id: this.#lastId });
    this.#ids.set(identity(row), row.id);
    return row;
  }

  write(task: Task): Task {
    const before = this.#rows.get(task.id);
    // The caller's bytes are the caller's.
    const payload = task.payload === before?.payload ? task.payload : new Uint8Array(task.payload);
    const row = { ...task, payload };
    if (before) this.#unlist(before);
    this.#rows.set(row.id, row);
    this.#list(row);
    return row;
  }

  remove(task: Task): void {
    this.#unlist(task);
    this.#rows.delete(task.id);
    this.#ids.delete(identity(task));
  }

  leasedUnder(lease: number): Task[] {
    return [...this.#held].map((id) => this.#rows.get(id)!).filter((task) => task.lease === lease);
  }

  /** The lanes in which something waits or is held, and when the first of it is visible. */
  lanes(): Map<string, number> {
    const first = new Map<string, number>();
    for (const agendas of [this.#due, this.#claimed]) {
      for (const [lane, agenda] of agendas) {
        first.set(lane, Math.min(first.get(lane) ?? Infinity, agenda.first()!.atMs));
      }
    }
    return first;
  }

  /** What a claim may lease, in the order in which bytes are given out. */
  choose(from: ClaimFrom, nowMs: number): { tasks: Task[]; nextInMs: (number | undefined)[] } {
    switch (from.kind) {
      case 'due':
        return this.#chooseDue(from.lanes, nowMs);
      case 'lost':
        return this.#chooseLost(from.lanes, from.limit, nowMs);
      case 'expired':
        return { tasks: this.#chooseExpired(from.limit, nowMs), nextInMs: [] };
    }
  }

  /** By rank, so that where bytes are short every lane gets its first before any gets its second. */
  #chooseDue(lanes: readonly { lane: string; limit: number }[], nowMs: number) {
    const ranked: { rank: number; task: Task }[] = [];
    const nextInMs = lanes.map(({ lane, limit }) => {
      const { tasks, nextAtMs } = this.#first(this.#due.get(lane), limit, nowMs);
      for (const [rank, task] of tasks.entries()) ranked.push({ rank, task });
      return inMs(nextAtMs, nowMs);
    });
    ranked.sort((a, b) => a.rank - b.rank);
    return { tasks: ranked.map(({ task }) => task), nextInMs };
  }

  #chooseLost(lanes: readonly string[], limit: number, nowMs: number) {
    const found = lanes.map((lane) => this.#first(this.#claimed.get(lane), limit, nowMs));
    const tasks = found
      .flatMap((one) => one.tasks)
      .sort((a, b) => a.visibleAtMs - b.visibleAtMs || a.id - b.id);
    const times = found.map(({ nextAtMs }) => nextAtMs ?? Infinity);
    if (tasks.length > limit) times.push(nowMs);
    const firstMs = Math.min(...times);
    const nextInMs = [firstMs === Infinity ? undefined : inMs(firstMs, nowMs)];
    return { tasks: tasks.slice(0, limit), nextInMs };
  }

  #chooseExpired(limit: number, nowMs: number): Task[] {
    const tasks: Task[] = [];
    this.#expiring.takeWhile(nowMs, (id) => {
      const task = this.#rows.get(id)!;
      if (tasks.length === limit) return false;
      if (task.lease === undefined || task.visibleAtMs <= nowMs) tasks.push(task);
      return true;
    });
    return tasks;
  }

  #first(agenda: Agenda | undefined, limit: number, nowMs: number) {
    const tasks: Task[] = [];
    let nextAtMs: number | undefined;
    agenda?.takeWhile(Infinity, (id) => {
      const task = this.#rows.get(id)!;
      if (task.visibleAtMs > nowMs || tasks.length === limit) {
        nextAtMs = task.visibleAtMs;
        return false;
      }
      tasks.push(task);
      return true;
    });
    return { tasks, nextAtMs };
  }

  #list(task: Task): void {
    if (task.status !== 'pending') return;
    if (task.lease !== undefined) this.#held.add(task.id);
    if (task.blocked) return;
    if (task.expiresAtMs !== undefined) this.#expiring.set(task.id, task.expiresAtMs);
    const agendas = task.claims > 0 ? this.#claimed : this.#due;
    let agenda = agendas.get(task.lane);
    if (!agenda) agendas.set(task.lane, (agenda = new Agenda()));
    agenda.set(task.id, task.visibleAtMs);
  }

  #unlist({ id, lane }: Task): void {
    this.#held.delete(id);
    this.#expiring.delete(id);
    for (const agendas of [this.#due, this.#claimed]) {
      const agenda = agendas.get(lane);
      agenda?.delete(id);
      if (agenda?.size === 0) agendas.delete(lane);
    }
  }
}

function identity({ messageId, destination }: Pick<Task, 'messageId' | 'destination'>): string {
  const { kind, address } = destination;
  return `${messageId} ${kind.length} ${kind} ${address}`;
}

function inMs(atMs: number | undefined, nowMs: number): number | undefined {
  return atMs === undefined ? undefined : Math.max(0, atMs - nowMs);
}

import { holdsPlace, type Line, lineOf, turnOf } from '../../model/line.ts';
import { byName } from '../../model/names.ts';
import type {
  BlockedLane,
  BlockedLimits,
  ClaimFrom,
  LaneAgenda,
  TaskKey,
} from '../../ports/schedule.ts';
import type { Census } from '../../ports/store.ts';
import type { NewTask, Task, TaskStatus } from '../../model/task.ts';
import { Agenda } from '../../lanes/agenda.ts';

/** The rows, and what a claim needs to find them. A row is never changed, only replaced. */
export class TaskTable {
  readonly #rows = new Map<number, Task>();
  readonly #ids = new Map<string, number>();
  /** By lane: what waits, and what was claimed since it was last settled. */
  readonly #due = new Map<string, Agenda>();
  readonly #claimed = new Map<string, Agenda>();
  readonly #expiring = new Agenda();
  readonly #held = new Set<number>();
  /** By line: who holds a place, by id, and who is not blocked. */
  readonly #places = new Map<string, Agenda>();
  readonly #active = new Map<string, number>();
  /** The tasks of bulk jobs, but for those that are done. */
  readonly #jobs = new Map<number, Set<number>>();
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

  addNew({ due, record, ...task }: NewTask, nowMs: number): Task {
    const dueAtMs = 'atMs' in due ? Math.max(due.atMs, nowMs) : nowMs + due.inMs;
    const times = { dueAtMs, visibleAtMs: dueAtMs, createdAtMs: nowMs };
    const first = record ? { firstAtMs: nowMs - record.durationMs } : {};
    const finished = task.status === 'pending' ? {} : { finishedAtMs: nowMs };
    return this.add({ ...task, ...times, ...first, ...finished });
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

  /** Gives the turn to whom it belongs. The one who has it now, if it is another. */
  advance(line: Line): Task | undefined {
    const firstId = this.#places.get(nameOf(line))?.first()?.id;
    const first = firstId === undefined ? undefined : this.#rows.get(firstId);
    const activeId = this.#active.get(nameOf(line));
    const active = activeId === undefined ? undefined : this.#rows.get(activeId);
    const { block, unblock } = turnOf(first, active ? [active] : []);
    if (block.length > 0) this.write({ ...active!, blocked: true });
    return unblock === undefined ? undefined : this.write({ ...first!, blocked: false });
  }

  /** The tasks of a job that are not done, by their status. */
  ofJob(job: number): Record<'pending' | 'retried' | 'cancelled', Task[]> {
    const tasks = [...(this.#jobs.get(job) ?? [])].map((id) => this.#rows.get(id)!);
    const of = (wanted: TaskStatus) => tasks.filter(({ status }) => status === wanted);
    return { pending: of('pending'), retried: of('retried'), cancelled: of('cancelled') };
  }

  ofMessage(messageId: string): Task[] {
    return [...this.#rows.values()].filter((task) => task.messageId === messageId);
  }

  remove(task: Task): void {
    this.#unlist(task);
    this.#rows.delete(task.id);
    if (this.#ids.get(identity(task)) === task.id) this.forgetIdentity(task);
  }

  /** The same message to the same destination is a new task from now on. */
  forgetIdentity(task: Pick<Task, 'messageId' | 'destination'>): void {
    this.#ids.delete(identity(task));
  }

  leasedUnder(lease: number): Task[] {
    return [...this.#held].map((id) => this.#rows.get(id)!).filter((task) => task.lease === lease);
  }

  /** The lanes in which something waits or is held, and when the first of it is visible. */
  lanes({ after, limit }: { after?: string; limit: number }, nowMs: number): LaneAgenda[] {
    const first = new Map<string, number>();
    for (const agendas of [this.#due, this.#claimed]) {
      for (const [lane, agenda] of agendas) {
        if (after !== undefined && byName(lane, after) <= 0) continue;
        first.set(lane, Math.min(first.get(lane) ?? Infinity, agenda.first()!.atMs));
      }
    }
    return [...first]
      .sort(([a], [b]) => byName(a, b))
      .slice(0, limit)
      .map(([lane, atMs]) => ({ lane, inMs: Math.max(0, atMs - nowMs) }));
  }

  /** The lanes in which somebody waits behind one that has failed and holds its place. */
  blocked(most: BlockedLimits): BlockedLane[] {
    const lanes = new Map<string, BlockedLane>();
    let looks = 0;
    for (const places of this.#places.values()) {
      const first = this.#rows.get(places.first()!.id)!;
      if (first.status !== 'failed' || looks >= most.items) continue;
      looks += 1;
      let count = 0;
      places.takeWhile(Infinity, (id) => {
        const { status, blocked } = this.#rows.get(id)!;
        if (status === 'pending' && blocked) count += 1;
        return count < most.tasks;
      });
      const { lane } = first;
      const { items, tasks } = lanes.get(lane) ?? { items: 0, tasks: 0 };
      if (count > 0) lanes.set(lane, { lane, items: items + 1, tasks: tasks + count });
    }
    return [...lanes.values()].sort((a, b) => byName(a.lane, b.lane));
  }

  /** How many are pending, and when the first of those is due that wait for their time only. */
  census(nowMs: number): Omit<Census, 'open'> {
    let pending = 0;
    let firstMs = Infinity;
    for (const { status, blocked, lease, visibleAtMs } of this.#rows.values()) {
      if (status !== 'pending') continue;
      pending += 1;
      const isWaiting = !blocked && (lease === undefined || visibleAtMs <= nowMs);
      if (isWaiting && visibleAtMs < firstMs) firstMs = visibleAtMs;
    }
    return { pending, ...(firstMs === Infinity ? {} : { oldestDueInMs: firstMs - nowMs }) };
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
    const line = lineOf(task);
    if (line && holdsPlace(task)) {
      const name = nameOf(line);
      let places = this.#places.get(name);
      if (!places) this.#places.set(name, (places = new Agenda()));
      places.set(task.id, task.id);
      if (task.status === 'pending' && !task.blocked) this.#active.set(name, task.id);
    }
    if (task.job !== undefined && task.status !== 'done') {
      const ids = this.#jobs.get(task.job) ?? new Set();
      this.#jobs.set(task.job, ids.add(task.id));
    }
    if (task.status !== 'pending') return;
    if (task.lease !== undefined) this.#held.add(task.id);
    if (task.expiresAtMs !== undefined) this.#expiring.set(task.id, task.expiresAtMs);
    if (task.blocked) return;
    const agendas = task.claims > 0 ? this.#claimed : this.#due;
    let agenda = agendas.get(task.lane);
    if (!agenda) agendas.set(task.lane, (agenda = new Agenda()));
    agenda.set(task.id, task.visibleAtMs);
  }

  #unlist(task: Task): void {
    const { id, lane } = task;
    const line = lineOf(task);
    if (line) this.#leave(nameOf(line), id);
    if (task.job !== undefined) {
      const ids = this.#jobs.get(task.job);
      if (ids?.delete(id) && ids.size === 0) this.#jobs.delete(task.job);
    }
    this.#held.delete(id);
    this.#expiring.delete(id);
    for (const agendas of [this.#due, this.#claimed]) {
      const agenda = agendas.get(lane);
      agenda?.delete(id);
      if (agenda?.size === 0) agendas.delete(lane);
    }
  }

  #leave(line: string, id: number): void {
    const places = this.#places.get(line);
    places?.delete(id);
    if (places?.size === 0) this.#places.delete(line);
    if (this.#active.get(line) === id) this.#active.delete(line);
  }
}

function nameOf({ lane, key }: Line): string {
  return `${lane.length} ${lane} ${key}`;
}

function identity({ messageId, destination }: Pick<Task, 'messageId' | 'destination'>): string {
  const { kind, address } = destination;
  return `${messageId} ${kind.length} ${kind} ${address}`;
}

function inMs(atMs: number | undefined, nowMs: number): number | undefined {
  return atMs === undefined ? undefined : Math.max(0, atMs - nowMs);
}

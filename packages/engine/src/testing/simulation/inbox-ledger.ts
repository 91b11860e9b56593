import type { MemoryStore } from '../../adapters/memory/store.ts';
import { type Job, left } from '../../model/jobs.ts';
import { holdsPlace, lineOf } from '../../model/line.ts';
import type { InboxItem, ItemState } from '../../ports/inbox.ts';
import type { Task } from '../../model/task.ts';

type Item = Omit<InboxItem, 'payload'>;

/** When something happened: by the time of the world, and by the store's clock, which may be set. */
interface Moment {
  worldMs: number;
  storeMs: number;
}

/** From which state an item may come to which. */
const legal: Record<ItemState, readonly ItemState[]> = {
  open: ['replayed', 'resolved', 'discarded', 'erased'],
  replayed: ['erased'],
  resolved: ['open', 'erased'],
  discarded: ['open', 'erased'],
  erased: [],
};

/** What must hold of the inbox, its bulk jobs and the lines of ordered tasks. */
export class InboxLedger {
  readonly #store: MemoryStore;
  readonly #say: (violation: string) => void;
  readonly #items = new Map<number, Item>();
  /** By task: its generation when it was first seen, and its replays since. */
  readonly #generations = new Map<number, { first: number; replays: number }>();
  readonly #jobs = new Map<number, { job: Job; sentInStep: number; members?: readonly number[] }>();
  /** By job and task: when a broker took it over, and when it came back from there. */
  readonly #atBroker = new Map<number, Map<number, { taken: Moment; back?: Moment }>>();
  readonly #now: () => Moment;
  replays = 0;

  constructor(store: MemoryStore, now: () => Moment, say: (violation: string) => void) {
    this.#store = store;
    this.#now = now;
    this.#say = say;
  }

  /** After every step. `changed`: the tasks that are not as they were. */
  check(changed: readonly Task[]): void {
    for (const task of changed) {
      if (this.#generations.has(task.id)) continue;
      this.#generations.set(task.id, { first: task.generation, replays: 0 });
    }
    if (this.#checkItems()) this.#checkGroups();
    for (const task of changed) {
      const known = this.#generations.get(task.id)!;
      if (task.generation !== known.first + known.replays) {
        this.#say(
          `${task.messageId} has generation ${task.generation} after ${known.replays} replays`,
        );
      }
      this.#follow(task);
      this.#checkLine(task);
    }
  }

  /** What was claimed because it was due must be the first of its line. */
  claimed(tasks: readonly Task[]): void {
    for (const task of tasks) {
      if (task.orderingKey === undefined || task.claims > 1) continue;
      const before = this.#lineOf(task).find(({ id }) => id < task.id);
      if (before) this.#say(`${task.messageId} was claimed before ${before.messageId} of its line`);
    }
  }

  /** After every call that may have changed the document of a job. */
  async sawJobs(): Promise<void> {
    for (const { value } of this.#store.peekState('job:')) {
      const job = value as Job;
      const known = this.#jobs.get(job.id);
      if (!known) this.#jobs.set(job.id, { job, sentInStep: 0 });
      else await this.#checkJob(known, job);
    }
  }

  /** When all is quiet. */
  async checkEnd(): Promise<void> {
    for (const { job, members } of this.#jobs.values()) {
      if (job.state === 'running') this.#say(`job ${job.id} never came to an end`);
      if (job.state === 'finished' && left(job) !== 0) this.#say(`job ${job.id} left some out`);
      const now = await this.#members(job.id);
      if (members && now.join() !== members.join())
        this.#say(`job ${job.id} has other members now`);
    }
  }

  async #checkJob(
    known: { job: Job; sentInStep: number; members?: readonly number[] },
    job: Job,
  ): Promise<void> {
    const before = known.job;
    known.job = job;
    const sent = job.done - before.done;
    if (sent > 0 && before.state !== 'running')
      this.#say(`job ${job.id} sent while ${before.state}`);
    if (sent > 0 && before.before !== undefined)
      this.#say(`job ${job.id} sent before it was frozen`);
    if (left(job) < 0) this.#say(`job ${job.id} dealt with more than it has`);
    if (before.before !== undefined && job.before === undefined) {
      known.members = await this.#members(job.id);
      if (known.members.length !== job.total)
        this.#say(`job ${job.id} counts ${job.total} members`);
    }
    // A step that was stopped has to prove itself anew.
    if (before.state === 'stopped' && job.state === 'running') known.sentInStep = 0;
    known.sentInStep += sent;
    const size = before.canary[before.step];
    if (size !== undefined && known.sentInStep > size + job.cancelled) {
      this.#say(`job ${job.id} sent ${known.sentInStep} in a step of ${size}`);
    }
    if (job.step === before.step) return;
    known.sentInStep = 0;
    const isSeen = (task: number) => !this.#isBackLate(job, task);
    const isUnderway = [...this.#store.peek().tasks].some(
      (task) => task.job === job.id && task.status === 'pending' && isSeen(task.id),
    );
    const back = [...this.#items.values()].filter(
      (item) => item.job === job.id && isSeen(item.taskId ?? -1),
    ).length;
    if (isUnderway || back > job.forgiven + (job.maxFailures ?? Infinity)) {
      this.#say(`job ${job.id} passed a step that had not worked`);
    }
  }

  #follow({ id, job, status }: Task): void {
    if (job === undefined) return;
    const known = this.#atBroker.get(job) ?? new Map<number, { taken: Moment; back?: Moment }>();
    const was = known.get(id);
    if (status === 'retried') known.set(id, { taken: this.#now() });
    else if (was && !was.back) was.back = this.#now();
    this.#atBroker.set(job, known);
  }

  /** It came back when the time of observation was over: no step waits for it, and the next count finds it. */
  #isBackLate({ id, observeMs }: Job, task: number): boolean {
    const known = this.#atBroker.get(id);
    const back = known?.get(task)?.back;
    if (!known || !back) return false;
    const taken = [...known.values()].map((one) => one.taken);
    const isOver = (clock: keyof Moment) =>
      back[clock] >= Math.max(...taken.map((at) => at[clock])) + observeMs;
    // One of the clocks is enough: when the store's was set, the engine may have gone by either.
    return isOver('worldMs') || isOver('storeMs');
  }

  async #members(job: number): Promise<number[]> {
    const members = await this.#store.members({ job, after: 0, limit: 10_000 });
    return members.map(({ itemId }) => itemId);
  }

  /** Whether anything has changed. */
  #checkItems(): boolean {
    let isChanged = false;
    for (const item of this.#store.peek().items.values()) {
      const known = this.#items.get(item.id);
      if (known === item) continue;
      isChanged = true;
      this.#items.set(item.id, item);
      if (!known || known.state === item.state) continue;
      if (!legal[known.state].includes(item.state)) {
        this.#say(`item ${item.id} was ${known.state} and is ${item.state}`);
      }
      if (item.state !== 'replayed') continue;
      this.replays += 1;
      const generation = this.#generations.get(item.taskId ?? -1);
      if (generation) generation.replays += 1;
    }
    return isChanged;
  }

  #checkGroups(): void {
    const { items, groups } = this.#store.peek();
    const open = new Map<string, number>();
    for (const { state, fingerprint } of items.values()) {
      if (state === 'open') open.set(fingerprint, (open.get(fingerprint) ?? 0) + 1);
    }
    for (const group of groups.values()) {
      const count = open.get(group.fingerprint) ?? 0;
      if (group.open !== count) this.#say(`a group counts ${group.open} of ${count} open items`);
    }
  }

  /** One of a line has its turn: never two, and never none while the first of them waits. */
  #checkLine(task: Task): void {
    if (task.orderingKey === undefined) return;
    const holders = this.#lineOf(task);
    const active = holders.filter(({ status, blocked }) => status === 'pending' && !blocked);
    if (active.length > 1)
      this.#say(`${active.length} of the line ${task.orderingKey} have their turn`);
    if (active.length === 0 && holders[0]?.status === 'pending') {
      this.#say(`the line ${task.orderingKey} stands still before ${holders[0].messageId}`);
    }
  }

  #lineOf(task: Task): Task[] {
    const line = lineOf(task);
    return [...this.#store.peek().tasks]
      .filter((one) => holdsPlace(one) && one.lane === line?.lane && one.orderingKey === line.key)
      .sort((a, b) => a.id - b.id);
  }
}

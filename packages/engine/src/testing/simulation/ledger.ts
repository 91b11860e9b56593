import type { MemoryStore } from '../../adapters/memory/store.ts';
import type { Claim, Settled, Settlement } from '../../ports/schedule.ts';
import type { Task } from '../../task.ts';

/** One start of a delivery. */
interface Start {
  attempt: number;
  lease: number;
  /** How its lease ended: `counted` uses up the attempt number, `uncounted` may repeat it. */
  ended?: 'counted' | 'uncounted';
}

/** What was promised about a task, and what happened to it. Everything that must hold is checked here. */
export class Ledger {
  readonly violations: string[] = [];
  readonly starts = new Map<string, Start[]>();
  /** Ids whose work was really done at least once. */
  readonly worked = new Set<string>();
  /** Ids that were accepted: by an answer to a submit, or by an acknowledgement. */
  readonly accepted = new Set<string>();
  readonly workersKilled = new Map<string, number>();
  readonly #store: MemoryStore;
  readonly #claims = new Map<
    number,
    { nowMs: number; dueAtMs: Map<string, number>; jumps: number }
  >();
  readonly #known = new Map<number, Task>();
  readonly #maxAttempts: number;
  /** Times that the store's clock jumped ahead: leases end early then, through nobody's fault. */
  jumps = 0;

  /** Told of everything that happens, to follow a seed that fails. */
  readonly #tell: (what: string, details?: unknown) => void;

  constructor(
    store: MemoryStore,
    maxAttempts: number,
    tell: (what: string, details?: unknown) => void,
  ) {
    this.#store = store;
    this.#maxAttempts = maxAttempts;
    this.#tell = tell;
  }

  /** Looks at a call of the store as it takes effect. */
  async watch(
    method: string,
    args: readonly unknown[],
    work: () => Promise<unknown>,
  ): Promise<unknown> {
    const before = method === 'settle' ? new Map(this.#known) : undefined;
    const result = await work();
    this.#tell(method, { args, result });
    if (method === 'claim') this.#claimed(args[0] as { lease: number }, result as Claim);
    this.check();
    if (before) this.#settled(args[0] as readonly Settlement[], result as Settled[], before);
    return result;
  }

  started(id: string, attempt: number, lease: number): void {
    this.#tell('started', { id, attempt, lease });
    const task = [...this.#known.values()].find((one) => one.messageId === id);
    const claim = this.#claims.get(lease);
    if (!task || !claim) return this.#say(`${id} was started without a claim`);
    if (claim.nowMs < (claim.dueAtMs.get(id) ?? Infinity)) this.#say(`${id} was started early`);
    const isJumped = claim.jumps !== this.jumps;
    if (task.lease !== lease && !isJumped) {
      this.#say(`${id} attempt ${attempt} was started under a lease that was gone`);
    }
    if (attempt > this.#maxAttempts) this.#say(`${id} was started as attempt ${attempt}`);
    const starts = this.starts.get(id) ?? [];
    const done = starts.find((one) => one.attempt === attempt && one.ended === 'counted');
    if (done && !isJumped)
      this.#say(`${id} attempt ${attempt} was started again after it was settled`);
    starts.push({ attempt, lease });
    this.starts.set(id, starts);
  }

  /** Holds after every step. */
  check(): void {
    const { tasks, openItems } = this.#store.peek();
    for (const task of tasks) {
      if (this.#known.get(task.id) === task) continue;
      this.#known.set(task.id, task);
      const isOpen = openItems.has(task.id);
      if (isOpen !== (task.status === 'failed')) {
        this.#say(
          `${task.messageId} is ${task.status} and ${isOpen ? 'has an' : 'has no'} open item`,
        );
      }
      if (task.lease !== undefined && task.status !== 'pending') {
        this.#say(`${task.messageId} is ${task.status} and leased`);
      }
      if (task.attempt > this.#maxAttempts + 1)
        this.#say(`${task.messageId} counts ${task.attempt} attempts`);
    }
  }

  /** Holds when all is quiet. */
  checkEnd(isOver: boolean, maxKills: number): void {
    const { tasks } = this.#store.peek();
    const byId = new Map([...tasks].map((task) => [task.messageId, task]));
    for (const id of this.accepted) {
      const task = byId.get(id);
      if (!task) this.#say(`${id} was accepted and is nowhere`);
      else if (task.status === 'pending') {
        this.#say(
          `${id} never came to an end: attempt ${task.attempt}, claims ${task.claims}, lane ${task.lane}`,
        );
      } else if ((task.status === 'done' || task.status === 'retried') && !this.worked.has(id)) {
        this.#say(`${id} is ${task.status} and never worked`);
      }
    }
    for (const [id, kills] of this.workersKilled) {
      if (kills > maxKills) this.#say(`${id} killed ${kills} workers`);
      const { status } = byId.get(id) ?? {};
      if (this.accepted.has(id) && status !== 'failed' && status !== 'cancelled') {
        this.#say(`${id} kills workers and is ${status}`);
      }
    }
    if (!isOver) this.#say('the world never came to rest');
  }

  #claimed({ lease }: { lease: number }, { tasks, nowMs }: Claim): void {
    const dueAtMs = new Map(tasks.map((task) => [task.messageId, task.dueAtMs]));
    this.#claims.set(lease, { nowMs, dueAtMs, jumps: this.jumps });
  }

  #settled(
    settlements: readonly Settlement[],
    results: readonly Settled[],
    before: ReadonlyMap<number, Task>,
  ): void {
    for (const [i, settlement] of settlements.entries()) {
      if (results[i] === 'lost') continue;
      const was = before.get(settlement.id);
      const is = this.#known.get(settlement.id);
      if (!was || was === is) continue;
      if (was.lease !== settlement.lease) {
        this.#say(`${was.messageId} was changed under a lease that was gone`);
        continue;
      }
      const start = this.starts.get(was.messageId)?.find((one) => one.lease === settlement.lease);
      const isCounted = is?.status !== 'pending' || is.attempt > was.attempt;
      if (start) start.ended = isCounted ? 'counted' : 'uncounted';
    }
  }

  #say(violation: string): void {
    if (this.violations.length < 20) this.violations.push(violation);
  }
}

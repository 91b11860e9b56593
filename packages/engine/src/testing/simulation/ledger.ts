import type { MemoryStore } from '../../adapters/memory/store.ts';
import type { Claim, ClaimRequest, Settled, Settlement } from '../../ports/schedule.ts';
import type { Task } from '../../model/task.ts';
import { InboxLedger } from './inbox-ledger.ts';
import { RateLedger } from './rate-ledger.ts';

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
    { nowMs: number; dueAtMs: Map<number, number>; jumps: number }
  >();
  /** How often the store's clock had been set when a claim was asked for, by its lease. */
  readonly #askedAfterJumps = new Map<number, number>();
  readonly #known = new Map<number, Task>();
  /** How often the item of a task was closed. */
  readonly #closed = new Map<number, number>();
  readonly #maxAttempts: number;
  readonly inbox: InboxLedger;
  readonly rates: RateLedger;
  /** Times that the store's clock jumped ahead: leases end early then, through nobody's fault. */
  jumps = 0;

  /** Told of everything that happens, to follow a seed that fails. */
  readonly tell: (what: string, details?: unknown) => void;

  constructor(
    store: MemoryStore,
    maxAttempts: number,
    now: () => { worldMs: number; storeMs: number },
    tell: (what: string, details?: unknown) => void,
  ) {
    this.#store = store;
    this.#maxAttempts = maxAttempts;
    this.tell = tell;
    this.rates = new RateLedger((violation) => this.say(violation));
    this.inbox = new InboxLedger(store, now, (violation) => this.say(violation));
  }

  say(violation: string): void {
    if (this.violations.length < 20) this.violations.push(violation);
  }

  /** Looks at a call of the store as it takes effect. */
  async watch(
    who: string,
    method: string,
    args: readonly unknown[],
    work: () => Promise<unknown>,
  ): Promise<unknown> {
    const before = method === 'settle' ? new Map(this.#known) : undefined;
    const result = await work();
    this.tell(`${who} ${method}`, { args, result });
    if (method === 'claim') this.#claimed(args[0] as ClaimRequest, result as Claim);
    this.check();
    const isOfJob = method === 'writeState' && String(args[0]).startsWith('job:');
    if (method === 'act' || method === 'freeze' || isOfJob) await this.inbox.sawJobs();
    if (before) this.#settled(args[0] as readonly Settlement[], result as Settled[], before);
    return result;
  }

  started(id: string, lane: string, attempt: number, lease: number): void {
    this.tell('started', { id, attempt, lease });
    const task = [...this.#known.values()].find((one) => one.messageId === id && one.lane === lane);
    const claim = this.#claims.get(lease);
    if (!task || !claim) return this.say(`${id} was started without a claim`);
    if (claim.nowMs < (claim.dueAtMs.get(task.id) ?? Infinity)) this.say(`${id} was started early`);
    const isJumped = claim.jumps !== this.jumps;
    if (task.lease !== lease && !isJumped) {
      this.say(`${id} attempt ${attempt} was started under a lease that was gone`);
    }
    if (attempt > (task.trial ? 1 : this.#maxAttempts)) {
      this.say(`${id} was started as attempt ${attempt}`);
    }
    const name = nameOf(task);
    const starts = this.starts.get(name) ?? [];
    const done = starts.find((one) => one.attempt === attempt && one.ended === 'counted');
    if (done && !isJumped)
      this.say(`${id} attempt ${attempt} was started again after it was settled`);
    starts.push({ attempt, lease });
    this.starts.set(name, starts);
  }

  /** A claim is on its way to the store. */
  asked({ lease }: ClaimRequest): void {
    this.#askedAfterJumps.set(lease, this.jumps);
  }

  /**
   * Whether the store's clock was not set since this claim was asked for. An answer to an earlier question may be from
   * before the clock was set or from after it, so its time counts for nothing, and the instance goes by the old time.
   */
  isTimeKnown(lease: number): boolean {
    return this.#askedAfterJumps.get(lease) === this.jumps;
  }

  /** Holds after every step. */
  check(): void {
    const { tasks, openItems } = this.#store.peek();
    const changed: Task[] = [];
    for (const task of tasks) {
      const before = this.#known.get(task.id);
      if (before === task) continue;
      this.#known.set(task.id, task);
      if (before?.status === 'failed' && task.status !== 'failed') {
        this.#closed.set(task.id, (this.#closed.get(task.id) ?? 0) + 1);
      }
      changed.push(task);
      const isOpen = openItems.has(task.id);
      if (isOpen !== (task.status === 'failed')) {
        this.say(
          `${task.messageId} is ${task.status} and ${isOpen ? 'has an' : 'has no'} open item`,
        );
      }
      if (task.lease !== undefined && task.status !== 'pending') {
        this.say(`${task.messageId} is ${task.status} and leased`);
      }
      // What an operator has closed may come back, and that counts as one more.
      if (task.attempt > this.#maxAttempts + 1 + (this.#closed.get(task.id) ?? 0))
        this.say(`${task.messageId} counts ${task.attempt} attempts`);
    }
    this.inbox.check(changed);
  }

  /** Holds when all is quiet. */
  async checkEnd(isOver: boolean, maxKills: number): Promise<void> {
    const tasks = [...this.#store.peek().tasks];
    for (const id of this.accepted) {
      const own = tasks.filter((task) => task.messageId === id);
      if (own.length === 0) this.say(`${id} was accepted and is nowhere`);
      for (const { status, attempt, claims, lane } of own) {
        if (status === 'pending') {
          this.say(
            `${id} never came to an end: attempt ${attempt}, claims ${claims}, lane ${lane}`,
          );
        } else if ((status === 'done' || status === 'retried') && !this.worked.has(id)) {
          this.say(`${id} is ${status} and never worked`);
        }
      }
    }
    for (const [id, kills] of this.workersKilled) {
      const own = tasks.filter((task) => task.messageId === id);
      const lives = own.reduce((sum, { generation }) => sum + generation + 1, 0);
      if (kills > maxKills * lives) this.say(`${id} killed ${kills} workers`);
    }
    await this.inbox.checkEnd();
    if (!isOver) this.say('the world never came to rest');
  }

  #claimed({ lease, from }: ClaimRequest, { tasks, nowMs }: Claim): void {
    const dueAtMs = new Map(tasks.map((task) => [task.id, task.dueAtMs]));
    this.#claims.set(lease, { nowMs, dueAtMs, jumps: this.jumps });
    if (from.kind === 'due') this.inbox.claimed(tasks);
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
        this.say(`${was.messageId} was changed under a lease that was gone`);
        continue;
      }
      const start = this.starts.get(nameOf(was))?.find((one) => one.lease === settlement.lease);
      const isCounted = is?.status !== 'pending' || is.attempt > was.attempt;
      if (start) start.ended = isCounted ? 'counted' : 'uncounted';
    }
  }
}

/** One life of a task: each replay begins another. */
function nameOf({ id, generation }: Task): string {
  return `${id} ${generation}`;
}

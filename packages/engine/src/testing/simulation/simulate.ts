import { MemoryStore } from '../../adapters/memory/store.ts';
import { createEngine, type Engine } from '../../engine.ts';
import type { Log } from '../../host.ts';
import type { Store } from '../../ports/store.ts';
import { BrokerWorld } from './broker.ts';
import { calm, faultyStore, type Weather } from './faults.ts';
import { Instance } from './instance.ts';
import { type Job, type MadeJob, makeJob, Workshop } from './jobs.ts';
import { Ledger } from './ledger.ts';
import { makeOnce, type Once } from './once/once.ts';
import { Operator } from './operator.ts';
import { MAX_ATTEMPTS, policy, read } from './reading.ts';
import { type Being, World } from './world.ts';

export interface SimulationResult {
  seed: number;
  violations: readonly string[];
  steps: number;
  starts: number;
  crashes: number;
  replays: number;
}

const LEASE_MS = 3000;
const MAX_LOST_LEASES = 3;
const RATE = { perSecond: 5, burst: 2 };
/** The storm lasts so long, and all must be at rest so long after it. */
const STORM_MS = 20_000;
const REST_MS = 1_800_000;
const MAX_STEPS = 100_000;

const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** The real engine, several of it, in a world that one number makes up. The same number, the same world. */
export async function simulate(
  seed: number,
  tell?: (line: string) => void,
): Promise<SimulationResult> {
  const simulation = new Simulation(seed, tell);
  await simulation.run();
  return simulation.result();
}

class Simulation {
  readonly #seed: number;
  readonly #world: World;
  readonly #weather: Weather;
  readonly #storeSkew = { ms: 0 };
  readonly #nature: Being = { isAlive: true };
  readonly #store: MemoryStore;
  readonly #ledger: Ledger;
  readonly #broker: BrokerWorld;
  readonly #instances: Instance[] = [];
  readonly #workshop: Workshop;
  readonly #operator: Operator;
  /** Absent: in this world no handler is idempotent. */
  readonly #once: Once | undefined;
  #underway = 0;
  #instanceCount = 0;
  #crashes = 0;
  #isCalm = false;

  constructor(seed: number, tell?: (line: string) => void) {
    this.#seed = seed;
    this.#world = new World(seed);
    this.#weather = this.#makeWeather();
    this.#store = new MemoryStore(this.#world.clockOf(this.#nature, this.#storeSkew), 1000);
    const now = () => {
      const { nowMs } = this.#world;
      return { worldMs: nowMs, storeMs: nowMs + this.#storeSkew.ms };
    };
    this.#ledger = new Ledger(this.#store, MAX_ATTEMPTS, now, (what, details) =>
      tell?.(`${this.#world.nowMs} ms ${what} ${JSON.stringify(details) ?? ''}`),
    );
    this.#workshop = new Workshop(this.#world, this.#ledger);
    this.#operator = new Operator(this.#world, this.#store);
    this.#once = makeOnce(seed, {
      world: this.#world,
      weather: this.#weather,
      clock: this.#world.clockOf(this.#nature, this.#storeSkew),
      store: this.#store,
      ledger: {
        say: (violation) => this.#ledger.say(violation),
        tell: (...about) => this.#ledger.tell(...about),
      },
    });
    this.#broker = new BrokerWorld(
      this.#world,
      (id) => this.#ledger.worked.add(id),
      (id) => this.#ledger.accepted.add(id),
    );
  }

  async run(): Promise<void> {
    const world = this.#world;
    const instances = world.between(1, 3);
    for (let i = 0; i < instances; i++) this.#spawn();
    for (let i = world.between(3, 10); i > 0; i--) this.#plan(() => this.#submit(makeJob(world)));
    for (let i = world.between(1, 6); i > 0; i--) this.#plan(() => this.#fail(0));
    if (world.chance(0.15)) this.#press();
    for (let i = world.between(0, 3); i > 0; i--) this.#plan(() => this.#meddle());
    // Most of what fails has failed by then.
    for (let i = world.between(0, 12); i > 0; i--) {
      world.at(world.between(STORM_MS * 0.2, STORM_MS * 1.2), this.#nature, () => this.#operate());
    }
    if (this.#once) this.#pay();
    world.at(STORM_MS, this.#nature, () => this.#calmDown());
    await world.run(() => this.#isOver());
    this.#ledger.check();
    this.#once?.ledger.checkEnd();
    if (this.#ledger.violations.length === 0)
      await this.#ledger.checkEnd(this.#isQuiet(), MAX_LOST_LEASES);
  }

  result(): SimulationResult {
    const starts = [...this.#ledger.starts.values()].reduce((sum, list) => sum + list.length, 0);
    const { violations } = this.#ledger;
    return {
      seed: this.#seed,
      violations,
      steps: this.#world.steps,
      starts,
      crashes: this.#crashes,
      replays: this.#ledger.inbox.replays,
    };
  }

  #makeWeather(): Weather {
    const world = this.#world;
    const often = (most: number) => (world.chance(0.5) ? 0 : world.random() * most);
    return {
      failBefore: often(0.2),
      failAfter: often(0.2),
      slow: often(0.1),
      stale: 0,
      crash: often(0.02),
      deaf: often(0.5),
    };
  }

  /** Tasks of an idempotent handler. Some of them are in the inbox later on, and are changed there. */
  #pay(): void {
    const world = this.#world;
    for (let i = world.between(3, 8); i > 0; i--) {
      this.#plan(() => this.#submit({ ...makeJob(world), to: 'pay' }));
    }
    for (let i = world.between(2, 8); i > 0; i--) {
      world.at(world.between(STORM_MS * 0.3, STORM_MS * 1.2), this.#nature, () => {
        const instance = this.#instances.length > 0 ? world.pick(this.#instances) : undefined;
        if (instance?.engine) this.#operator.editPaying(instance.engine);
      });
    }
  }

  #plan(call: () => void): void {
    this.#world.at(this.#world.between(0, STORM_MS * 0.8), this.#nature, call);
  }

  #spawn(): void {
    const world = this.#world;
    this.#instanceCount += 1;
    const name = `i${this.#instanceCount}`;
    const instance = new Instance(name, this.#world, (dead) => this.#died(dead));
    this.#instances.push(instance);
    const watch = (method: string, args: readonly unknown[], work: () => Promise<unknown>) =>
      this.#ledger.watch(name, method, args, work);
    const faulty = faultyStore(this.#world, this.#weather, instance, this.#store, watch);
    const claim: Store['claim'] = (request) => {
      this.#ledger.asked(request);
      return faulty.claim(request);
    };
    const engine = createEngine({
      store: { ...faulty, claim },
      brokers: [this.#broker.seenBy(instance, this.#weather)],
      policy,
      lane: { concurrency: this.#world.between(1, 4), timeout: 1000, openFor: 1000, failures: 3 },
      lanes: { 'handler:other': { rate: RATE } },
      lease: LEASE_MS,
      heartbeat: 1000,
      poll: 2000,
      maxLostLeases: MAX_LOST_LEASES,
      clock: this.#world.clockOf(instance, instance.skew),
      random: this.#world.random,
      defer: (callback) => queueMicrotask(() => instance.isAlive && callback()),
      instance: name,
      ...(this.#once
        ? { idempotency: this.#once.keys.seenBy(instance, this.#once.isTransactional) }
        : {}),
      log: silent,
      on: (event) => {
        if (event.type !== 'started' || !instance.isAlive) return;
        const { id, lane, attempt, lease } = event;
        this.#ledger.started(id, lane, attempt, lease);
        // Once the store's clock was set, what was claimed before may start beside what the new time allows.
        const isRated = lane === 'handler:other' && this.#ledger.isTimeKnown(lease);
        if (isRated) this.#ledger.rates.started(world.nowMs, RATE);
      },
    })
      .handle('job', (job: Job, context) => this.#workshop.work(instance, job, context))
      .handle('other', (job: Job, context) => this.#workshop.work(instance, job, context));
    if (this.#once) {
      const { ledger } = this.#once;
      engine.handle('pay', { idempotent: true }, (job: Job, context) =>
        this.#workshop.pay(instance, job, context, ledger),
      );
    }
    engine.consume({
      broker: this.#broker.seenBy(instance, this.#weather),
      source: 'retry.scheduled',
      read,
    });
    instance.engine = engine as unknown as Engine;
    void this.#start(instance);
  }

  async #start(instance: Instance): Promise<void> {
    try {
      await instance.engine?.start();
    } catch {
      // As a supervisor would: it could not start, so it ends and is started again.
      instance.die();
    }
  }

  #died(instance: Instance): void {
    this.#crashes += 1;
    this.#ledger.tell(`${instance.name} died`);
    this.#instances.splice(this.#instances.indexOf(instance), 1);
    this.#broker.lost(instance);
    this.#world.at(this.#world.between(10, 3000), this.#nature, () => this.#spawn());
  }

  /** A client keeps trying until it has an answer, under the same id; an impatient one asks twice. */
  #submit(made: MadeJob): void {
    const world = this.#world;
    const { id, job, expiresIn, dueIn, order, to } = made;
    this.#underway += 1;
    const again = () => world.at(world.between(50, 500), this.#nature, () => this.#submit(made));
    const instance = this.#instances.length > 0 ? world.pick(this.#instances) : undefined;
    const end = (next: () => void) => {
      this.#underway -= 1;
      next();
    };
    if (!instance?.engine) return end(again);
    const nowMs = this.#world.clockOf(this.#nature, this.#storeSkew).now();
    const sent = instance.engine.submit(to, job, {
      id,
      ...order,
      ...(dueIn > 0 ? { dueAt: nowMs + dueIn } : {}),
      ...(expiresIn === undefined ? {} : { expiresAt: nowMs + expiresIn }),
    });
    const died = () => end(again);
    instance.dying.add(died);
    // An answer of one who died meanwhile reached nobody.
    const answer = (next: () => void) => () => {
      if (instance.dying.delete(died)) end(next);
    };
    sent.then(
      answer(() => this.#ledger.accepted.add(id)),
      answer(again),
    );
    if (world.chance(0.05)) again();
  }

  /**
   * Answers of the store come late, while things happen that an old answer knows nothing of: its clock is set while more
   * waits than the rate of a lane allows, and messages come back while a bulk replay observes them.
   */
  #press(): void {
    const world = this.#world;
    this.#weather.stale = world.random() * 0.4;
    this.#plan(() => {
      for (let i = world.between(5, 15); i > 0; i--) {
        this.#submit({ ...makeJob(world), to: 'other', order: {} });
      }
      world.at(world.between(0, 3000), this.#nature, () => this.#setClock());
    });
    for (let i = world.between(2, 4); i > 0; i--) {
      world.at(world.between(0, STORM_MS * 0.2), this.#nature, () => this.#fail(MAX_ATTEMPTS + 1));
    }
    for (let i = world.between(1, 3); i > 0; i--) {
      world.at(world.between(STORM_MS * 0.4, STORM_MS * 0.9), this.#nature, () => {
        const instance = this.#instances.length > 0 ? world.pick(this.#instances) : undefined;
        if (instance?.engine) this.#operator.replayInSteps(instance.engine);
      });
    }
  }

  /** A message fails in a consumer out there. */
  #fail(leastFailures: number): void {
    const world = this.#world;
    const n = Math.floor(world.random() * 2 ** 40);
    const id = `10000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
    const failures = world.between(leastFailures, 7);
    this.#broker.begin(id, `work${world.between(1, 2)}`, failures, world.chance(0.5));
  }

  /** An operator cancels, hurries, pauses; a clock jumps; an instance is stopped or killed. */
  #meddle(): void {
    const world = this.#world;
    const instance = this.#instances.length > 0 ? world.pick(this.#instances) : undefined;
    const tasks = [...this.#store.peek().tasks];
    const task = tasks.length > 0 ? world.pick(tasks) : undefined;
    switch (world.between(0, 6)) {
      case 0:
        if (task) void instance?.engine?.cancel(task.messageId, task.destination).catch(nothing);
        break;
      case 1:
        if (task) void instance?.engine?.expedite(task.messageId, task.destination).catch(nothing);
        break;
      case 2:
        void instance?.engine?.pause('handler:job').catch(nothing);
        this.#world.at(world.between(10, 3000), this.#nature, () => this.#resume());
        break;
      case 3:
        if (instance) instance.skew.ms += world.between(-60_000, 60_000);
        break;
      case 4:
        this.#setClock();
        break;
      case 5:
        instance?.die();
        break;
      case 6:
        if (instance) void instance.engine?.stop().then(() => instance.die(), nothing);
        break;
    }
  }

  /** Somebody sets the clock of the store. */
  #setClock(): void {
    const world = this.#world;
    this.#storeSkew.ms += world.pick([1, 10]) * world.between(-3000, 3000);
    this.#ledger.jumps += 1;
    this.#ledger.tell("the store's clock was set", this.#storeSkew);
    this.#ledger.rates.forget();
  }

  #operate(): void {
    const instance = this.#instances.length > 0 ? this.#world.pick(this.#instances) : undefined;
    if (instance?.engine) this.#operator.act(instance.engine);
  }

  /** Until it is done: an operator does not forget what he paused. */
  #resume(): void {
    const [instance] = this.#instances;
    const again = () => this.#world.at(500, this.#nature, () => this.#resume());
    if (!instance?.engine) again();
    else {
      const { dying, engine } = instance;
      const end = (next: () => void) => () => {
        if (dying.delete(again)) next();
      };
      dying.add(again);
      engine.resume('handler:job').then(end(nothing), end(again));
    }
  }

  #calmDown(): void {
    Object.assign(this.#weather, calm);
    this.#isCalm = true;
    if (this.#instances.length === 0) this.#spawn();
    this.#tidyUp();
  }

  /** A pause may take effect long after it was asked for. */
  #tidyUp(): void {
    this.#resume();
    const [instance] = this.#instances;
    if (instance?.engine) this.#operator.clear(instance.engine);
    this.#world.at(5000, this.#nature, () => this.#tidyUp());
  }

  #isOver(): boolean {
    const { steps, nowMs } = this.#world;
    if (steps >= MAX_STEPS || this.#ledger.violations.length > 0) return true;
    return (this.#isCalm && this.#isQuiet()) || nowMs > STORM_MS + REST_MS;
  }

  #isQuiet(): boolean {
    if (this.#underway > 0 || !this.#broker.isEmpty) return false;
    for (const { status } of this.#store.peek().tasks) if (status === 'pending') return false;
    const jobs = this.#store.peekState('job:');
    return jobs.every(({ value }) => (value as { state: string }).state !== 'running');
  }
}

function nothing(): void {}

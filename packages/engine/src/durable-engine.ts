import { Calls } from './calls.ts';
import { checkSource, type SourceOptions, SourceConsumer } from './intake/consumer.ts';
import type { Executor } from './dispatch/executor.ts';
import type { Directory } from './dispatch/directory.ts';
import type { Dispatcher } from './dispatch/dispatcher.ts';
import type { Engine, EngineStats, HandlerOptions, LaneQuery, Rejected } from './engine.ts';
import type { By, EngineInbox } from './inbox/engine-inbox.ts';
import { checkedAuditQuery, checkedLaneQuery, checkedTaskQuery } from './inbox/queries.ts';
import { byOf } from './inbox/selection.ts';
import { type EngineOptions, type EngineSettings, engineSettings } from './engine-options.ts';
import type { EntryHook } from './inbox/entry-hook.ts';
import { EngineError, isUnavailable, noTransactions, stoppedError } from './errors.ts';
import { givenHandler } from './dispatch/handler-options.ts';
import type { Handler } from './dispatch/handlers.ts';
import type { Host } from './host.ts';
import type { Intake } from './intake/intake.ts';
import type { JobRunner } from './inbox/job-runner.ts';
import { DELAY_QUEUE_KIND } from './delay-queue/store/entry-task.ts';
import type { LaneReporter } from './lanes/lane-report.ts';
import type { Lanes } from './lanes/lanes.ts';
import type { WatchedLane } from './lanes/watched-lanes.ts';
import { type Accepted, type Arrival, cancel, expedite, succeed } from './model/moves.ts';
import type { Observer } from './audit/observer.ts';
import type { Outbox } from './outbox.ts';
import { closeAll, persist, within } from './patience.ts';
import type { AuditPage, AuditQuery } from './ports/audit.ts';
import type { RawItem } from './ports/inbox.ts';
import type { TaskQuery } from './ports/schedule.ts';
import type { Census, Store } from './ports/store.ts';
import type { Pruner } from './pruner.ts';
import type { FailureReport, Reported, Reporter } from './intake/report.ts';
import type { Settler } from './dispatch/settler.ts';
import { checkedLane, type Submission, type SubmitOptions, txOf } from './intake/submission.ts';
import { checkList, checkObject } from './intake/submission-faults.ts';
import { firstDue, type Submitted, type Submitter } from './intake/submitter.ts';
import type { Destination, Task } from './model/task.ts';
import { TaskActions } from './inbox/task-actions.ts';
import type { Trail } from './audit/trail.ts';
import type { UnservedLanes } from './dispatch/unserved.ts';
import { type Shared, wire } from './wiring.ts';

/** After an abort, so much time for handlers to notice; and for each part to close. */
const ABORT_MS = 1000;
const CLOSE_MS = 5000;
const SEED = 'seed';

/** The engine's parts as one: starts and stops them. See the interface `Engine` for what each method promises. */
export class DurableEngine {
  readonly #settings: EngineSettings;
  readonly #store: Store;
  readonly #host: Host;
  readonly #directory: Directory;
  readonly #lanes: Lanes;
  readonly #laneReporter: LaneReporter;
  readonly #settler: Settler;
  readonly #executor: Executor;
  readonly #dispatcher: Dispatcher;
  readonly #intake: Intake;
  readonly #submitter: Submitter;
  readonly #reporter: Reporter;
  readonly #dispatches: boolean;
  readonly #pruner: Pruner;
  readonly #outbox: Outbox;
  readonly #trail: Trail;
  readonly #observer: Observer;
  readonly #runner: JobRunner;
  readonly #hook: EntryHook | undefined;
  readonly inbox: EngineInbox;
  readonly #sources: SourceConsumer[] = [];
  readonly #unserved: UnservedLanes;
  readonly #actions: TaskActions;
  /** Ends what would otherwise be tried for ever. */
  readonly #ending = new AbortController();
  /** Somebody asked twice to stop. */
  readonly #hurry = new AbortController();
  readonly #calls = new Calls();
  readonly #shared: Shared;
  #opening: Promise<void> | undefined;
  #started: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  #unwatch: (() => void)[] = [];

  constructor(options: EngineOptions) {
    this.#settings = engineSettings(options);
    this.#store = options.store;
    const opened = () => this.#open().then(() => this.#store);
    const parts = wire(options, this.#settings, this.#ending.signal, opened);
    this.#shared = parts.shared;
    this.#host = parts.host;
    this.#directory = parts.directory;
    this.#lanes = parts.lanes;
    this.#laneReporter = parts.laneReporter;
    this.#settler = parts.settler;
    this.#executor = parts.executor;
    this.#dispatcher = parts.dispatcher;
    this.#intake = parts.intake;
    this.#submitter = parts.submitter;
    this.#reporter = parts.reporter;
    this.#dispatches = options.dispatch !== false;
    this.#pruner = parts.pruner;
    this.#outbox = parts.outbox;
    this.#trail = parts.trail;
    this.#observer = parts.observer;
    this.#runner = parts.runner;
    this.#hook = parts.hook;
    this.#unserved = parts.unserved;
    this.inbox = this.#calls.ofAll(parts.inbox);
    this.#actions = new TaskActions(opened, (...about) => {
      parts.observer.acted(...about);
      // A bulk job may have waited for this.
      parts.runner.settled();
    });
  }

  handle(name: string, ...rest: [Handler<never>] | [HandlerOptions, Handler<never>]): this {
    this.#dispatcher.expect([this.#directory.add(name, givenHandler(name, rest))]);
    return this;
  }

  async submit(
    to: string | Destination,
    payload: unknown,
    options: SubmitOptions & { tx?: unknown } = {},
  ): Promise<Submitted> {
    checkObject(options, 'The options of a submit');
    const { tx, ...rest } = options;
    const submission = { ...rest, to, payload };
    return this.#intoStore(tx, async () => {
      const arrival = await this.#patiently(async () => this.#submitter.prepare(submission), tx);
      const status = await this.#patiently(() => this.#add(arrival, tx), tx);
      this.#wereAccepted([arrival], [status]);
      return this.#submitter.answerOf(arrival, status);
    });
  }

  async submitMany(
    tasks: readonly Submission[],
    options: { tx?: unknown } = {},
  ): Promise<(Submitted | Rejected)[]> {
    const tx = txOf(options);
    checkList(tasks, 'The tasks of submitMany');
    const storeBatch = async (arrivals: readonly Arrival[]) => {
      const store = () =>
        tx === undefined ? this.#intake.storeAll(arrivals) : this.#intake.store(arrivals, tx);
      const results = await this.#patiently<Awaited<ReturnType<typeof store>>>(store, tx);
      this.#wereAccepted(arrivals, results);
      return results;
    };
    return this.#intoStore(tx, () => this.#submitter.many(tasks, storeBatch));
  }

  faultsOf(submission: Submission): ReturnType<Engine['faultsOf']> {
    return this.#submitter.faultsOf(submission);
  }

  async report(failures: readonly FailureReport[]): Promise<(Reported | Rejected)[]> {
    checkList(failures, 'The failures of a report');
    const storeBatch = (arrivals: readonly Arrival[]) =>
      this.#patiently(() => this.#intake.storeAll(arrivals), undefined);
    return this.#intoStore(undefined, async () => {
      const results = await this.#reporter.many(failures, storeBatch);
      if (results.some(({ status }) => status === 'failed')) this.#outbox.wake();
      return results;
    });
  }

  consume(source: SourceOptions): void {
    checkSource(source);
    const inboxed = (items: readonly RawItem[]) => {
      this.#outbox.wake();
      for (const item of items) this.#observer.unreadable(item);
    };
    if (this.#started) {
      throw new EngineError('INVALID_ENGINE', 'Sources are named before the engine is started.');
    }
    this.#sources.push(
      new SourceConsumer(source, this.#reporter, this.#intake, this.#store, this.#host, inboxed),
    );
  }

  start(): Promise<void> {
    if (this.#stopped) return Promise.reject(stoppedError());
    return (this.#started ??= this.#start().catch((error: unknown) => {
      this.#started = undefined;
      throw error;
    }));
  }

  stop(): Promise<void> {
    if (this.#stopped) this.#hurry.abort();
    return (this.#stopped ??= this.#stop());
  }

  cancel(id: string, to?: string | Destination, options?: By) {
    return this.#calls.run(() => this.#actions.change('cancel', id, to, options, cancel));
  }

  expedite(id: string, to?: string | Destination, options?: By) {
    return this.#calls.run(async () => {
      const result = await this.#actions.change('expedite', id, to, options, expedite);
      const task = result === 'expedited' ? await this.#actions.get(id, to) : undefined;
      if (task) this.#dispatcher.expect([task.lane]);
      return result;
    });
  }

  succeeded(id: string, to?: string | Destination, options?: By) {
    return this.#calls.run(() => this.#actions.change('succeeded', id, to, options, succeed));
  }

  get(id: string, to?: string | Destination): Promise<Task | undefined> {
    return this.#calls.run(() => this.#actions.get(id, to));
  }

  async list(query: TaskQuery): Promise<Task[]> {
    const checked = checkedTaskQuery(query);
    // Wake-ups of delay queues are nobody's retries: only who asks for their lane sees them.
    const others = query.lane === undefined ? { exceptKind: DELAY_QUEUE_KIND } : {};
    return this.#opened(() => this.#store.list({ ...others, ...checked }));
  }

  async lanes(query?: LaneQuery) {
    const checked = checkedLaneQuery(query);
    return this.#opened(() => this.#laneReporter.list(checked));
  }

  laneCounts() {
    return this.#opened(() => this.#laneReporter.counts());
  }

  async pause(lane: string, by?: string): Promise<{ known: boolean }> {
    const who = byOf(by);
    return this.#opened(async () => {
      const known = await this.#laneReporter.knows(checkedLane(lane));
      await this.#lanes.pause(lane, who.by);
      this.#observer.acted('pause', { lane, by });
      return { known };
    });
  }

  async resume(lane: string, by?: string): Promise<void> {
    byOf(by);
    return this.#opened(async () => {
      await this.#lanes.resume(checkedLane(lane));
      this.#observer.acted('resume', { lane, by });
      this.#dispatcher.expect([lane]);
    });
  }

  watchLane(lane: string, watched: WatchedLane): () => void {
    return this.#lanes.watched.add(checkedLane(lane), watched);
  }

  census(): Promise<Census> {
    return this.#opened(() => this.#store.census());
  }

  readonly audit: Engine['audit'] = (entry) => this.#trail.writeSoon(entry);

  async auditEvents(query: AuditQuery): Promise<AuditPage> {
    const checked = checkedAuditQuery(query);
    return this.#opened(() => this.#trail.read(checked));
  }

  stats(): EngineStats {
    return {
      running: this.#executor.running,
      held: this.#executor.held,
      unsettled: this.#settler.unsettled,
      auditDropped: this.#trail.dropped,
      outboxStuck: this.#outbox.stuck,
      seed: this.#shared.seed,
      ...this.#lanes.skew,
      sources: this.#sources.map(({ report }) => report),
    };
  }

  async #start(): Promise<void> {
    await this.#open();
    await this.#directory.open();
    if (this.#unwatch.length === 0) {
      const hinted = this.#store.watch(({ lanes, inMs, state }) => {
        if (state || !lanes) this.#lookAround();
        if (lanes || !state) this.#dispatcher.expect(lanes, inMs);
      });
      const reached = this.#directory.watch(() => {
        this.#dispatcher.reachChanged();
        this.#outbox.wake();
      });
      this.#unwatch.push(hinted, reached);
    }
    // First what may fail, so that a start that is refused has begun nothing.
    for (const source of this.#sources) await source.start();
    if (!this.#dispatches) return;
    this.#unserved.started((lane) => this.#directory.serves(lane));
    this.#dispatcher.start();
    this.#pruner.start();
    this.#outbox.start();
    this.#runner.start();
  }

  async #stop(): Promise<void> {
    const drained = this.#drain();
    if (!(await within(this.#host, this.#settings.graceMs, drained, this.#hurry.signal))) {
      this.#executor.abortAll();
      await within(this.#host, ABORT_MS, drained);
    }
    this.#calls.end();
    this.#ending.abort();
    this.#executor.close();
    await closeAll(this.#host, CLOSE_MS, [
      () => this.#trail.close(),
      () => this.#directory.close(),
      () => (this.#opening ? this.#store.close() : Promise.resolve()),
    ]);
  }

  async #drain(): Promise<void> {
    const called = this.#calls.drain();
    // Whoever stops it has the error of the start from the start.
    await this.#started?.catch(() => undefined);
    for (const end of this.#unwatch) end();
    await Promise.all([
      ...this.#sources.map((source) => source.stop()),
      this.#dispatcher.stop(),
      this.#pruner.stop(),
      this.#outbox.stop(),
      this.#runner.stop(),
      called,
    ]);
    await this.#executor.idle();
    await this.#hook?.stop();
  }

  #open(): Promise<void> {
    return (this.#opening ??= this.#openStore().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    }));
  }

  /** A call that needs the store. */
  #opened<T>(work: () => Promise<T>): Promise<T> {
    return this.#calls.run(() => this.#open().then(work));
  }

  async #openStore(): Promise<void> {
    await this.#store.open();
    const { documents } = await this.#store.readState(SEED);
    const seed = documents.find(({ key }) => key === SEED)?.value;
    if (typeof seed === 'number') this.#shared.seed = seed;
    await this.#lanes.refresh();
  }

  /** Something shared was changed, or may have been. */
  #lookAround(): void {
    const failed = (err: unknown) =>
      this.#host.log.warn({ err }, 'the state of the lanes could not be read');
    this.#lanes.refresh().catch(failed);
    this.#runner.wake();
  }

  /** A call that stores something. */
  async #intoStore<T>(tx: unknown, work: () => Promise<T>): Promise<T> {
    if (tx !== undefined && !this.#store.capabilities.transactions) throw noTransactions();
    return this.#calls.run(() => this.#patiently(() => this.#open(), tx).then(work));
  }

  /** Waits for a store that is away, where that is wanted; a transaction of the caller's cannot wait. */
  #patiently<T>(work: () => Promise<T>, tx: unknown): Promise<T> {
    if (this.#settings.onUnavailable !== 'wait' || tx !== undefined) return work();
    const by = { host: this.#host, what: 'submitting', isWorthIt: isUnavailable };
    return persist(work, { ...by, until: this.#calls.stopping });
  }

  async #add(arrival: Arrival, tx: unknown): Promise<Accepted> {
    if (tx === undefined) return this.#intake.add(arrival);
    const [answer] = await this.#intake.store([arrival], tx);
    if (typeof answer === 'string') return answer;
    throw answer!.error;
  }

  /** Wakes the dispatcher once per lane, however many were stored. */
  #wereAccepted(arrivals: readonly Arrival[], results: readonly (Accepted | object)[]): void {
    for (const [lane, inMs] of firstDue(arrivals, results, this.#lanes.nowMs)) {
      if (!this.#directory.serves(lane)) this.#unserved.saw(lane);
      else if (this.#dispatches) this.#dispatcher.expect([lane], inMs);
    }
  }
}

import { type Clock, ConfigError, type Duration } from 'redrive';
import { checkNames, durationMs } from 'redrive/internal';
import { seededRandom } from 'redrive/testing';
import { memory } from '../adapters/memory/index.ts';
import {
  createEngine,
  type Elsewhere,
  type Engine,
  type HandlerOptions,
  type PayloadTo,
  type Takes,
} from '../engine.ts';
import type { EngineOptions } from '../engine-options.ts';
import type { EngineEvent } from '../events.ts';
import type { Handler } from '../dispatch/handlers.ts';
import { hostOf, type Log } from '../host.ts';
import type { EngineInbox } from '../inbox/engine-inbox.ts';
import type { InboxItem } from '../ports/inbox.ts';
import type { TransactionClient } from '../ports/schedule.ts';
import type { InputOf, OutputOf, StandardSchema } from '../dispatch/standard-schema.ts';
import type { Submission, SubmitOptions } from '../intake/submission.ts';
import type { Submitted } from '../intake/submitter.ts';
import { Stillness } from './stillness.ts';
import { type SteppingClock, steppingClock } from './stepping-clock.ts';
import { Submissions, type SubmittedTask, type Wanted } from './submissions.ts';
import { optionNames } from '../engine-faults.ts';

export interface TestEngineOptions extends Omit<EngineOptions, 'store' | 'clock' | 'defer'> {
  /** What time it is at first (2025-01-01T00:00:00Z). */
  startAt?: Date | number;
  /** How long, by the real clock, a handler may take without anything happening before time moves on without it (200 ms). */
  patience?: Duration;
}

/** An engine in memory whose time stands still until it is told to move. */
export interface TestEngine<Tasks extends object = Record<string, unknown>> extends Engine<Tasks> {
  handle<Name extends string, Schema extends StandardSchema>(
    name: Name,
    options: HandlerOptions & {
      schema: Schema & Takes<Name, Tasks, InputOf<Schema>, StandardSchema<PayloadTo<Name, Tasks>>>;
    },
    run: Handler<OutputOf<Schema>>,
  ): TestEngine<Tasks & Record<Name, InputOf<Schema>>>;
  handle<Name extends string, Payload = PayloadTo<Name, Tasks>>(
    name: Name,
    options: HandlerOptions & { schema?: undefined },
    run: Handler<Payload> & Takes<Name, Tasks, Payload, Handler<PayloadTo<Name, Tasks>>>,
  ): TestEngine<Tasks & Record<Name, Payload>>;
  handle<Name extends string, Payload = PayloadTo<Name, Tasks>>(
    name: Name,
    run: Handler<Payload> & Takes<Name, Tasks, Payload, Handler<PayloadTo<Name, Tasks>>>,
  ): TestEngine<Tasks & Record<Name, Payload>>;

  /** Its time. It moves by `advance` only. */
  readonly clock: Clock;
  /** Runs what is due, moves time on, and runs all that falls due on the way, in order. Starts the engine. */
  advance(duration: Duration): Promise<void>;
  /** Runs until nothing is due and nothing runs, without moving time. Starts the engine. */
  drain(): Promise<void>;

  /** What was submitted and accepted so far, oldest first, duplicates left out. */
  submitted(): SubmittedTask[];
  submitted<Name extends keyof Tasks & string>(to: Name): SubmittedTask<Tasks[Name]>[];
  submitted(to: Elsewhere): SubmittedTask[];
  /** The newest such submission; throws an AssertionError that lists what there was instead. */
  expectSubmitted<Name extends keyof Tasks & string>(
    to: Name,
    wanted?: Wanted<Tasks[Name]>,
  ): SubmittedTask<Tasks[Name]>;
  expectSubmitted(to: Elsewhere, wanted?: Wanted<unknown>): SubmittedTask;
  /** Throws an AssertionError if there was such a submission. */
  expectNotSubmitted<Name extends keyof Tasks & string>(
    to: Name,
    wanted?: Wanted<Tasks[Name]>,
  ): void;
  expectNotSubmitted(to: Elsewhere, wanted?: Wanted<unknown>): void;

  /** The inbox as of any engine; called, its open items, oldest first, with their payloads read. */
  readonly inbox: TestInbox<Tasks>;
}

export interface TestInbox<Tasks extends object> extends EngineInbox {
  (): Promise<TestInboxItem[]>;
  <Name extends keyof Tasks & string>(of: Name): Promise<TestInboxItem<Tasks[Name]>[]>;
}

export type TestInboxItem<Payload = unknown> = Omit<InboxItem, 'payload'> & { payload: Payload };

/**
 * An engine for tests: nothing on disk, no real time, the same course every time.
 *
 * @example
 * const engine = createTestEngine().handle('orders', charge);
 * await engine.submit('orders', { id: 7 });
 * await engine.advance('1h');
 */
export function createTestEngine<Tasks extends object = Record<string, unknown>>(
  options: TestEngineOptions = {},
): TestEngine<Tasks> {
  checkNames('The options of createTestEngine', options, [...optionNames, 'startAt', 'patience']);
  return new MemoryEngine(options) as unknown as TestEngine<Tasks>;
}

/** The safety net is not needed in one process: without it a day of virtual time is quickly over. */
const POLL = '10m';
const MAX_STEPS = 1_000_000;
const MAX_ITEMS = 10_000;

/** Most tests have no handlers for what they submit, and make failures on purpose. */
const quietLog: Log = { ...hostOf({}).log, warn: () => undefined };

class MemoryEngine {
  readonly clock: Clock;
  readonly inbox: TestInbox<Record<string, unknown>>;
  readonly #engine: Engine;
  readonly #submissions = new Submissions();
  readonly #stillness: Stillness;
  readonly #time: SteppingClock;

  constructor({ startAt, patience = '200ms', ...options }: TestEngineOptions) {
    const clock = steppingClock(startAt === undefined ? undefined : Number(startAt));
    this.#time = clock;
    this.clock = clock;
    this.#engine = createEngine({
      poll: POLL,
      random: seededRandom(1),
      log: quietLog,
      ...options,
      store: memory({ clock }),
      clock,
      on: (event: EngineEvent) => {
        this.#stillness.saw(event);
        options.on?.(event);
      },
    });
    this.#stillness = new Stillness(() => this.#engine.stats(), msOf(patience));
    this.inbox = inboxOf(this.#engine.inbox);
  }

  handle(...registration: Parameters<Engine['handle']>): this {
    this.#engine.handle(...registration);
    return this;
  }

  async submit(
    to: Elsewhere,
    payload: unknown,
    options: SubmitOptions & { tx?: TransactionClient | undefined } = {},
  ): Promise<Submitted> {
    const result = await this.#engine.submit(to, payload, options);
    const { tx: _, ...rest } = options;
    this.#submissions.add(to, payload, rest, result);
    return result;
  }

  async submitMany(tasks: readonly Submission[], options?: { tx?: TransactionClient | undefined }) {
    const results = await this.#engine.submitMany(tasks, options);
    for (const [i, result] of results.entries()) {
      if (result.status === 'rejected') continue;
      const { to, payload, ...rest } = tasks[i]!;
      this.#submissions.add(to, payload, rest, result);
    }
    return results;
  }

  async advance(duration: Duration): Promise<void> {
    const endAt = this.#time.monotonic() + msOf(duration);
    await this.#engine.start();
    await this.#still();
    for (let step = 0; ; step++) {
      const leftMs = endAt - this.#time.monotonic();
      const nextInMs = Math.min(leftMs, this.#time.nextInMs);
      if (step > MAX_STEPS) throw new Error(`${MAX_STEPS} timers fired without an end.`);
      await this.#time.move(nextInMs);
      await this.#still();
      if (nextInMs === leftMs && this.#time.nextInMs > 0) return;
    }
  }

  async drain(): Promise<void> {
    await this.#engine.start();
    const running = await this.#still();
    if (running.length === 0) return;
    throw new Error(
      `Still running: ${running.join(', ')}. If that waits for time to pass, use advance(); if it is only slow, raise the option patience.`,
    );
  }

  /** Time moves as far as the engine waits for what runs. */
  async stop(): Promise<void> {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    const stopped = this.#engine.stop();
    stopped.then(end, end);
    for (;;) {
      await this.#still();
      if (isOver || this.#time.nextInMs === Infinity) return stopped;
      await this.#time.move(this.#time.nextInMs);
    }
  }

  /** What still runs when nothing more happens at this moment. */
  async #still(): Promise<string[]> {
    try {
      return await this.#stillness.reached();
    } catch (error) {
      // It would go on for ever behind the back of the test.
      void this.#engine.stop();
      throw error;
    }
  }

  submitted(to?: string): SubmittedTask[] {
    return this.#submissions.of(to);
  }

  expectSubmitted(to: string, wanted?: unknown): SubmittedTask {
    return this.#submissions.expect(to, wanted);
  }

  expectNotSubmitted(to: string, wanted?: unknown): void {
    this.#submissions.expectNot(to, wanted);
  }

  start: Engine['start'] = () => this.#engine.start();
  faultsOf: Engine['faultsOf'] = (submission) => this.#engine.faultsOf(submission);
  report: Engine['report'] = (failures) => this.#engine.report(failures);
  consume: Engine['consume'] = (source) => this.#engine.consume(source);
  cancel: Engine['cancel'] = (...args) => this.#engine.cancel(...args);
  expedite: Engine['expedite'] = (...args) => this.#engine.expedite(...args);
  succeeded: Engine['succeeded'] = (...args) => this.#engine.succeeded(...args);
  get: Engine['get'] = (id, to) => this.#engine.get(id, to);
  list: Engine['list'] = (query) => this.#engine.list(query);
  lanes: Engine['lanes'] = (query) => this.#engine.lanes(query);
  laneCounts: Engine['laneCounts'] = () => this.#engine.laneCounts();
  pause: Engine['pause'] = (lane, by) => this.#engine.pause(lane, by);
  resume: Engine['resume'] = (lane, by) => this.#engine.resume(lane, by);
  watchLane: Engine['watchLane'] = (lane, watched) => this.#engine.watchLane(lane, watched);
  census: Engine['census'] = () => this.#engine.census();
  auditEvents: Engine['auditEvents'] = (query) => this.#engine.auditEvents(query);
  stats: Engine['stats'] = () => this.#engine.stats();
}

function inboxOf(inbox: Engine['inbox']): TestInbox<Record<string, unknown>> {
  const open = async (of?: string): Promise<TestInboxItem[]> => {
    const lane = of === undefined ? {} : { lane: `handler:${of}` };
    const items = (await inbox.items({ state: 'open', limit: MAX_ITEMS, ...lane })).items;
    return items.toReversed().map((item) => ({ ...item, payload: read(item.payload) }));
  };
  const methods = Object.fromEntries(inboxMethods.map((name) => [name, inbox[name].bind(inbox)]));
  return Object.assign(open, methods as unknown as EngineInbox);
}

const inboxMethods = [
  'item',
  'items',
  'attempts',
  'groups',
  'annotate',
  'replay',
  'edit',
  'resolve',
  'discard',
  'restore',
  'erase',
  'preview',
  'replayAll',
  'resolveAll',
  'discardAll',
  'job',
  'jobs',
  'members',
  'pauseJob',
  'resumeJob',
  'cancelJob',
] as const satisfies readonly (keyof EngineInbox)[];

/** As a handler would get it; bytes that are no JSON as they are. */
function read(payload: Uint8Array): unknown {
  if (payload.length === 0) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(payload)) as unknown;
  } catch {
    return payload;
  }
}

function msOf(duration: Duration): number {
  const ms = durationMs(duration);
  if (!Number.isNaN(ms)) return ms;
  throw new ConfigError(
    'INVALID_DURATION',
    `${String(duration)} is not a duration. Write ms as a number, or a text such as '2s' or '1h'.`,
  );
}

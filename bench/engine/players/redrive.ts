import {
  type AuditSink,
  createEngine,
  type Engine,
  type EngineOptions,
  type Store,
  type SubmitOptions,
} from '@redrive/engine';
import {
  BATCHES_AT_ONCE,
  batchesOf,
  dueTimes,
  type Player,
  timed,
  type Work,
  workOf,
} from '../player.ts';
import { Tally, until } from '../tally.ts';

/** More than the ten that a lane has by itself: what a user sets whose handlers are as quick as this one. */
export const CONCURRENCY = 1000;

export type Tasks = Record<string, Work>;

/** The trail into the store's own table: none, what a user gets who turns it on, or also an event for all that worked. */
export type AuditTrail = 'off' | 'on' | 'successes';

export interface RedriveOptions {
  storeAt: (place: string) => Store;
  audit: AuditTrail;
}

export class RedrivePlayer implements Player {
  readonly #options: RedriveOptions;
  #place = '';
  #engine: Engine<Tasks> | undefined;
  #written = 0;

  constructor(options: RedriveOptions) {
    this.#options = options;
  }

  async open(place: string): Promise<void> {
    this.#place = place;
    const store = this.storeHere();
    await store.open();
    await store.close();
  }

  async schedule(tasks: number): Promise<number> {
    return this.submit('work', tasks, () => ({}));
  }

  async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    const engine = await this.create();
    engine.handle('work', { concurrency: CONCURRENCY }, (payload: Work) => tally.did(payload));
    await engine.start();
    return this.finish(engine, tally, this.#options.audit === 'successes' ? tasks : 0);
  }

  async drift(tasks: number, spanMs: number): Promise<number[]> {
    const tally = new Tally(tasks);
    const engine = await this.create();
    engine.handle('work', { concurrency: CONCURRENCY }, (payload: Work) => tally.did(payload));
    await engine.start();
    const dueAt = dueTimes(tasks, spanMs);
    for (const batch of batchesOf(tasks, (n) => workOf(n, dueAt(n)))) {
      await engine.submitMany(
        batch.map((payload) => ({ to: 'work', payload, dueAt: payload.dueAtMs })),
      );
    }
    await tally.all;
    await until(() => engine.stats().held === 0);
    if (tally.lateMs.some((ms) => ms < 0)) throw new Error('a task was started before it was due');
    return tally.lateMs;
  }

  async close(): Promise<void> {
    await this.#engine?.stop();
    this.#engine = undefined;
  }

  protected get audit(): AuditTrail {
    return this.#options.audit;
  }

  protected storeHere(): Store {
    return this.#options.storeAt(this.#place);
  }

  /** The ms until all is done, the last of it durable, and so many events of the trail are safe too. */
  protected async finish(engine: Engine<Tasks>, tally: Tally, events: number): Promise<number> {
    await tally.all;
    // Nothing is held any more when the last settlement is committed.
    await until(
      () => engine.stats().held === 0 && this.#written + engine.stats().auditDropped >= events,
    );
    const tookMs = tally.elapsedMs;
    const { auditDropped } = engine.stats();
    if (auditDropped > 0) throw new Error(`${auditDropped} events of the audit were dropped`);
    return tookMs;
  }

  /** Stores tasks through an engine that delivers nothing. */
  protected async submit(
    to: string,
    tasks: number,
    optionsOf: (n: number) => SubmitOptions,
    batchesAtOnce = BATCHES_AT_ONCE,
  ): Promise<number> {
    const engine = await this.create();
    // Without one it would say, rightly, that nobody here delivers these.
    engine.handle(to, () => undefined);
    const batches = batchesOf(tasks, (n) => ({ to, payload: workOf(n), ...optionsOf(n) }));
    // Nothing to store, but the store is open then.
    await engine.submitMany([]);
    return timed(batches, (some) => engine.submitMany(some), batchesAtOnce);
  }

  protected async create(options: Partial<EngineOptions> = {}): Promise<Engine<Tasks>> {
    await this.close();
    const store = this.storeHere();
    this.#written = 0;
    const sink: AuditSink = {
      write: async (events) => {
        await store.audit?.write(events);
        this.#written += events.length;
      },
    };
    const { audit } = this.#options;
    const trail = audit === 'off' ? {} : { audit: { sink, successes: audit === 'successes' } };
    this.#engine = createEngine<Tasks>({ store, ...trail, ...options });
    return this.#engine;
  }
}

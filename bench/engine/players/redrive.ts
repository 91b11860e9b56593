import {
  type AuditSink,
  createEngine,
  type Engine,
  type EngineOptions,
  type Store,
} from '@redrive/engine';
import { batchesOf, dueTimes, type Player, timed, type Work, workOf } from '../player.ts';
import { Tally, until } from '../tally.ts';

/** More than the ten that a lane has by itself: what a user sets whose handlers are as quick as this one. */
export const CONCURRENCY = 1000;

type Tasks = Record<string, Work>;

export interface RedriveOptions {
  storeAt: (place: string) => Store;
  /** The trail of decisions into the store's own table. */
  audit: boolean;
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
    return this.submit('work', tasks, () => undefined);
  }

  async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    const engine = await this.create();
    engine.handle('work', { concurrency: CONCURRENCY }, (payload: Work) => tally.did(payload));
    await engine.start();
    await tally.all;
    // Nothing is held any more when the last settlement is committed. The trail must be safe too.
    const events = this.#options.audit ? tasks : 0;
    await until(
      () => engine.stats().held === 0 && this.#written + engine.stats().auditDropped >= events,
    );
    const tookMs = tally.elapsedMs;
    const { auditDropped } = engine.stats();
    if (auditDropped > 0) throw new Error(`${auditDropped} events of the audit were dropped`);
    return tookMs;
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

  protected storeHere(): Store {
    return this.#options.storeAt(this.#place);
  }

  /** Stores tasks through an engine that delivers nothing. */
  protected async submit(
    to: string,
    tasks: number,
    dueAt: (n: number) => number | undefined,
  ): Promise<number> {
    const engine = await this.create();
    // Without one it would say, rightly, that nobody here delivers these.
    engine.handle(to, () => undefined);
    const batches = batchesOf(tasks, (n) => {
      const due = dueAt(n);
      return { to, payload: workOf(n), ...(due === undefined ? {} : { dueAt: due }) };
    });
    // Nothing to store, but the store is open then.
    await engine.submitMany([]);
    return timed(batches, (some) => engine.submitMany(some));
  }

  protected async create(options: Partial<EngineOptions> = {}): Promise<Engine<Tasks>> {
    await this.close();
    const store = this.storeHere();
    this.#written = 0;
    const audit: AuditSink = {
      write: async (events) => {
        await store.audit?.write(events);
        this.#written += events.length;
      },
    };
    const trail = this.#options.audit ? { audit } : {};
    this.#engine = createEngine<Tasks>({ store, ...trail, ...options });
    return this.#engine;
  }
}

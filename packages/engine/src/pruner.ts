import type { Executor } from './dispatch/executor.ts';
import type { Host } from './host.ts';
import type { Lanes } from './lanes/lanes.ts';
import { pause } from './patience.ts';
import type { PruneRequest, Schedule } from './ports/schedule.ts';

const STEP = 1000;
/** Rests between steps, so that live work always goes first. */
const REST_MS = 50;
const MAX_STEPS = 1000;
const EXPIRED_STEP = 100;

interface PrunerSettings {
  retention: PruneRequest['olderThanMs'];
  leaseMs: number;
  everyMs: number;
  /** Deletes old events of the audit trail, at most so many; answers how many. */
  pruneAudit?: (limit: number) => Promise<number>;
  /** Deletes expired records of idempotent handlers, at most so many; answers how many. */
  pruneKeys?: (limit: number) => Promise<number>;
  /** Deletes documents of lanes that say nothing, at most so many; answers how many. */
  pruneLanes?: (limit: number) => Promise<number>;
  /** One round of what is to be done in the inbox. */
  keepInbox?: (until: AbortSignal) => Promise<void>;
}

/** Housekeeping: tasks past their expiry in lanes that nobody serves, and finished ones past their retention. */
export class Pruner {
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #lanes: Lanes;
  readonly #executor: Executor;
  readonly #settings: PrunerSettings;
  readonly #ending = new AbortController();
  #work: Promise<void> | undefined;

  constructor(
    schedule: Schedule,
    host: Host,
    lanes: Lanes,
    executor: Executor,
    settings: PrunerSettings,
  ) {
    this.#schedule = schedule;
    this.#host = host;
    this.#lanes = lanes;
    this.#executor = executor;
    this.#settings = settings;
  }

  start(): void {
    this.#work ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#work;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      await pause(this.#host, this.#settings.everyMs, signal);
      try {
        await this.#expire();
        await this.#prune((limit) => {
          return this.#schedule.prune({ olderThanMs: this.#settings.retention, limit });
        });
        const { pruneAudit, pruneKeys, pruneLanes, keepInbox } = this.#settings;
        if (pruneAudit) await this.#prune(pruneAudit);
        if (pruneKeys) await this.#prune(pruneKeys);
        if (pruneLanes) await this.#prune(pruneLanes);
        await keepInbox?.(signal);
      } catch (error) {
        this.#host.log.warn({ err: error }, 'housekeeping failed, trying again');
      }
    }
  }

  async #expire(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const sentAt = this.#host.clock.monotonic();
      const { tasks, nowMs } = await this.#schedule.claim({
        from: { kind: 'expired', limit: EXPIRED_STEP },
        lease: Math.floor(this.#host.random() * 2 ** 52) + 1,
        leaseMs: this.#settings.leaseMs,
        maxBytes: 8 * 1024 * 1024,
      });
      this.#lanes.sawTime(nowMs, sentAt);
      await Promise.all(tasks.map((task) => this.#executor.refuse(task, 'EXPIRED')));
      if (tasks.length < EXPIRED_STEP) return;
    }
  }

  async #prune(some: (limit: number) => Promise<number>): Promise<void> {
    for (let step = 0; step < MAX_STEPS && !this.#ending.signal.aborted; step++) {
      if ((await some(STEP)) < STEP) return;
      await pause(this.#host, REST_MS, this.#ending.signal);
    }
  }
}

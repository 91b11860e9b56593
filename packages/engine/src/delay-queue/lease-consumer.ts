import { delayFor, type Policy } from 'redrive';
import type { Host } from '../host.ts';
import { within } from '../patience.ts';
import type { DelayConsumer, DelayHandler, DelayLimits } from '../ports/delay-queue.ts';
import { Batch } from './batch.ts';
import { type FullLimits, readLimits } from './checks.ts';
import type { Leased, LeaseSource, Taken } from './lease-source.ts';

/** Between two tries to take entries from a server that is in trouble. */
const takePauses: Policy = { base: '50ms', cap: '5s', jitter: 'equal' };

const STOPPED = 'The consumer was stopped.';

/** The loop of a consumer: takes what is due while a batch more may be under way, and sleeps until there is more. */
export class LeaseConsumer<L extends Leased> implements DelayConsumer {
  readonly #source: LeaseSource<L>;
  readonly #handler: DelayHandler;
  readonly #limits: FullLimits;
  readonly #host: Host;
  readonly #batches = new Set<Batch<L>>();
  readonly #unwatch: () => void;
  readonly #loop: Promise<void>;
  /** By the monotonic clock: when there may be something to take. */
  #nextAtMs = 0;
  #failures = 0;
  #trouble: string | undefined;
  #wake: () => void = () => undefined;
  #isStopped = false;
  #stopping: Promise<void> | undefined;

  constructor(source: LeaseSource<L>, handler: DelayHandler, limits: DelayLimits, host: Host) {
    this.#source = source;
    this.#handler = handler;
    this.#limits = readLimits(limits);
    this.#host = host;
    this.#unwatch = source.watch((inMs) => this.#lookIn(inMs));
    this.#loop = this.#run();
  }

  get trouble(): string | undefined {
    return this.#trouble;
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    this.#isStopped = true;
    this.#unwatch();
    this.#wake();
    await this.#loop;
    const all = Promise.all([...this.#batches].map(({ over }) => over));
    if (await within(this.#host, this.#limits.stopTimeoutMs, all)) return;
    this.#host.log.warn(
      { batches: this.#batches.size, stopTimeoutMs: this.#limits.stopTimeoutMs },
      'handlers of delayed entries did not end in time; their entries are given back',
    );
    await Promise.all([...this.#batches].map((batch) => batch.giveUp(STOPPED)));
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const isFull = this.#batches.size >= this.#limits.concurrency;
      const waitMs = isFull ? Infinity : this.#nextAtMs - this.#host.clock.monotonic();
      if (waitMs > 0) await this.#sleep(waitMs);
      else await this.#take();
    }
  }

  async #take(): Promise<void> {
    const askedAtMs = this.#host.clock.monotonic();
    // Whoever wakes during the call sets it again.
    this.#nextAtMs = Infinity;
    let taken: Taken<L>;
    try {
      taken = await this.#source.take(this.#limits.maxBatch);
      if (this.#failures > 0) this.#host.log.info({}, 'delayed entries can be taken again');
      this.#failures = 0;
      this.#trouble = undefined;
    } catch (error) {
      this.#failures += 1;
      this.#trouble = error instanceof Error ? error.message : String(error);
      const facts = { attempt: this.#failures, random: this.#host.random() };
      const delayMs = delayFor(takePauses, facts);
      // Once in an outage: whoever wants to know how it stands asks for `trouble`.
      const level = this.#failures === 1 ? 'warn' : 'debug';
      this.#host.log[level]({ err: error, delayMs }, 'taking delayed entries failed, trying again');
      this.#nextAtMs = this.#host.clock.monotonic() + delayMs;
      return;
    }
    this.#lookIn(taken.nextInMs);
    if (taken.leased.length > 0) await this.#start(taken.leased, askedAtMs);
  }

  async #start(leased: readonly L[], askedAtMs: number): Promise<void> {
    if (this.#isStopped) {
      const ends = leased.map(() => ({ type: 'released' }) as const);
      await this.#source.end(leased, ends).catch((error: unknown) => {
        this.#host.log.warn(
          { err: error, count: leased.length },
          'giving delayed entries back failed',
        );
      });
      return;
    }
    const { timeoutMs } = this.#limits;
    const work = { handler: this.#handler, timeoutMs };
    const batch = new Batch(this.#source, { leased, askedAtMs }, work, this.#host);
    this.#batches.add(batch);
    void batch.over.then(() => {
      this.#batches.delete(batch);
      this.#wake();
    });
  }

  #lookIn(inMs: number): void {
    const atMs = this.#host.clock.monotonic() + inMs;
    if (atMs >= this.#nextAtMs) return;
    this.#nextAtMs = atMs;
    this.#wake();
  }

  #sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = ms === Infinity ? undefined : this.#host.clock.setTimer(() => this.#wake(), ms);
    this.#wake = () => {
      this.#host.clock.clearTimer(timer);
      this.#wake = () => undefined;
      resolve();
    };
    return promise;
  }
}

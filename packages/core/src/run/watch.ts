import { type Abortable, listen, unlisten } from './abort-hub.ts';
import type { AttemptContext } from './attempt.ts';
import type { Clock } from '../clock.ts';
import { dispose } from './dispose.ts';
import type { Runtime } from './runtime.ts';
import { systemClock } from '../system.ts';

/** How an attempt ended: by itself, or by time or an abort before that. */
export type Ending<T> =
  | { kind: 'result'; result: T }
  | { kind: 'error'; error: unknown; byDeadline?: boolean }
  | { kind: 'timeout' | 'aborted' };

/**
 * How many microtasks an attempt may take to hand over a result that it has while it is aborted. An async function that
 * returns right after the abort needs two; each async function around it adds up to three.
 */
const GRACE_MICROTASKS = 16;

/** What may end an attempt or a wait before its time: the caller's signal, a parent's, a timer. */
export class Watch implements Abortable {
  /** Told of an abort first, and not any more once its work is done. */
  underWay: AttemptContext | undefined;
  readonly #clock: Clock;
  readonly #unref: boolean | undefined;
  readonly #own: AbortSignal | undefined;
  readonly #parent: AbortSignal | undefined;
  /** Ends what is being waited for, if something is. */
  #resolve: ((ending: Ending<unknown>) => void) | undefined;
  #timer: unknown;
  /** Whether what is waited for may bring a result. */
  #hasWork = false;

  constructor(runtime: Runtime<never>) {
    this.#clock = runtime.clock ?? systemClock;
    this.#unref = runtime.unref;
    this.#own = runtime.signal;
    this.#parent = runtime.parent?.signal;
    if (this.#own) listen(this.#own, this);
    if (this.#parent) listen(this.#parent, this);
  }

  /** The signal that was aborted, if one was. */
  get aborted(): AbortSignal | undefined {
    return this.#own?.aborted ? this.#own : this.#parent?.aborted ? this.#parent : undefined;
  }

  /** Until the work is done, the time is over or somebody aborts. What the work brings later is disposed of. */
  until<T>(ms: number, work?: Promise<T>, onTimeout?: () => Ending<T>): Promise<Ending<T>> {
    return new Promise((resolve) => {
      const end = resolve as (ending: Ending<unknown>) => void;
      this.#resolve = end;
      this.#hasWork = work !== undefined;
      if (ms < Infinity) {
        const onTime = () => {
          this.#timer = undefined;
          this.#end(onTimeout?.() ?? { kind: 'timeout' });
        };
        this.#timer = this.#clock.setTimer(onTime, ms, this.#unref);
      }
      if (this.aborted) this.#endByAbort();
      // Another `resolve` by then: this work was given up, and what comes of it is late.
      work?.then(
        (result) =>
          this.#resolve === end ? this.#end({ kind: 'result', result }) : dispose(result),
        (error: unknown) =>
          this.#resolve === end && !this.aborted
            ? this.#end({ kind: 'error', error })
            : dispose(error),
      );
    });
  }

  #end(ending: Ending<unknown>): void {
    const resolve = this.#resolve;
    this.#resolve = this.underWay = undefined;
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    resolve?.(ending);
  }

  onAbort(): void {
    const { underWay } = this;
    this.underWay = undefined;
    underWay?.abort(this.aborted?.reason);
    this.#endByAbort();
  }

  /** A wait ends at once. Work that has its result already, but whose promise has not said so yet, keeps it. */
  #endByAbort(): void {
    const resolve = this.#resolve;
    if (!resolve) return;
    let turns = this.#hasWork ? GRACE_MICROTASKS : 0;
    const turn = () => {
      if (this.#resolve !== resolve) return;
      if (turns-- === 0) this.#end({ kind: 'aborted' });
      else queueMicrotask(turn);
    };
    turn();
  }

  close(): void {
    if (this.#own) unlisten(this.#own, this);
    if (this.#parent) unlisten(this.#parent, this);
  }
}

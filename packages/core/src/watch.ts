import type { AttemptContext } from './attempt.ts';
import type { Clock } from './clock.ts';
import { dispose } from './dispose.ts';
import type { Runtime } from './runtime.ts';
import { systemClock } from './system.ts';

/** How an attempt ended: by itself, or by time or an abort before that. */
export type Ending<T> =
  | { kind: 'result'; result: T }
  | { kind: 'error'; error: unknown; byDeadline?: boolean }
  | { kind: 'timeout' | 'aborted' };

/** What may end an attempt or a wait before its time: the caller's signal, a parent's, a timer. */
export class Watch {
  /** Told of an abort first, and not any more once its work is done. */
  underWay: AttemptContext | undefined;
  readonly #clock: Clock;
  readonly #unref: boolean | undefined;
  readonly #own: AbortSignal | undefined;
  readonly #parent: AbortSignal | undefined;
  #interrupt: (() => void) | undefined;

  constructor(runtime: Runtime<never>) {
    this.#clock = runtime.clock ?? systemClock;
    this.#unref = runtime.unref;
    this.#own = runtime.signal;
    this.#parent = runtime.parent?.signal;
    this.#own?.addEventListener('abort', this);
    this.#parent?.addEventListener('abort', this);
  }

  /** The signal that was aborted, if one was. */
  get aborted(): AbortSignal | undefined {
    return this.#own?.aborted ? this.#own : this.#parent?.aborted ? this.#parent : undefined;
  }

  /** Until the work is done, the time is over or somebody aborts. What the work brings later is disposed of. */
  until<T>(ms: number, work?: Promise<T>): Promise<Ending<T>> {
    return new Promise((resolve) => {
      let isOver = false;
      let timer: unknown;
      const end = (ending: Ending<T>) => {
        if (isOver) return;
        isOver = true;
        this.underWay = undefined;
        if (timer !== undefined) this.#clock.clearTimer(timer);
        resolve(ending);
      };
      const onTime = () => {
        timer = undefined;
        end({ kind: 'timeout' });
      };
      if (ms < Infinity) timer = this.#clock.setTimer(onTime, ms, this.#unref);
      this.#interrupt = () => end({ kind: 'aborted' });
      if (this.aborted) this.#interrupt();
      work?.then(
        (result) => (isOver ? dispose(result) : end({ kind: 'result', result })),
        (error: unknown) => (isOver ? dispose(error) : end({ kind: 'error', error })),
      );
    });
  }

  /** The signals call this. */
  handleEvent(): void {
    this.underWay?.abort(this.aborted?.reason);
    this.#interrupt?.();
  }

  close(): void {
    this.#interrupt = undefined;
    this.#own?.removeEventListener('abort', this);
    this.#parent?.removeEventListener('abort', this);
  }
}

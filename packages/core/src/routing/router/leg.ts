import { AttemptContext } from '../../run/attempt.ts';
import { dispose } from '../../run/dispose.ts';
import { examine } from '../../failure/evidence.ts';
import type { Failure } from '../../failure/failure.ts';
import { isThenable } from '../../run/notify.ts';
import type { Attempt, Runtime } from '../../run/runtime.ts';
import { reportFault } from '../../system.ts';
import { type Ending, Watch } from '../../run/watch.ts';
import { scalarText } from '../read-document.ts';
import { statusOfFailure } from './failure-status.ts';
import type { ProviderState } from './provider-health.ts';
import { type RouteAttemptRecord, RouteError } from './route-error.ts';
import type { RouterSettings } from './router-options.ts';
import { type Chunk, StreamGuard } from './stream-guard.ts';

/** What a provider function gets besides its input. */
export interface RouteAttempt extends Attempt {
  /** The name under which it was called. */
  readonly provider: string;
}

class RouteAttemptContext extends AttemptContext implements RouteAttempt {
  readonly provider: string;

  constructor(provider: string, attempt: number, maxAttempts: number, runtime: Runtime<never>) {
    super(attempt, maxAttempts, runtime);
    this.provider = provider;
  }
}

/** How a call of a provider ended. */
export type LegEnd =
  | { kind: 'value'; value: unknown; guard?: StreamGuard }
  | {
      kind: 'failed';
      status: string;
      error: unknown;
      failure: Failure;
      byDeadline?: boolean;
      refused?: unknown;
    }
  | { kind: 'aborted' };

/** What the attempts of one call share. */
export interface LegOwner {
  readonly settings: RouterSettings;
  readonly input: unknown;
  readonly runtime: Runtime<never>;
  /** By the monotonic clock: when the call of the router began, and when it must be over. */
  readonly startedAt: number;
  readonly deadlineAt: number;
  /** Told when a value has arrived for good; for a stream, when it has ended well. */
  succeeded(provider: string): void;
  /** Told of an attempt that failed before it had a value or a stream to hand over. */
  failed(record: RouteAttemptRecord): void;
}

/** One call of a provider: its time limit, its end, and what is recorded about it. */
export class Leg {
  readonly provider: string;
  readonly record: RouteAttemptRecord;
  readonly done: Promise<LegEnd>;
  readonly #owner: LegOwner;
  readonly #settings: RouterSettings;
  readonly #state: ProviderState;
  readonly #ticket: number;
  readonly #startedAt: number;
  readonly #context: RouteAttemptContext;
  readonly #watch: Watch | undefined;
  /** Aborted to end this leg alone, where another may run beside it. */
  readonly #rival: AttemptContext | undefined;
  #guard: StreamGuard | undefined;
  #verdict: { status: string | undefined } | undefined;
  #isSettled = false;

  /** `ticket` is what `state` gave for this attempt; `now` is the monotonic clock's time. */
  constructor(
    owner: LegOwner,
    record: RouteAttemptRecord,
    state: ProviderState,
    ticket: number,
    now: number,
  ) {
    const { settings, runtime, deadlineAt } = owner;
    const { provider, attempt } = record;
    this.provider = provider;
    this.record = record;
    this.#owner = owner;
    this.#settings = settings;
    this.#state = state;
    this.#ticket = ticket;
    this.#startedAt = now;
    this.#context = new RouteAttemptContext(provider, attempt, settings.maxAttempts, runtime);
    this.#context.endsAt = Math.min(now + settings.timeoutMs, deadlineAt);
    if (settings.hedgeAfterMs !== undefined) this.#rival = new AttemptContext(1, 1, undefined);
    const isWatched = this.#context.endsAt < Infinity || runtime.signal || this.#rival;
    if (isWatched || settings.stream) {
      this.#watch = new Watch(this.#rival ? { ...runtime, parent: this.#rival } : runtime);
    }
    this.done = this.#run();
  }

  /** Another one has answered. What this one brings later is disposed of. */
  abandon(): void {
    this.#rival?.abort(new DOMException('Another provider answered first.', 'AbortError'));
  }

  async #run(): Promise<LegEnd> {
    const { provider } = this;
    const { input } = this.#owner;
    let end: LegEnd;
    let work: unknown;
    try {
      work = this.#settings.providers.get(provider)?.(input, this.#context);
      // Nothing to watch: the work is awaited as it is.
      if (!this.#watch) work = await work;
      end =
        this.#watch && (isThenable(work) || this.#settings.stream)
          ? this.#ended(await this.#watched(Promise.resolve(work), this.#watch))
          : this.#judge(work);
    } catch (error) {
      end = this.#failed(error);
    }
    this.#settle(end);
    return end;
  }

  #watched(work: Promise<unknown>, watch: Watch): Promise<Ending<unknown>> {
    const opened = this.#settings.stream ? work.then((value) => this.#openStream(value)) : work;
    watch.underWay = this.#context;
    return watch.until(this.#context.remainingMs, opened, () => this.#timeOut());
  }

  #ended(ending: Ending<unknown>): LegEnd {
    if (ending.kind === 'result') return this.#judge(ending.result);
    if (ending.kind === 'error') {
      const end = this.#failed(ending.error);
      if (ending.byDeadline && end.kind === 'failed') end.byDeadline = true;
      return end;
    }
    this.#guard?.cancel(undefined);
    return { kind: 'aborted' };
  }

  #timeOut(): { kind: 'error'; error: unknown; byDeadline: boolean } {
    const { endsAt } = this.#context;
    const timeoutMs = Math.round(endsAt - this.#startedAt);
    const message = `${this.provider} took longer than ${timeoutMs} ms.`;
    const error = new DOMException(message, 'TimeoutError');
    this.#context.abort(error);
    this.#guard?.cancel(error);
    return { kind: 'error', error, byDeadline: endsAt === this.#owner.deadlineAt };
  }

  /** The guard of a stream, once its first content is here; any other value as it is. */
  #openStream(value: unknown): unknown {
    // A value that is a failure is not a stream to be read.
    if (this.#refusal(value) !== undefined) return value;
    const { stream = {} } = this.#settings;
    const guard = StreamGuard.of(
      value,
      stream,
      () => new RouteError('STREAM_CUT', { attempts: [] }),
    );
    if (!guard) return value;
    this.#guard = guard;
    return guard.open().then(() => guard);
  }

  #judge(value: unknown): LegEnd {
    if (value instanceof StreamGuard) return { kind: 'value', value: undefined, guard: value };
    const status = this.#refusal(value);
    if (status === undefined) return { kind: 'value', value };
    const failure = { code: 'RESULT', ...examine(Object(value), this.#settings.clock) };
    return { kind: 'failed', status, error: undefined, failure, refused: value };
  }

  /** The caller's verdict on the value, asked for once. */
  #refusal(value: unknown): string | undefined {
    const { refuse } = this.#settings;
    if (!refuse) return undefined;
    this.#verdict ??= { status: scalarText(refuse(value)) };
    return this.#verdict.status;
  }

  #failed(error: unknown): LegEnd {
    const failure = examine(error, this.#settings.clock);
    const status = this.#named(error, failure) ?? statusOfFailure(failure);
    return { kind: 'failed', status, error, failure };
  }

  /** The caller's word for the error. A function that throws has none. */
  #named(error: unknown, failure: Failure): string | undefined {
    try {
      return scalarText(this.#settings.statusOf?.(error, failure));
    } catch (fault) {
      reportFault('statusOf failed', fault);
      return undefined;
    }
  }

  #settle(end: LegEnd): void {
    if (end.kind === 'value' && end.guard) {
      this.#handOver(end.guard);
      return;
    }
    this.#watch?.close();
    const state = this.#state;
    const ticket = this.#ticket;
    const durationMs = this.#elapsed();
    this.#isSettled = true;
    switch (end.kind) {
      case 'value':
        state.succeeded(ticket, durationMs);
        this.#owner.succeeded(this.provider);
        return;
      case 'failed':
        this.record.outcome = 'failed';
        this.record.status = end.status;
        this.record.error = end.error;
        state.failed(ticket, durationMs, end.status, end.failure);
        state.cool(end.status, end.failure.retryAfterMs, this.#settings.maxCooldownMs);
        this.#owner.failed(this.record);
        return;
      case 'aborted':
        this.record.outcome = 'abandoned';
        state.released(ticket);
    }
  }

  /** The consumer reads it now. Its end, not its beginning, says how the provider did. */
  #handOver(guard: StreamGuard): void {
    const state = this.#state;
    const ticket = this.#ticket;
    const { streamIdleMs } = this.#settings;
    const watch = this.#watch;
    this.#elapsed();
    guard.pull = (next) => this.#pull(next, streamIdleMs);
    guard.onEnd = (end) => {
      if (this.#isSettled) return;
      this.#isSettled = true;
      watch?.close();
      const durationMs = this.#elapsed();
      if (end.kind === 'cancelled') state.released(ticket);
      else if (end.kind === 'complete') {
        state.succeeded(ticket, durationMs);
        this.#owner.succeeded(this.provider);
      } else if (this.#owner.runtime.signal?.aborted) state.released(ticket);
      else {
        const failure = examine(end.error, this.#settings.clock);
        this.record.outcome = 'failed';
        this.record.status = statusOfFailure(failure);
        this.record.error = end.error;
        state.failed(ticket, durationMs, this.record.status, failure);
      }
    };
  }

  /** One chunk, with the limit on silence and the caller's signal. */
  async #pull(next: () => Promise<Chunk>, idleMs: number): Promise<Chunk> {
    const watch = this.#watch;
    if (!watch) return next();
    watch.underWay = this.#context;
    const ending = await watch.until(idleMs, next(), () => {
      const message = `The stream of ${this.provider} was silent for ${idleMs} ms.`;
      const error = new DOMException(message, 'TimeoutError');
      this.#context.abort(error);
      return { kind: 'error', error };
    });
    if (ending.kind === 'result') return ending.result;
    throw ending.kind === 'error' ? ending.error : watch.aborted?.reason;
  }

  #elapsed(): number {
    const durationMs = this.#settings.clock.monotonic() - this.#startedAt;
    this.record.durationMs = durationMs;
    return durationMs;
  }
}

/** Frees a value that was refused, or that arrived for nobody. */
export function discard(end: LegEnd): void {
  if (end.kind === 'failed') dispose(end.refused ?? end.error);
  else if (end.kind === 'value') {
    if (end.guard) end.guard.abandon();
    else dispose(end.value);
  }
}

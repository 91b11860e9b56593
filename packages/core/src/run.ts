import { AttemptContext, processSeed } from './attempt.ts';
import { classify } from './classify.ts';
import type { Clock } from './clock.ts';
import { type Decision, decide, type Facts, type GiveUp } from './decide.ts';
import { dispose } from './dispose.ts';
import { type AttemptRecord, RetryError } from './errors.ts';
import { explain } from './explain.ts';
import type { Failure } from './failure.ts';
import { isThenable, notify } from './notify.ts';
import type { DefinedPolicy } from './policy.ts';
import type { Attempt, Listener, RetryEvent, Runtime } from './runtime.ts';
import { systemClock } from './system.ts';

const MAX_HISTORY = 50;

/** Waits of nothing go through the microtask queue, but now and then the event loop must turn. */
const MAX_MICROTASKS = 16;

/** A timer may fire a moment before its time: so little is left of an opening that was waited for. */
const EARLY_TIMER_MS = 5;

const circuitOpen: Failure = {
  class: 'transient',
  code: 'CIRCUIT_OPEN',
  message: 'The circuit breaker is open.',
  notExecuted: true,
  counted: false,
};

const aborted: Failure = { class: 'technical', code: 'ABORT_ERR', message: 'The caller aborted.' };

const noTime: Failure = { class: 'transient', code: 'TIMEOUT', notExecuted: true };

/**
 * One call with its attempts, waits and limits, as a small state machine: an attempt is running, or a wait is, or
 * it is over. Whatever arrives for a state that is past (a late result, a timer) changes nothing.
 */
export class Run<T> {
  readonly #fn: (attempt: Attempt) => T;
  readonly #policy: DefinedPolicy;
  readonly #runtime: Runtime<Awaited<T>>;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #deadlineAt: number;
  readonly #history: AttemptRecord[] = [];
  #resolve!: (result: Awaited<T>) => void;
  #reject!: (error: unknown) => void;
  #first: AttemptContext | undefined;
  /** The attempt that is running, if one is. */
  #running: AttemptContext | undefined;
  #timer: unknown;
  #over = false;
  #attempt = 1;
  #executions = 0;
  #uncounted = 0;
  #microtasks = 0;
  #previousMs: number | undefined;
  #lastFailure: Failure = aborted;
  #ticket: number | undefined;
  #waitedForOpening = -1;

  constructor(
    fn: (attempt: Attempt) => T,
    policy: DefinedPolicy,
    runtime: Runtime<Awaited<T>> | undefined = {},
  ) {
    this.#fn = fn;
    this.#policy = policy;
    this.#runtime = runtime;
    this.#clock = runtime.clock ?? systemClock;
    const limitMs = Math.min(policy.deadline ?? Infinity, runtime.parent?.remainingMs ?? Infinity);
    this.#startedAt = limitMs === Infinity ? 0 : this.#clock.monotonic();
    this.#deadlineAt = this.#startedAt + limitMs;
  }

  begin(): Promise<Awaited<T>> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#runtime.signal?.addEventListener('abort', this);
      this.#runtime.parent?.signal.addEventListener('abort', this);
      this.#guarded(() => this.#start());
    });
  }

  /** Takes over from the fast path, whose first attempt has failed. */
  resume(first: AttemptContext, error: unknown): Promise<Awaited<T>> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#first = this.#running = first;
      this.#executions = 1;
      this.#failed(first, error);
    });
  }

  /** The caller's signal, or the parent attempt's. */
  handleEvent(): void {
    if (this.#over) return;
    const reason = this.#abortReason();
    const running = this.#running;
    this.#guarded(() => {
      const facts = this.#facts(running ? aborted : this.#lastFailure);
      facts.aborted = true;
      this.#settle(reason, facts);
    });
    // Last: who listens to the attempt's signal may abort others, and so come back here.
    running?.abort(reason);
  }

  #start(): void {
    const { signal, parent, breaker } = this.#runtime;
    if (signal?.aborted || parent?.signal.aborted) return this.handleEvent();
    const limited = this.#policy.attemptTimeout !== undefined || this.#deadlineAt !== Infinity;
    const now = limited ? this.#clock.monotonic() : 0;
    if (now >= this.#deadlineAt) return this.#expired();
    this.#ticket = breaker?.admit();
    if (breaker && this.#ticket === undefined)
      return this.#refused(breaker.waitMs, breaker.openings);

    // Under a parent that retries, its numbers hold, so that calls further in leave the retrying to it too.
    const retrying = this.#retryingParent;
    const context = new AttemptContext(
      retrying?.attempt ?? this.#attempt,
      retrying?.maxAttempts ?? this.#policy.maxAttempts,
      this.#runtime,
      this.#first,
    );
    this.#first ??= context;
    this.#running = context;
    if (limited) this.#limit(context, now);
    if (this.#listener('attempt')) this.#emit({ type: 'attempt', ...this.#about() });
    // The listener may have aborted.
    if (this.#over) return;
    this.#executions += 1;
    let result;
    try {
      result = this.#fn(context);
    } catch (error) {
      return this.#failed(context, error);
    }
    if (isThenable(result)) {
      // Not its own `then`: only a promise's answers once, later, and with a value that is no thenable.
      Promise.resolve(result).then(
        (value) => this.#returned(context, value as Awaited<T>),
        (error: unknown) => this.#failed(context, error),
      );
    } else this.#returned(context, result as Awaited<T>);
  }

  /** Sets the timer that ends the attempt, by its own timeout or by the deadline. */
  #limit(context: AttemptContext, now: number): void {
    const leftMs = this.#deadlineAt - now;
    const timeoutMs = Math.min(this.#policy.attemptTimeout ?? Infinity, leftMs);
    context.endsAt = now + timeoutMs;
    this.#setTimer(timeoutMs, () => {
      const byDeadline = timeoutMs === leftMs;
      const what = byDeadline
        ? 'The deadline passed during'
        : `After ${timeoutMs} ms a timeout ended`;
      const error = new DOMException(`${what} attempt ${context.attempt}.`, 'TimeoutError');
      context.abort(error);
      this.#failed(context, error, byDeadline);
    });
  }

  #returned(context: AttemptContext, result: Awaited<T>): void {
    if (context !== this.#running) return dispose(result);
    this.#guarded(() => {
      const { retryIf, budget } = this.#runtime;
      const refused = retryIf?.({ result, attempt: this.#attempt }) === true;
      if (context !== this.#running) return dispose(result);
      if (refused) return this.#refusedResult(result);
      this.#leaveAttempt('succeeded');
      budget?.success();
      this.#finish();
      if (this.#listener('success')) {
        this.#emit({ type: 'success', ...this.#about(), attempts: this.#executions });
      }
      this.#resolve(result);
    }, result);
  }

  #failed(context: AttemptContext, error: unknown, deadlinePassed = false): void {
    if (context !== this.#running) return;
    this.#guarded(() => {
      const failure = this.#classify(error);
      const facts = this.#facts(failure);
      const verdict = this.#runtime.retryIf?.({ error, attempt: this.#attempt });
      // A callback of the caller's may have aborted.
      if (context !== this.#running) return;
      if (typeof verdict === 'boolean') facts.retryable = verdict;
      if (deadlinePassed) facts.remainingMs = 0;
      this.#leaveAttempt(failure);
      this.#settle(error, facts);
    });
  }

  /** A result that the caller does not accept is a failure too. */
  #refusedResult(result: Awaited<T>): void {
    const failure: Failure = isResponse(result)
      ? classify(result, { nowMs: this.#clock.now() })
      : { class: 'unknown', code: 'RESULT' };
    const facts = this.#facts(failure);
    facts.retryable = true;
    this.#leaveAttempt(failure);
    this.#settle(undefined, facts, { result });
  }

  /** The breaker let nothing through. That is no execution and costs no attempt. */
  #refused(waitMs: number, opening: number): void {
    const facts = this.#facts(circuitOpen);
    const waited = this.#waitedForOpening === opening && waitMs > EARLY_TIMER_MS;
    facts.circuit = { waitMs, waited };
    if (waitMs > 0) this.#waitedForOpening = opening;
    this.#settle(this.#history.at(-1)?.error, facts);
  }

  /** No time is left to start in: a timer fired late, or the parent had used it up. */
  #expired(): void {
    const facts = this.#facts(this.#executions > 0 ? this.#lastFailure : noTime);
    const decision = decide(this.#policy, facts) as GiveUp;
    this.#giveUp(this.#history.at(-1)?.error, facts, decision);
  }

  /** Decides, and does what was decided. */
  #settle(error: unknown, facts: Facts, refused?: { result: unknown }): void {
    const { failure } = facts;
    const decision = this.#decide(facts);
    if (!facts.circuit && !facts.aborted) this.#remember(error, failure, decision);
    if (decision.action === 'giveUp') return this.#giveUp(error, facts, decision, refused);

    if (refused) dispose(refused.result);
    this.#previousMs = decision.delayMs;
    this.#lastFailure = failure;
    if (decision.nextAttempt === this.#attempt) this.#uncounted += 1;
    if (this.#listener('wait')) {
      const { delayMs } = decision;
      this.#emit({ type: 'wait', ...this.#about(), delayMs, error, facts, decision });
      if (this.#over) return;
    }
    this.#attempt = decision.nextAttempt;
    this.#wait(decision.delayMs);
  }

  #decide(facts: Facts): Decision {
    // Retrying is left to the parent, or three attempts inside three would be nine.
    if (this.#retryingParent && !facts.aborted) {
      const { attempt, failure, circuit } = facts;
      const reason = circuit ? 'CIRCUIT_OPEN' : 'EXHAUSTED';
      const retryAfterMs = Math.ceil(circuit?.waitMs ?? failure.retryAfterMs ?? 0);
      const decision: GiveUp = { action: 'giveUp', reason, attempt, maxAttempts: 1, failure };
      return retryAfterMs > 0 ? { ...decision, retryAfterMs } : decision;
    }
    const decision = decide(this.#policy, facts);
    if (decision.action === 'giveUp' || facts.circuit) return decision;
    if (this.#runtime.budget?.spend(facts.failure) !== false) return decision;
    facts.budgetExhausted = true;
    return decide(this.#policy, facts);
  }

  #giveUp(error: unknown, facts: Facts, decision: GiveUp, refused?: { result: unknown }): void {
    this.#finish();
    const asItIs =
      decision.reason === 'PERMANENT'
        ? this.#executions === 1
        : this.#retryingParent && this.#executions > 0 && !facts.aborted && !refused;
    let thrown = error;
    if (!asItIs) {
      const { message } = facts.failure;
      const text = message === undefined || facts.aborted ? '' : ` Last error: ${message}`;
      thrown = new RetryError(explain(decision) + text, decision, {
        attempts: this.#executions,
        history: this.#history,
        cause: error,
        ...refused,
      });
    }
    if (this.#listener('giveUp')) {
      this.#emit({ type: 'giveUp', ...this.#about(), error: thrown, facts, decision });
    }
    this.#reject(thrown);
  }

  #wait(delayMs: number): void {
    const next = () => {
      if (!this.#over) this.#guarded(() => this.#start());
    };
    if (delayMs > 0 || ++this.#microtasks % MAX_MICROTASKS === 0) this.#setTimer(delayMs, next);
    else queueMicrotask(next);
  }

  #setTimer(ms: number, callback: () => void): void {
    this.#timer = this.#clock.setTimer(
      () => {
        this.#timer = undefined;
        callback();
      },
      ms,
      this.#runtime.unref,
    );
  }

  /** Its timer goes, and the breaker gets its ticket back, with what the attempt says about the other side. */
  #leaveAttempt(outcome?: Failure | 'succeeded'): void {
    this.#running = undefined;
    this.#clearTimer();
    const { breaker } = this.#runtime;
    const ticket = this.#ticket;
    if (!breaker || ticket === undefined) return;
    this.#ticket = undefined;
    if (outcome === undefined) breaker.released(ticket);
    else if (outcome === 'succeeded') breaker.succeeded(ticket);
    else breaker.failed(ticket, outcome);
  }

  #clearTimer(): void {
    if (this.#timer === undefined) return;
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #finish(): void {
    this.#over = true;
    this.#leaveAttempt();
    this.#runtime.signal?.removeEventListener('abort', this);
    this.#runtime.parent?.signal.removeEventListener('abort', this);
  }

  /** A callback of the caller's that throws ends the call with its error; it must not leave it hanging. */
  #guarded(step: () => void, result?: unknown): void {
    try {
      step();
    } catch (error) {
      this.#reject(error);
      this.#finish();
      dispose(result);
    }
  }

  get #retryingParent(): Attempt | undefined {
    const { parent } = this.#runtime;
    return parent && parent.maxAttempts > 1 ? parent : undefined;
  }

  #abortReason(): unknown {
    const { signal, parent } = this.#runtime;
    return signal?.aborted ? signal.reason : parent?.signal.reason;
  }

  #classify(error: unknown): Failure {
    const failure = classify(error, { nowMs: this.#clock.now() });
    const opinion = this.#runtime.classify?.(error);
    if (opinion === undefined) return failure;
    return { ...failure, ...(typeof opinion === 'string' ? { class: opinion } : opinion) };
  }

  #facts(failure: Failure): Facts {
    const facts: Facts = { attempt: this.#attempt, failure, seed: processSeed(), key: this.#key };
    if (this.#runtime.random) facts.random = this.#runtime.random();
    if (this.#previousMs !== undefined) facts.previousMs = this.#previousMs;
    if (this.#uncounted > 0) facts.uncounted = this.#uncounted;
    if (this.#deadlineAt !== Infinity) {
      const now = this.#clock.monotonic();
      facts.elapsedMs = now - this.#startedAt;
      facts.remainingMs = Math.max(0, this.#deadlineAt - now);
    }
    return facts;
  }

  #remember(error: unknown, failure: Failure, decision: Decision): void {
    const record: AttemptRecord = { attempt: this.#attempt, error, failure };
    if (decision.action === 'retry') record.delayMs = decision.delayMs;
    if (this.#history.push(record) > MAX_HISTORY) this.#history.shift();
  }

  get #key(): string {
    this.#first ??= new AttemptContext(1, 1, this.#runtime);
    return this.#first.idempotencyKey;
  }

  #about(): { key: string; seed: number; attempt: number } {
    return { key: this.#key, seed: processSeed(), attempt: this.#attempt };
  }

  #listener(type: RetryEvent['type']): Listener | undefined {
    const { on } = this.#runtime;
    return typeof on === 'function' ? on : (on?.[type] as Listener | undefined);
  }

  #emit(event: RetryEvent): void {
    notify('a retry listener', this.#listener(event.type) as Listener, event);
  }
}

function isResponse(value: unknown): boolean {
  const { status, headers } = Object(value) as Partial<Response>;
  return typeof status === 'number' && typeof headers === 'object';
}

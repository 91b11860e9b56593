import { AttemptContext, processSeed } from './attempt.ts';
import type { BulkheadPlace } from '../limits/bulkhead.ts';
import type { Clock } from '../clock.ts';
import { type Chance, type Decision, decideOn, type Facts, giveUp } from '../decide.ts';
import { dispose } from './dispose.ts';
import { type AttemptRecord, RetryError } from '../errors.ts';
import type { Failure } from '../failure/failure.ts';
import { isThenable, notify } from './notify.ts';
import type { CompletePolicy } from '../policy/policy.ts';
import type { Attempt, BeforeRetry, Listener, Opinion, RetryEvent, Runtime } from './runtime.ts';
import { systemClock } from '../system.ts';
import { type Ending, Watch } from './watch.ts';

const MAX_HISTORY = 50;

/** A wait of nothing is none, but now and then the event loop must turn. */
const MAX_AT_ONCE = 16;

/** A timer may fire a moment before its time: so little is left of an opening that was waited for. */
const EARLY_TIMER_MS = 5;

const circuitOpen: Failure = {
  class: 'transient',
  code: 'CIRCUIT_OPEN',
  notExecuted: true,
  counted: false,
};
const bulkheadFull: Failure = { ...circuitOpen, code: 'BULKHEAD_FULL' };
const aborted: Failure = { class: 'technical', code: 'ABORT_ERR' };
const noTime: Failure = { class: 'transient', code: 'TIMEOUT', notExecuted: true };

/**
 * Why there was no attempt: the bulkhead was full, the breaker refused it, `beforeRetry` failed, or it was too late
 * (aborted, or no time left).
 */
type NotStarted =
  | { kind: 'refused'; waitMs: number; opening: number }
  | { kind: 'unprepared'; error: unknown }
  | { kind: 'full' | 'late' };

const unanswered = Symbol('unanswered');

/** An attempt under way. */
interface Started<T> {
  kind: 'started';
  context: AttemptContext;
  startedAt: number;
  work: PromiseLike<T>;
}

/** What the loop is handed, so that a bundle can go without classification and derived random numbers. */
export interface Kit {
  /** Turns what was thrown, or a result that was refused, into a failure. Never throws. */
  examine(thrown: unknown, clock: Clock): Failure;
  chance: Chance;
}

/**
 * One call with its attempts, waits and limits: call, fail, decide, wait, call. `begun` is the first attempt, where
 * the fast path has made it and it has failed.
 */
export async function run<T>(
  fn: (attempt: Attempt) => T,
  policy: CompletePolicy,
  kit: Kit,
  runtime: Runtime<Awaited<T>> = {},
  begun?: { context: AttemptContext; error: unknown },
): Promise<Awaited<T>> {
  const { signal, parent, breaker, bulkhead, budget, beforeRetry, clock = systemClock } = runtime;
  const retryIf =
    typeof runtime.retryIf === 'function' ? { error: runtime.retryIf } : runtime.retryIf;
  const { attemptTimeout = Infinity, deadline = Infinity } = policy;
  const limitMs = Math.min(deadline, parent?.remainingMs ?? Infinity);
  const isLimited = Math.min(limitMs, attemptTimeout) < Infinity;
  const startedAt = isLimited ? clock.monotonic() : 0;
  const deadlineAt = startedAt + limitMs;
  // Retrying is left to a parent that retries, or three attempts inside three would be nine.
  const leader = parent && parent.maxAttempts > 1 ? parent : undefined;
  const history: AttemptRecord[] = [];
  let first = begun?.context;
  let running = first;
  let executions = begun ? 1 : 0;
  let attempt = 1;
  let uncounted = 0;
  let waitsOfNothing = 0;
  let previousMs: number | undefined;
  let lastFailure: Failure | undefined;
  let ticket: number | undefined;
  let place: BulkheadPlace | undefined;
  let waitedForOpening: number | undefined;
  /** A result that nobody has got yet. */
  let held: unknown;
  let now = startedAt;
  /** The deadline passed while a callback was awaited. */
  let overdue = false;

  const watch = isLimited || signal || parent ? new Watch(runtime) : undefined;
  try {
    for (;;) {
      let ending: Ending<Awaited<T>> | NotStarted;
      if (begun) ending = { kind: 'error', error: begun.error };
      else {
        let next = bulkhead ? await enter() : admit();
        if (beforeRetry && executions > 0 && next instanceof AttemptContext)
          next = await prepare(next);
        const started = next instanceof AttemptContext ? start(next) : next;
        if (started.kind !== 'started') ending = started;
        else if (watch) ending = await finish(started, watch);
        else ending = await Promise.resolve(started.work).then(asResult, asError);
      }
      begun = undefined;
      if (watch) watch.underWay = undefined;
      let error = history.at(-1)?.error;
      let failure = lastFailure ?? noTime;
      let verdict: boolean | undefined;
      if (ending.kind === 'result') {
        const { result } = ending;
        held = result;
        let answer: unknown = retryIf?.result?.(result, attempt);
        if (isThenable(answer)) answer = await answerTo(answer);
        // A result that is accepted is returned, also where an abort came at the same time.
        if (answer !== true && answer !== unanswered) {
          held = undefined;
          giveBack('succeeded');
          budget?.success();
          tell('success', { attempts: executions });
          return result;
        }
        verdict = true;
        error = undefined;
        failure = kit.examine(Object(result), clock);
        failure.code ??= 'RESULT';
      } else if (ending.kind === 'error') {
        error = ending.error;
        failure = kit.examine(error, clock);
        let answer: unknown = runtime.classify?.(error);
        if (isThenable(answer)) answer = await answerTo(answer);
        if (answer !== unanswered) {
          if (answer) failure = { ...failure, ...asParts(answer) };
          answer = retryIf?.error?.(error, attempt);
          if (isThenable(answer)) answer = await answerTo(answer);
        }
        if (typeof answer === 'boolean') verdict = answer;
      } else if (ending.kind === 'unprepared') error = ending.error;
      else if (ending.kind === 'refused') failure = circuitOpen;
      else if (ending.kind === 'full') failure = { ...bulkheadFull, message: bulkhead!.toString() };

      // Also one that a callback above has made.
      const abort = watch?.aborted;
      if (abort) {
        error = abort.reason;
        failure = running ? aborted : (lastFailure ?? aborted);
      }
      const facts = factsAbout(failure, ending);
      if (abort) facts.aborted = true;
      if (ending.kind === 'unprepared') facts.beforeRetryFailed = true;
      if (ending.kind === 'full') facts.bulkheadFull = true;
      if (verdict !== undefined) facts.retryable = verdict;
      // A result that is not wanted yet is an answer all the same.
      const isAnswer = ending.kind === 'result' && failure.code === 'RESULT';
      giveBack(abort || !running ? undefined : isAnswer ? 'succeeded' : failure);
      const decision = decideAbout(facts);
      if (running && !abort) {
        const record: AttemptRecord = { attempt, error, failure };
        if (decision.action === 'retry') record.delayMs = decision.delayMs;
        if (history.push(record) > MAX_HISTORY) history.shift();
      }
      running = undefined;

      if (decision.action === 'giveUp') {
        let thrown = error;
        const refused = ending.kind === 'result' && !abort;
        const asItIs =
          decision.reason === 'PERMANENT'
            ? executions === 1 && !refused
            : leader && executions > 0 && !abort && !refused;
        if (!asItIs) {
          const details = { attempts: executions, history, cause: error };
          thrown = new RetryError(decision, refused ? { ...details, result: held } : details);
        }
        if (refused) held = undefined;
        // The caller gets the reason of the abort instead: what was thrown may be a Response.
        if (abort && ending.kind === 'error') dispose(ending.error);
        tell('giveUp', { error: thrown, facts, decision });
        throw thrown;
      }

      // A Response may also have been thrown.
      dispose(ending.kind === 'error' ? error : held);
      held = undefined;
      const { delayMs } = decision;
      tell('wait', { delayMs, error, facts, decision });
      // A server's wish or a breaker's time is no step of the decorrelated walk.
      if (decision.reason === 'BACKOFF') previousMs = delayMs;
      lastFailure = failure;
      if (decision.nextAttempt === attempt) uncounted += 1;
      attempt = decision.nextAttempt;
      if (delayMs > 0 || ++waitsOfNothing % MAX_AT_ONCE === 0) await pause(delayMs);
    }
  } finally {
    giveBack();
    dispose(held);
    watch?.close();
  }

  /** The next attempt once the bulkhead has a place for it, unless its queue is full too. */
  async function enter(): Promise<NotStarted | AttemptContext> {
    place = bulkhead?.enter();
    if (!place) return { kind: isLate() ? 'late' : 'full' };
    if (place.turn) await answerTo(place.turn);
    return overdue ? { kind: 'late' } : admit();
  }

  /** The next attempt, unless it is too late or the breaker refuses it. */
  function admit(): NotStarted | AttemptContext {
    if (isLate()) return { kind: 'late' };
    ticket = breaker?.admit();
    if (breaker && ticket === undefined) {
      return { kind: 'refused', waitMs: breaker.waitMs, opening: breaker.openings };
    }
    // Under a leader its numbers hold, so that calls further in leave the retrying to it too.
    const { maxAttempts } = leader ?? policy;
    const context = new AttemptContext(leader?.attempt ?? attempt, maxAttempts, runtime, first);
    first ??= context;
    context.endsAt = deadlineAt;
    return context;
  }

  function isLate(): boolean {
    if (isLimited) now = clock.monotonic();
    return watch?.aborted !== undefined || now >= deadlineAt;
  }

  /** Has `beforeRetry` prepare an attempt. */
  async function prepare(context: AttemptContext): Promise<NotStarted | AttemptContext> {
    const { error, failure } = history.at(-1)!;
    const info: BeforeRetry = {
      attempt: context.attempt,
      maxAttempts: context.maxAttempts,
      error,
      failure,
      signal: context.signal,
      remainingMs: context.remainingMs,
      idempotencyKey: context.idempotencyKey,
    };
    try {
      const work = beforeRetry?.(info);
      if (isThenable(work)) await answerTo(work, context);
    } catch (reason) {
      return { kind: 'unprepared', error: reason };
    }
    return overdue || isLate() ? { kind: 'late' } : context;
  }

  function start(context: AttemptContext): Ending<Awaited<T>> | NotStarted | Started<Awaited<T>> {
    running = context;
    if (watch) watch.underWay = context;
    context.endsAt = Math.min(now + attemptTimeout, deadlineAt);
    tell('attempt');
    if (watch?.aborted) return { kind: 'late' };
    executions += 1;
    try {
      const work = fn(context);
      return isThenable(work)
        ? { kind: 'started', context, startedAt: now, work: work as PromiseLike<Awaited<T>> }
        : { kind: 'result', result: work as Awaited<T> };
    } catch (error) {
      return { kind: 'error', error };
    }
  }

  /** The answer of an async callback, or `unanswered` where an abort or the deadline came first. A rejection is thrown. */
  async function answerTo(work: PromiseLike<unknown>, context = running): Promise<unknown> {
    if (!watch) return work;
    // What is done on behalf of the attempt is aborted with it: the body of its response, perhaps.
    watch.underWay = context;
    const leftMs = Math.max(0, deadlineAt - clock.monotonic());
    const ending = await watch.until(leftMs, Promise.resolve(work), () => {
      overdue = true;
      context?.abort(new DOMException('The deadline passed.', 'TimeoutError'));
      return { kind: 'timeout' };
    });
    if (ending.kind === 'error') throw ending.error;
    return ending.kind === 'result' ? ending.result : unanswered;
  }

  /** The end of an attempt that a timeout, the deadline or the caller may end before it ends by itself. */
  function finish(
    { context, work, startedAt: since }: Started<Awaited<T>>,
    watching: Watch,
  ): Promise<Ending<Awaited<T>>> {
    // Not its own `then`: only a promise's answers once, later, and with a value that is no thenable.
    // What is left by now: the function may have taken a while before it returned its promise.
    return watching.until(context.remainingMs, Promise.resolve(work), () => {
      const timeoutMs = Math.round(context.endsAt - since);
      const message = `Attempt ${context.attempt} took longer than ${timeoutMs} ms.`;
      const error = new DOMException(message, 'TimeoutError');
      context.abort(error);
      return { kind: 'error', error, byDeadline: context.endsAt === deadlineAt };
    });
  }

  function pause(ms: number): Promise<unknown> {
    if (watch) return watch.until(ms);
    return new Promise<void>((resolve) => {
      clock.setTimer(resolve, ms, runtime.unref);
    });
  }

  /** The bulkhead gets its place back, and the breaker its ticket, with what the attempt says about the other side. */
  function giveBack(outcome?: Failure | 'succeeded'): void {
    const mine = ticket;
    place?.leave();
    ticket = place = undefined;
    if (!breaker || mine === undefined) return;
    if (outcome === undefined) breaker.released(mine);
    else if (outcome === 'succeeded') breaker.succeeded(mine);
    else breaker.failed(mine, outcome);
  }

  function factsAbout(failure: Failure, ending: Ending<unknown> | NotStarted): Facts {
    const facts: Facts = { attempt, failure, seed: processSeed(), key: key() };
    if (runtime.random) facts.random = runtime.random();
    if (previousMs !== undefined) facts.previousMs = previousMs;
    if (uncounted > 0) facts.uncounted = uncounted;
    if (limitMs < Infinity) {
      now = clock.monotonic();
      facts.elapsedMs = now - startedAt;
      // A timer may fire a moment early: the deadline has passed all the same.
      const isOver = overdue || (ending.kind === 'error' && ending.byDeadline);
      facts.remainingMs = isOver ? 0 : Math.max(0, deadlineAt - now);
    }
    if (ending.kind === 'refused') {
      const { waitMs, opening } = ending;
      // Held open by hand: waiting would be for ever.
      const isHeld = waitMs === Infinity;
      const hasWaited = waitedForOpening === opening && waitMs > EARLY_TIMER_MS;
      facts.circuit = { waitMs: isHeld ? 0 : waitMs, waited: isHeld || hasWaited };
      if (waitMs > 0) waitedForOpening = opening;
    }
    return facts;
  }

  function decideAbout(facts: Facts): Decision {
    const { failure, circuit } = facts;
    if (leader && !facts.aborted && (circuit || executions > 0)) {
      return giveUp(
        circuit ? 'CIRCUIT_OPEN' : 'EXHAUSTED',
        attempt,
        1,
        failure,
        circuit?.waitMs ?? failure.retryAfterMs,
      );
    }
    const decision = decideOn(policy, facts, kit.chance);
    if (decision.action === 'giveUp' || circuit || budget?.spend(failure) !== false)
      return decision;
    facts.budgetExhausted = true;
    return decideOn(policy, facts, kit.chance);
  }

  function key(): string {
    first ??= new AttemptContext(1, 1, runtime);
    return first.callKey;
  }

  function tell(type: RetryEvent['type'], details?: object): void {
    const { on } = runtime;
    const listener = typeof on === 'function' ? on : (on?.[type] as Listener | undefined);
    if (!listener) return;
    const event = Object.assign({ type, key: key(), seed: processSeed(), attempt }, details);
    notify('a retry listener', listener, event as RetryEvent);
  }
}

function asParts(opinion: Opinion): Partial<Failure> {
  return typeof opinion === 'string' ? { class: opinion } : opinion;
}

// Handlers instead of a `try`: a rejection that is thrown into an async function costs a good deal more.
function asResult<T>(result: T): Ending<T> {
  return { kind: 'result', result };
}

function asError(error: unknown): Ending<never> {
  return { kind: 'error', error };
}

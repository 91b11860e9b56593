import { AttemptContext, processSeed } from './attempt.ts';
import { type Decision, decide, type Facts, giveUp } from './decide.ts';
import { dispose } from './dispose.ts';
import { type AttemptRecord, RetryError } from './errors.ts';
import { examine } from './evidence.ts';
import type { Failure } from './failure.ts';
import { isThenable, notify } from './notify.ts';
import type { DefinedPolicy } from './policy.ts';
import type { Attempt, BeforeRetry, Listener, Opinion, RetryEvent, Runtime } from './runtime.ts';
import { systemClock } from './system.ts';
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
const aborted: Failure = { class: 'technical', code: 'ABORT_ERR' };
const noTime: Failure = { class: 'transient', code: 'TIMEOUT', notExecuted: true };

/** Why there was no attempt: the breaker refused it, `beforeRetry` failed, or it was too late (aborted, or no time left). */
type NotStarted =
  | { kind: 'refused'; waitMs: number; opening: number }
  | { kind: 'unprepared'; error: unknown }
  | { kind: 'late' };

const unanswered = Symbol('unanswered');

/** An attempt under way. */
interface Started<T> {
  kind: 'started';
  context: AttemptContext;
  startedAt: number;
  work: PromiseLike<T>;
}

/**
 * One call with its attempts, waits and limits: call, fail, decide, wait, call. `begun` is the first attempt, where
 * the fast path has made it and it has failed.
 */
export async function run<T>(
  fn: (attempt: Attempt) => T,
  policy: DefinedPolicy,
  runtime: Runtime<Awaited<T>> = {},
  begun?: { context: AttemptContext; error: unknown },
): Promise<Awaited<T>> {
  const { signal, parent, breaker, budget, beforeRetry, clock = systemClock } = runtime;
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
        let next = admit();
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
        failure = { code: 'RESULT', ...examine(Object(result), clock) };
      } else if (ending.kind === 'error') {
        error = ending.error;
        failure = examine(error, clock);
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

      // Also one that a callback above has made.
      const abort = watch?.aborted;
      if (abort) {
        error = abort.reason;
        failure = running ? aborted : (lastFailure ?? aborted);
      }
      const facts = factsAbout(failure, ending);
      if (abort) facts.aborted = true;
      if (ending.kind === 'unprepared') facts.beforeRetryFailed = true;
      if (verdict !== undefined) facts.retryable = verdict;
      // A result that is not wanted yet is an answer all the same.
      const isAnswer = ending.kind === 'result' && failure.code === 'RESULT';
      giveBack(abort || !running ? undefined : isAnswer ? 'succeeded' : failure);
      const decision = decideOn(facts);
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
    const { attempt: number, maxAttempts, signal: own, remainingMs, idempotencyKey } = context;
    const info: BeforeRetry = {
      attempt: number,
      maxAttempts,
      error,
      failure,
      signal: own,
      remainingMs,
      idempotencyKey,
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
    const leftMs = deadlineAt - clock.monotonic();
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

  /** The breaker gets its ticket back, with what the attempt says about the other side. */
  function giveBack(outcome?: Failure | 'succeeded'): void {
    const mine = ticket;
    ticket = undefined;
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
      facts.circuit = { waitMs, waited: waitedForOpening === opening && waitMs > EARLY_TIMER_MS };
      if (waitMs > 0) waitedForOpening = opening;
    }
    return facts;
  }

  function decideOn(facts: Facts): Decision {
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
    const decision = decide(policy, facts);
    if (decision.action === 'giveUp' || circuit || budget?.spend(failure) !== false)
      return decision;
    facts.budgetExhausted = true;
    return decide(policy, facts);
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

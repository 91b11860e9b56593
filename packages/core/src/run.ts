import { AttemptContext, processSeed } from './attempt.ts';
import { type Decision, decide, type Facts, giveUp } from './decide.ts';
import { dispose } from './dispose.ts';
import { type AttemptRecord, RetryError } from './errors.ts';
import { examine } from './evidence.ts';
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
  notExecuted: true,
  counted: false,
};
const aborted: Failure = { class: 'technical', code: 'ABORT_ERR' };
const noTime: Failure = { class: 'transient', code: 'TIMEOUT', notExecuted: true };

/** How an attempt ended, or why there was none: the breaker refused it, or it was too late (aborted, no time left). */
type Ending<T> =
  | { kind: 'result'; result: T }
  | { kind: 'error'; error: unknown; byDeadline?: boolean }
  | { kind: 'refused'; waitMs: number; opening: number }
  | { kind: 'timeout' | 'late' };

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
  const { signal, parent, breaker, budget, retryIf, clock = systemClock } = runtime;
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
  let interrupt: (() => void) | undefined;
  /** A result that nobody has got yet. */
  let held: unknown;

  const onAbort = () => interrupt?.();
  signal?.addEventListener('abort', onAbort);
  parent?.signal.addEventListener('abort', onAbort);
  try {
    for (;;) {
      const ending: Ending<Awaited<T>> = begun
        ? { kind: 'error', error: begun.error }
        : await execute();
      begun = undefined;
      let error = history.at(-1)?.error;
      let failure = lastFailure ?? noTime;
      let verdict: boolean | undefined;
      if (ending.kind === 'result') {
        const { result } = ending;
        held = result;
        verdict = retryIf?.({ result, attempt });
        if (verdict !== true && !(retryIf && abortSignal())) {
          held = undefined;
          giveBack('succeeded');
          budget?.success();
          tell('success', { attempts: executions });
          return result;
        }
        error = undefined;
        failure = { code: 'RESULT', ...examine(Object(result), clock.now()) };
      } else if (ending.kind === 'error') {
        error = ending.error;
        failure = classifyError(error);
        verdict = retryIf?.({ error, attempt });
      } else if (ending.kind === 'refused') failure = circuitOpen;

      // Also one that a callback above has made.
      const abort = abortSignal();
      if (abort) {
        error = abort.reason;
        failure = running ? aborted : (lastFailure ?? aborted);
        running?.abort(error);
      }
      const facts = factsAbout(failure, ending);
      if (abort) facts.aborted = true;
      if (typeof verdict === 'boolean') facts.retryable = verdict;
      giveBack(abort ? undefined : failure);
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
            ? executions === 1
            : leader && executions > 0 && !abort && !refused;
        if (!asItIs) {
          const details = { attempts: executions, history, cause: error };
          thrown = new RetryError(decision, refused ? { ...details, result: held } : details);
        }
        if (refused) held = undefined;
        tell('giveUp', { error: thrown, facts, decision });
        throw thrown;
      }

      dispose(held);
      held = undefined;
      const { delayMs } = decision;
      tell('wait', { delayMs, error, facts, decision });
      // A server's wish or a breaker's time is no step of the decorrelated walk.
      if (decision.reason === 'BACKOFF') previousMs = delayMs;
      lastFailure = failure;
      if (decision.nextAttempt === attempt) uncounted += 1;
      attempt = decision.nextAttempt;
      if (delayMs > 0 || ++waitsOfNothing % MAX_MICROTASKS === 0) await until(delayMs);
      else await Promise.resolve();
    }
  } finally {
    giveBack();
    dispose(held);
    signal?.removeEventListener('abort', onAbort);
    parent?.signal.removeEventListener('abort', onAbort);
  }

  async function execute(): Promise<Ending<Awaited<T>>> {
    const now = isLimited ? clock.monotonic() : 0;
    if (abortSignal() || now >= deadlineAt) return { kind: 'late' };
    ticket = breaker?.admit();
    if (breaker && ticket === undefined) {
      return { kind: 'refused', waitMs: breaker.waitMs, opening: breaker.openings };
    }
    // Under a leader its numbers hold, so that calls further in leave the retrying to it too.
    const { maxAttempts } = leader ?? policy;
    const context = new AttemptContext(leader?.attempt ?? attempt, maxAttempts, runtime, first);
    first ??= context;
    running = context;
    const leftMs = deadlineAt - now;
    const timeoutMs = Math.min(attemptTimeout, leftMs);
    context.endsAt = now + timeoutMs;
    tell('attempt');
    if (abortSignal()) return { kind: 'late' };
    executions += 1;
    let work;
    try {
      work = fn(context);
    } catch (error) {
      return { kind: 'error', error };
    }
    if (!isThenable(work)) return { kind: 'result', result: work as Awaited<T> };
    // Not its own `then`: only a promise's answers once, later, and with a value that is no thenable.
    // What is left by now: the function may have taken a while before it returned its promise.
    const ending = await until(context.remainingMs, Promise.resolve(work) as Promise<Awaited<T>>);
    if (ending.kind !== 'timeout') return ending;
    const message = `Attempt ${context.attempt} took longer than ${Math.round(timeoutMs)} ms.`;
    const error = new DOMException(message, 'TimeoutError');
    context.abort(error);
    return { kind: 'error', error, byDeadline: timeoutMs === leftMs };
  }

  /** Until the work is done, the time is over or the caller aborts. What the work brings later is disposed of. */
  function until(ms: number, work?: Promise<Awaited<T>>): Promise<Ending<Awaited<T>>> {
    return new Promise((resolve) => {
      let isOver = false;
      let timer: unknown;
      const end = (ending: Ending<Awaited<T>>) => {
        if (isOver) return;
        isOver = true;
        if (timer !== undefined) clock.clearTimer(timer);
        resolve(ending);
      };
      const onTime = () => {
        timer = undefined;
        end({ kind: 'timeout' });
      };
      if (ms < Infinity) timer = clock.setTimer(onTime, ms, runtime.unref);
      interrupt = () => end({ kind: 'late' });
      if (abortSignal()) interrupt();
      work?.then(
        (result) => (isOver ? dispose(result) : end({ kind: 'result', result })),
        (error: unknown) => end({ kind: 'error', error }),
      );
    });
  }

  function abortSignal(): AbortSignal | undefined {
    return [signal, parent?.signal].find((each) => each?.aborted);
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

  function classifyError(error: unknown): Failure {
    const opinion = runtime.classify?.(error);
    return {
      ...examine(error, clock.now()),
      ...(typeof opinion === 'string' ? { class: opinion } : opinion),
    };
  }

  function factsAbout(failure: Failure, ending: Ending<unknown>): Facts {
    const facts: Facts = { attempt, failure, seed: processSeed(), key: key() };
    if (runtime.random) facts.random = runtime.random();
    if (previousMs !== undefined) facts.previousMs = previousMs;
    if (uncounted > 0) facts.uncounted = uncounted;
    if (limitMs < Infinity) {
      const now = clock.monotonic();
      facts.elapsedMs = now - startedAt;
      // A timer may fire a moment early: the deadline has passed all the same.
      facts.remainingMs =
        ending.kind === 'error' && ending.byDeadline ? 0 : Math.max(0, deadlineAt - now);
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
    return first.idempotencyKey;
  }

  function tell(type: RetryEvent['type'], details?: object): void {
    const { on } = runtime;
    const listener = typeof on === 'function' ? on : (on?.[type] as Listener | undefined);
    if (!listener) return;
    const event = { type, key: key(), seed: processSeed(), attempt, ...details };
    notify('a retry listener', listener, event as RetryEvent);
  }
}

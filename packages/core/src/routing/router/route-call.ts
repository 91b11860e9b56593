import type { Runtime } from '../../run/runtime.ts';
import { reportFault } from '../../system.ts';
import { Watch } from '../../run/watch.ts';
import type { RouteDecision } from '../decide-route.ts';
import type { RouteContext } from '../route-context.ts';
import { CallSession } from './call-session.ts';
import { Decider, type RouterParts } from './decider.ts';
import { discard, Leg, type LegEnd, type LegOwner } from './leg.ts';
import type { ProviderState } from './provider-health.ts';
import { type RouteAttemptRecord, RouteError, type RouteErrorCode } from './route-error.ts';
import type { RouteResult } from './router.ts';
import type { RouterSettings } from './router-options.ts';

type Chosen = Exclude<RouteDecision, { result: 'error' }>;
type Failed = Extract<LegEnd, { kind: 'failed' }>;

/** One call of a router: decide, wait, call the provider, decide again. */
export class RouteCall implements LegOwner {
  readonly #parts: RouterParts;
  readonly settings: RouterSettings;
  readonly input: unknown;
  readonly #decider: Decider;
  readonly #given: RouteContext;
  readonly runtime: Runtime<never>;
  readonly startedAt: number;
  readonly deadlineAt: number;
  readonly #attempts: RouteAttemptRecord[] = [];
  #session: CallSession | undefined;
  #last: Failed | undefined;
  /** The last failure, while nothing of it has been disposed of. */
  #kept: Failed | undefined;
  #winner: string | undefined;

  constructor(
    parts: RouterParts,
    input: unknown,
    given: RouteContext,
    requestId: string,
    seed: number,
    signal: AbortSignal | undefined,
  ) {
    this.#parts = parts;
    this.input = input;
    this.settings = parts.settings;
    this.#given = given;
    const { clock, unref, deadlineMs, detailLevel } = parts.settings;
    this.#decider = new Decider(parts, given, requestId, seed, detailLevel);
    this.runtime = { clock, unref, signal, key: requestId };
    this.startedAt = clock.monotonic();
    this.deadlineAt = this.startedAt + deadlineMs;
  }

  async run(): Promise<RouteResult<unknown>> {
    const given = this.#given;
    // What is no id is refused by the decision.
    let context: RouteContext = {
      ...given,
      request_id: given.request_id ?? this.#decider.requestId,
    };
    this.#throwIfAborted();
    const { sticky } = this.#parts;
    this.#session = sticky && CallSession.of(sticky, this.settings, given);
    if (this.#session) {
      context = await this.#session.addTo(context, this.runtime);
      this.#throwIfAborted();
    }
    for (;;) {
      const asked = context;
      let decision = this.#decide(asked);
      if (this.#attempts.length >= this.settings.maxAttempts) this.#giveUp('EXHAUSTED', decision);
      let waitedMs = 0;
      if (decision.result === 'retry') {
        decision = this.#orFallback(asked, decision);
        if (decision.result === 'retry') waitedMs = await this.#wait(decision);
      }
      context = decision.context;
      const ticket = this.#parts.states.get(decision.provider)?.admit();
      if (ticket === undefined) {
        this.#decider.refuse(decision.provider);
        if (this.#last) context = { ...context, status: this.#last.status };
        continue;
      }
      const first = this.#start(decision, ticket, waitedMs);
      let leg = first;
      let end: LegEnd;
      if (this.settings.hedgeAfterMs === undefined) end = await first.done;
      else ({ leg, end, context } = await this.#hedged(first, context));
      if (end.kind === 'value') return this.#answer(leg, end);
      if (end.kind === 'aborted') this.#throwIfAborted();
      this.#last = end as Failed;
      this.#kept = this.#last;
      if (this.#last.byDeadline) this.#giveUp('DEADLINE');
      if (!this.#mayRepeat(leg.provider, this.#last)) this.#giveUp('NOT_REPEATED');
      context = this.#afterFailure(context, this.#last);
    }
  }

  /** The decision, or the end of the call. */
  #decide(context: RouteContext): Chosen {
    const { decision, asked } = this.#decider.decide(context);
    if (decision.result !== 'error') return decision;
    const code = decision.error === 'no_providers' ? 'NO_PROVIDERS' : 'NO_FALLBACK';
    return this.#giveUp(code, decision, this.#soonest(asked));
  }

  /** A retry, or the fallback at once where the retry is not possible or not wanted. */
  #orFallback(asked: RouteContext, retry: Extract<Chosen, { result: 'retry' }>): Chosen {
    const { budget, skipWaits, clock, maxRetryAfterMs } = this.settings;
    const waitMs = retry.retryInfo.backoff_ms;
    const isLate = clock.monotonic() + waitMs >= this.deadlineAt;
    const isTooLong = (asked.retry_after_ms ?? 0) > maxRetryAfterMs;
    if (isLate || isTooLong || (skipWaits && waitMs > 0)) {
      const other = this.#decide({ ...asked, skip_retry: true });
      if (other.result !== 'retry') return other;
      if (isLate) this.#giveUp('DEADLINE', other, waitMs);
      if (isTooLong) this.#giveUp('RETRY_AFTER_TOO_LONG', other, waitMs);
    }
    if (budget?.spend(this.#last?.failure) !== false) return retry;
    const other = this.#decide({ ...asked, skip_retry: true });
    return other.result === 'retry' ? this.#giveUp('BUDGET', other) : other;
  }

  async #wait({ retryInfo }: Extract<Chosen, { result: 'retry' }>): Promise<number> {
    const waitMs = retryInfo.backoff_ms;
    if (waitMs > 0) {
      const watch = new Watch(this.runtime);
      await watch.until(waitMs);
      watch.close();
      this.#throwIfAborted();
    }
    return waitMs;
  }

  #start(decision: Chosen, ticket: number, waitedMs: number, isHedge = false): Leg {
    const { provider, explanation } = decision;
    const { on } = this.settings;
    const attempt = this.#attempts.length + 1;
    const state = this.#parts.states.get(provider) as ProviderState;
    // Nothing has been waited for before the first attempt, unless a session was looked up.
    const isFirst = attempt === 1 && this.#session === undefined;
    const startsAt = isFirst ? this.startedAt : this.settings.clock.monotonic();
    if (startsAt >= this.deadlineAt) {
      state.released(ticket);
      this.#giveUp('DEADLINE', decision);
    }
    // What failed is kept until it is sure that it is not the last word.
    if (this.#kept) discard(this.#kept);
    this.#kept = undefined;
    if (on) this.#decider.tell({ type: 'attempt', provider, attempt });
    const record: RouteAttemptRecord = {
      provider,
      attempt,
      startedAtMs: startsAt - this.startedAt,
      durationMs: 0,
      waitedMs,
      outcome: 'ok',
      explanation,
    };
    if (isHedge) record.hedge = true;
    this.#attempts.push(record);
    return new Leg(this, record, state, ticket, startsAt);
  }

  /** The end of an attempt, or of one of two where a hedge was started. */
  async #hedged(
    first: Leg,
    context: RouteContext,
  ): Promise<{ leg: Leg; end: LegEnd; context: RouteContext }> {
    const { hedgeAfterMs = 0 } = this.settings;
    const early = await this.#within(hedgeAfterMs, first.done);
    const hedge = early ? undefined : this.#hedge(context);
    if (!hedge) {
      return { leg: first, end: early ?? (await first.done), context };
    }
    const second = hedge.leg;
    const { leg, end } = await firstAnswer([first, second]);
    const other = leg === first ? second : first;
    if (end.kind === 'value') other.abandon();
    void other.done.then((late) => {
      if (late.kind === 'value') other.record.outcome = 'abandoned';
      discard(late);
    });
    // Both failed: the request goes on from the hedge, as if it had left the first provider.
    return { leg, end, context: hedge.context };
  }

  /** The work's end, or undefined where the time is over first. The work goes on. */
  async #within(ms: number, work: Promise<LegEnd>): Promise<LegEnd | undefined> {
    const { clock, unref } = this.settings;
    return new Promise((resolve) => {
      const timer = clock.setTimer(() => resolve(undefined), ms, unref);
      void work.then((end) => {
        clock.clearTimer(timer);
        resolve(end);
      });
    });
  }

  /** Starts the provider that a timeout of the current one would lead to, where there is one. */
  #hedge(context: RouteContext): { leg: Leg; context: RouteContext } | undefined {
    if (this.#attempts.length >= this.settings.maxAttempts) return undefined;
    if (this.runtime.signal?.aborted) return undefined;
    const { decision } = this.#decider.ask({ ...context, status: 'timeout', skip_retry: true });
    if (decision.result !== 'ok') return undefined;
    const ticket = this.#parts.states.get(decision.provider)?.admit();
    if (ticket === undefined) return undefined;
    const leg = this.#start(decision, ticket, 0, true);
    return { leg, context: decision.context };
  }

  #answer(leg: Leg, end: Extract<LegEnd, { kind: 'value' }>): RouteResult<unknown> {
    const { provider, record } = leg;
    this.#winner ??= provider;
    return {
      value: end.guard ? end.guard.release() : end.value,
      provider,
      explanation: record.explanation,
      attempts: this.#attempts,
      requestId: this.#decider.requestId,
      seed: this.#decider.seed,
    };
  }

  #mayRepeat(provider: string, { status, error, failure, refused }: Failed): boolean {
    const { mayRepeat } = this.settings;
    if (!mayRepeat) return true;
    const { input } = this;
    try {
      return mayRepeat({ input, provider, status, error, failure, refused });
    } catch (fault) {
      // Not knowing is no permission.
      reportFault('mayRepeat failed', fault);
      return false;
    }
  }

  #afterFailure(context: RouteContext, { status, failure }: Failed): RouteContext {
    const next: RouteContext = { ...context, status };
    // Of this failure, or none: the wait of an earlier failure is over.
    if (failure.retryAfterMs !== undefined) next.retry_after_ms = failure.retryAfterMs;
    else if (next.retry_after_ms != null) next.retry_after_ms = null;
    return next;
  }

  succeeded(provider: string): void {
    // The loser of two may have had its answer ready when it was abandoned.
    if ((this.#winner ??= provider) !== provider) return;
    this.settings.budget?.success();
    if (this.settings.on) {
      this.#decider.tell({ type: 'success', provider, attempts: this.#attempts.length });
    }
    this.#session?.write(provider);
  }

  failed(record: RouteAttemptRecord): void {
    if (this.settings.on) this.#decider.tell({ type: 'failure', record });
  }

  #throwIfAborted(): void {
    const { signal } = this.runtime;
    if (signal?.aborted) this.#giveUp('ABORTED', undefined, undefined, signal.reason);
  }

  /** When the first of the providers that are out may be back. */
  #soonest({ open_providers: open }: RouteContext): number | undefined {
    const waits = (open ?? []).map((name) => this.#parts.states.get(name)?.waitMs ?? 0);
    const soonest = Math.min(...waits.filter((ms) => ms > 0));
    return soonest < Infinity ? Math.ceil(soonest) : undefined;
  }

  #giveUp(
    code: RouteErrorCode,
    decision?: RouteDecision,
    retryAfterMs: number | undefined = this.#last?.failure.retryAfterMs,
    cause: unknown = this.#last?.error,
  ): never {
    this.#dropSession();
    const error = new RouteError(code, {
      attempts: this.#attempts,
      explanation: decision?.explanation ?? this.#attempts.at(-1)?.explanation,
      cause,
      retryAfterMs,
      result: this.#kept?.refused,
    });
    if (this.settings.on) this.#decider.tell({ type: 'giveUp', error });
    throw error;
  }

  /** A session whose provider has just failed would lead the next request there again. */
  #dropSession(): void {
    const isStale = this.#attempts.some(
      ({ outcome, explanation }) => outcome === 'failed' && explanation.reason === 'sticky',
    );
    if (isStale) this.#session?.drop();
  }
}

/** The first leg with a value; where all fail, the last of the list. */
function firstAnswer(legs: readonly Leg[]): Promise<{ leg: Leg; end: LegEnd }> {
  return new Promise((resolve) => {
    const ends = new Map<Leg, LegEnd>();
    for (const leg of legs) {
      void leg.done.then((end) => {
        ends.set(leg, end);
        const last = legs.at(-1) as Leg;
        if (end.kind === 'value') resolve({ leg, end });
        else if (ends.size === legs.length) resolve({ leg: last, end: ends.get(last) as LegEnd });
      });
    }
  });
}

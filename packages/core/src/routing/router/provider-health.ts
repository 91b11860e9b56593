import { type Breaker, createBreaker } from '../../circuit/breaker.ts';
import type { Clock } from '../../clock.ts';
import type { Failure } from '../../failure/failure.ts';
import type { RoutingPolicy } from '../routing-policy.ts';
import { countsForBreaker, isRateLimit, isSuccess } from './failure-status.ts';

/** What `router.health()` tells of a provider. Rates and latencies are those of its last 256 calls. */
export interface ProviderHealth {
  /** `cooling`: it asked for a pause. `open`: its breaker is open. */
  state: 'closed' | 'open' | 'half_open' | 'cooling';
  /** Wall time in ms until which it is not called; undefined while it may be called. */
  outUntilMs: number | undefined;
  inFlight: number;
  calls: number;
  failures: number;
  /** 0 to 1. */
  failureRate: number;
  latencyMs: { p50: number; p95: number; p99: number } | undefined;
}

const WINDOW = 256;

/** What a router knows of one provider: breaker, pause, outcomes. */
export class ProviderState {
  readonly #clock: Clock;
  readonly #settings: string;
  readonly #breaker: Breaker | undefined;
  readonly #latencies = new Float64Array(WINDOW);
  readonly #failed = new Uint8Array(WINDOW);
  #cooledUntil = 0;
  #calls = 0;
  #failures = 0;
  #inFlight = 0;
  /** Probes that were given to callers who report: how many, and the ticket they have. */
  #lent = 0;
  #lentTicket = 0;
  #lastTrip: string | undefined;

  constructor({ breaker }: RoutingPolicy, clock: Clock) {
    this.#clock = clock;
    this.#settings = JSON.stringify(breaker);
    if (!breaker.enabled) return;
    this.#breaker = createBreaker({
      failures: breaker.failureThreshold,
      successes: breaker.successThreshold,
      openFor: breaker.timeoutMs,
      probes: breaker.halfOpenMaxCalls,
      trips: () => true,
      clock,
    });
  }

  /** Whether a router with this policy may take the state over. */
  suits({ breaker }: RoutingPolicy, clock: Clock): boolean {
    return this.#settings === JSON.stringify(breaker) && this.#clock === clock;
  }

  get isOpen(): boolean {
    return this.#breaker !== undefined && this.#breaker.state === 'open';
  }

  get isCooling(): boolean {
    return this.#cooledUntil > 0 && this.coolingMs > 0;
  }

  private get coolingMs(): number {
    return Math.max(0, this.#cooledUntil - this.#clock.monotonic());
  }

  /** The status of what keeps calls away from the provider, where something does. */
  get trouble(): string | undefined {
    return this.isCooling && !this.isOpen ? 'rate_limit' : this.#lastTrip;
  }

  /** Ms until the provider may be called. */
  get waitMs(): number {
    return Math.max(this.#breaker?.waitMs ?? 0, this.coolingMs);
  }

  /** A ticket for one call, to be handed back by `settle`; undefined where the breaker refuses. */
  admit(): number | undefined {
    const ticket = this.#breaker ? this.#breaker.admit() : 0;
    if (ticket !== undefined) this.#inFlight += 1;
    return ticket;
  }

  succeeded(ticket: number, durationMs: number): void {
    this.#breaker?.succeeded(ticket);
    this.#inFlight -= 1;
    this.#count(durationMs, false);
  }

  /** A failure of the caller's own, or a rate limit, says nothing about the breaker. */
  failed(ticket: number, durationMs: number, status: string, failure: Failure): void {
    if (countsForBreaker(status)) {
      this.#breaker?.failed(ticket, failure);
      this.#lastTrip = status;
    } else this.#breaker?.released(ticket);
    this.#inFlight -= 1;
    this.#count(durationMs, true);
  }

  /** The call ended without saying anything about the provider. */
  released(ticket: number): void {
    this.#breaker?.released(ticket);
    this.#inFlight -= 1;
  }

  /** Lets a caller through who calls the provider itself and reports. False where the breaker refuses. */
  lend(): boolean {
    if (!this.#breaker || this.#breaker.state === 'closed') return true;
    const ticket = this.#breaker.admit();
    if (ticket === undefined) return false;
    this.#lent = ticket === this.#lentTicket ? this.#lent + 1 : 1;
    this.#lentTicket = ticket;
    return true;
  }

  /** The end of a call that somebody else made. An open breaker learns nothing from it: the call is older than the opening. */
  reported(status: string, durationMs: number | undefined): void {
    const hasWorked = isSuccess(status);
    const counts = countsForBreaker(status);
    const ticket = this.#returned();
    if (ticket !== undefined) {
      if (hasWorked) this.#breaker?.succeeded(ticket);
      else if (counts) this.#breaker?.failed(ticket, { class: 'transient' });
      else this.#breaker?.released(ticket);
    }
    if (counts) this.#lastTrip = status;
    this.#count(durationMs ?? NaN, !hasWorked);
  }

  /** The ticket of a call that is reported: one that was lent, or one for a call that nobody asked about. */
  #returned(): number | undefined {
    const breaker = this.#breaker;
    if (!breaker || breaker.state === 'closed') return breaker?.openings;
    // An open breaker admits none.
    if (this.#lentTicket !== breaker.openings || this.#lent === 0) return breaker.admit();
    this.#lent -= 1;
    return this.#lentTicket;
  }

  /** A pause that the provider asked for. Of two the later end counts. */
  cool(status: string, retryAfterMs: number | undefined, maxMs: number): void {
    if (retryAfterMs === undefined || !isRateLimit(status)) return;
    const until = this.#clock.monotonic() + Math.min(retryAfterMs, maxMs);
    this.#cooledUntil = Math.max(this.#cooledUntil, until);
  }

  report(): ProviderHealth {
    const breaker = this.#breaker?.state ?? 'closed';
    const { waitMs } = this;
    const size = Math.min(this.#calls, WINDOW);
    const timed = this.#latencies.slice(0, size).filter((ms) => !Number.isNaN(ms));
    const sorted = timed.sort();
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] as number;
    const recent = this.#failed.subarray(0, size).reduce((sum, each) => sum + each, 0);
    return {
      state: breaker === 'open' ? 'open' : this.isCooling ? 'cooling' : breaker,
      outUntilMs: waitMs > 0 ? Math.ceil(this.#clock.now() + waitMs) : undefined,
      inFlight: this.#inFlight,
      calls: this.#calls,
      failures: this.#failures,
      failureRate: size === 0 ? 0 : recent / size,
      latencyMs: sorted.length === 0 ? undefined : { p50: at(0.5), p95: at(0.95), p99: at(0.99) },
    };
  }

  #count(durationMs: number, failed: boolean): void {
    const slot = this.#calls % WINDOW;
    this.#latencies[slot] = durationMs;
    this.#failed[slot] = failed ? 1 : 0;
    this.#calls += 1;
    if (failed) this.#failures += 1;
  }
}

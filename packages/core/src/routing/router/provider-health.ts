import { type Breaker, createBreaker } from '../../breaker.ts';
import type { Clock } from '../../clock.ts';
import type { Failure } from '../../failure.ts';
import type { RoutingPolicy } from '../routing-policy.ts';
import { countsForBreaker, isRateLimit } from './failure-status.ts';

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
  readonly #breaker: Breaker | undefined;
  readonly #latencies = new Float64Array(WINDOW);
  readonly #failed = new Uint8Array(WINDOW);
  #cooledUntil = 0;
  #calls = 0;
  #failures = 0;
  #inFlight = 0;
  #lastTrip: string | undefined;

  constructor({ breaker }: RoutingPolicy, clock: Clock) {
    this.#clock = clock;
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
    this.#count(durationMs, false);
  }

  /** A failure of the caller's own, or a rate limit, says nothing about the breaker. */
  failed(ticket: number, durationMs: number, status: string, failure: Failure): void {
    if (countsForBreaker(status)) {
      this.#breaker?.failed(ticket, failure);
      this.#lastTrip = status;
    } else this.#breaker?.released(ticket);
    this.#count(durationMs, true);
  }

  /** The call ended without saying anything about the provider. */
  released(ticket: number): void {
    this.#breaker?.released(ticket);
    this.#inFlight -= 1;
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
    const sorted = this.#latencies.slice(0, size).sort();
    const at = (share: number) => sorted[Math.min(size - 1, Math.floor(size * share))] as number;
    const recent = this.#failed.subarray(0, size).reduce((sum, each) => sum + each, 0);
    return {
      state: breaker === 'open' ? 'open' : this.isCooling ? 'cooling' : breaker,
      outUntilMs: waitMs > 0 ? Math.ceil(this.#clock.now() + waitMs) : undefined,
      inFlight: this.#inFlight,
      calls: this.#calls,
      failures: this.#failures,
      failureRate: size === 0 ? 0 : recent / size,
      latencyMs: size === 0 ? undefined : { p50: at(0.5), p95: at(0.95), p99: at(0.99) },
    };
  }

  #count(durationMs: number, failed: boolean): void {
    const slot = this.#calls % WINDOW;
    this.#latencies[slot] = durationMs;
    this.#failed[slot] = failed ? 1 : 0;
    this.#calls += 1;
    if (failed) this.#failures += 1;
    this.#inFlight -= 1;
  }
}

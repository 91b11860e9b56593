import type { Clock } from './clock.ts';
import type { Duration } from './duration.ts';
import { ConfigError, type Fault } from './errors.ts';
import type { Failure } from './failure.ts';
import { defaultOf, type Fields, readFields } from './fields.ts';
import { isThenable, notify } from './notify.ts';
import { systemClock } from './system.ts';

export type BreakerState = 'closed' | 'open' | 'half_open';

export interface BreakerOptions {
  /** Consecutive failures that open it (5; never where only a `rate` is given). */
  failures?: number;
  /** Or the share of failed calls, 0 to 1, over `window`, once there were `minimumCalls`. Off unless given. */
  rate?: number;
  /** The window of the rate (10 s). */
  window?: Duration;
  /** Calls in the window before the rate means something (20). */
  minimumCalls?: number;
  /** How long it stays open before it lets a probe through (30 s). */
  openFor?: Duration;
  /** Calls that it lets through at once while half open (1). */
  probes?: number;
  /** Successful probes that close it (1). */
  successes?: number;
  /** Which failures say that the other side is in trouble. By default transient and unknown ones, but not 429. Not async. */
  trips?: (failure: Failure) => boolean;
  onChange?: (state: BreakerState, before: BreakerState) => unknown;
  clock?: Clock;
}

/** The state as JSON: saved, and given to `createBreaker` after a restart. */
export interface BreakerSnapshot {
  state: BreakerState;
  failures: number;
  /** Wall time in ms when an open breaker lets a probe through. */
  openUntilMs?: number;
}

export interface Breaker {
  readonly state: BreakerState;
  /** How often it has opened: tells one opening from the next. */
  readonly openings: number;
  /** Ms until it lets a probe through; 0 unless it is open. */
  readonly waitMs: number;
  /** A ticket for one call, to be handed back by `succeeded`, `failed` or `released`; undefined: refused. */
  admit(): number | undefined;
  succeeded(ticket: number): void;
  failed(ticket: number, failure: Failure): void;
  /** The call ended without saying anything about the other side: the caller aborted it. */
  released(ticket: number): void;
  snapshot(): BreakerSnapshot;
}

const DEFAULT_FAILURES = 5;

const breakerFields = {
  failures: { kind: 'integer', min: 1, max: 1_000_000 },
  rate: { kind: 'number', min: 0.01, max: 1 },
  window: { kind: 'duration', min: 10, default: 10_000 },
  minimumCalls: { kind: 'integer', min: 1, max: 1_000_000, default: 20 },
  openFor: { kind: 'duration', min: 1, default: 30_000 },
  probes: { kind: 'integer', min: 1, max: 1000, default: 1 },
  successes: { kind: 'integer', min: 1, max: 1000, default: 1 },
} as const satisfies Fields;

/** Stops calling what is down, and finds out by single probes when it is back. */
export function createBreaker(options: BreakerOptions = {}, saved?: BreakerSnapshot): Breaker {
  return new CircuitBreaker(options, saved);
}

/** The window of the rate is counted in this many slices, so that it rolls without keeping every call. */
const SLICES = 10;

class CircuitBreaker implements Breaker {
  openings = 0;
  readonly #settings: Record<keyof typeof breakerFields, number>;
  readonly #trips: (failure: Failure) => boolean;
  readonly #onChange: BreakerOptions['onChange'];
  readonly #clock: Clock;
  #state: BreakerState = 'closed';
  #failuresInARow = 0;
  #openUntil = 0;
  #probing = 0;
  #probesWorked = 0;
  #slices: { calls: number; failed: number }[] = [];
  #sliceIndex = 0;

  constructor(options: BreakerOptions, saved?: BreakerSnapshot) {
    const { trips = tripsByDefault, onChange, clock = systemClock, ...data } = options;
    const faults: Fault[] = [];
    const values = readFields(data, breakerFields, Object.keys(breakerFields), '', faults);
    if (faults.length > 0)
      throw new ConfigError('INVALID_CONFIG', 'The breaker has faults:', faults);
    for (const [name, field] of Object.entries(breakerFields)) values[name] ??= defaultOf(field);
    values['failures'] ??= values['rate'] === undefined ? DEFAULT_FAILURES : Infinity;
    this.#settings = values as Record<keyof typeof breakerFields, number>;
    this.#trips = trips;
    this.#onChange = onChange;
    this.#clock = clock;
    if (saved) this.#restore(saved);
  }

  get state(): BreakerState {
    return this.#state === 'open' && this.waitMs === 0 ? 'half_open' : this.#state;
  }

  get waitMs(): number {
    return this.#state === 'open' ? Math.max(0, this.#openUntil - this.#clock.monotonic()) : 0;
  }

  admit(): number | undefined {
    if (this.#state === 'closed') return this.openings;
    const now = this.#clock.monotonic();
    if (now < this.#openUntil) {
      if (this.#state === 'open' || this.#probing >= this.#settings.probes) return undefined;
    } else {
      // The time is up: of the opening, or of probes that never came back and must not block for ever.
      this.#probing = 0;
      this.#probesWorked = this.#state === 'open' ? 0 : this.#probesWorked;
      this.#openUntil = now + this.#settings.openFor;
      this.#change('half_open');
    }
    this.#probing += 1;
    return this.openings;
  }

  succeeded(ticket: number): void {
    // A call from before the last opening says nothing about now.
    if (ticket !== this.openings) return;
    this.#failuresInARow = 0;
    if (this.#state === 'closed') return this.#count(false);
    this.#probing = Math.max(0, this.#probing - 1);
    this.#probesWorked += 1;
    if (this.#probesWorked >= this.#settings.successes) {
      this.#slices = [];
      this.#change('closed');
    }
  }

  failed(ticket: number, failure: Failure): void {
    // Too many requests, or a bug of one's own: neither says how the other side is.
    const isNeutral = failure.status === 429 || failure.class === 'technical';
    if (isNeutral && this.#trips === tripsByDefault) return this.released(ticket);
    // An answer that refuses is an answer: the other side is there.
    const trips: unknown = this.#trips(failure);
    if (isThenable(trips)) {
      this.released(ticket);
      refuseAsync(trips);
    }
    if (!trips) return this.succeeded(ticket);
    if (ticket !== this.openings) return;
    this.#failuresInARow += 1;
    if (this.#state !== 'closed') return this.#open(this.#settings.openFor);
    this.#count(true);
    if (this.#failuresInARow >= this.#settings.failures || this.#rateReached()) {
      this.#open(this.#settings.openFor);
    }
  }

  released(ticket: number): void {
    if (ticket === this.openings && this.#state === 'half_open')
      this.#probing = Math.max(0, this.#probing - 1);
  }

  snapshot(): BreakerSnapshot {
    const snapshot: BreakerSnapshot = { state: this.state, failures: this.#failuresInARow };
    if (this.#state !== 'closed') snapshot.openUntilMs = Math.ceil(this.#clock.now() + this.waitMs);
    return snapshot;
  }

  #restore(saved: BreakerSnapshot): void {
    this.#failuresInARow = saved.failures > 0 ? saved.failures : 0;
    if (saved.state === 'closed') return;
    // The clock may have been changed meanwhile: never wait longer than one opening lasts.
    const leftMs = (saved.openUntilMs ?? 0) - this.#clock.now();
    this.#open(Math.min(Math.max(0, leftMs || 0), this.#settings.openFor));
  }

  #open(forMs: number): void {
    this.openings += 1;
    this.#openUntil = this.#clock.monotonic() + forMs;
    this.#change('open');
  }

  #change(state: BreakerState): void {
    const before = this.#state;
    this.#state = state;
    if (before === state) return;
    if (this.#onChange) notify('a breaker listener', this.#onChange, state, before);
  }

  #count(failed: boolean): void {
    if (this.#settings.rate === undefined) return;
    const index = Math.floor((this.#clock.monotonic() * SLICES) / this.#settings.window);
    const steps = Math.min(index - this.#sliceIndex, SLICES);
    for (let i = 0; i < steps; i++) this.#slices.unshift({ calls: 0, failed: 0 });
    this.#slices.length = Math.min(this.#slices.length, SLICES);
    this.#sliceIndex = index;
    const slice = (this.#slices[0] ??= { calls: 0, failed: 0 });
    slice.calls += 1;
    if (failed) slice.failed += 1;
  }

  #rateReached(): boolean {
    if (this.#settings.rate === undefined) return false;
    let [calls, failed] = [0, 0];
    for (const slice of this.#slices) {
      calls += slice.calls;
      failed += slice.failed;
    }
    return calls >= this.#settings.minimumCalls && failed >= this.#settings.rate * calls;
  }
}

/** A promise is truthy: it would open the breaker at every failure, whatever its answer. */
function refuseAsync(answer: PromiseLike<unknown>): never {
  notify('an async trips', () => answer);
  throw new ConfigError(
    'INVALID_VALUE',
    'The breaker cannot wait for trips: it returned a promise. It must return true or false at once; put async work into classify.',
  );
}

function tripsByDefault(failure: Failure): boolean {
  return failure.class === 'transient' || failure.class === 'unknown';
}

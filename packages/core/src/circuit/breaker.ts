import { atLeast, delayOf } from '../policy/backoff.ts';
import {
  type BreakerOptions,
  type BreakerSettings,
  type BreakerState,
  readBreakerOptions,
} from './breaker-options.ts';
import { CallWindow, type RateWindow, TimeWindow } from './rate-window.ts';
import type { Clock, Random } from '../clock.ts';
import { type Duration, durationMs } from '../policy/duration.ts';
import { ConfigError } from '../errors.ts';
import type { Failure } from '../failure/failure.ts';
import { explainFault } from '../options/faults.ts';
import { isThenable, notify } from '../run/notify.ts';
import { systemClock, systemRandom } from '../system.ts';
import { checkObject } from '../options/check-options.ts';

export type { BreakerOptions, BreakerState } from './breaker-options.ts';

/** The state as JSON: saved, and given to `createBreaker` after a restart. */
export interface BreakerSnapshot {
  state: BreakerState;
  failures: number;
  /** Wall time in ms when an open breaker lets a probe through. */
  openUntilMs?: number;
  /** How often it has opened since it was last closed, from which a growing `openFor` follows. */
  openingsInARow?: number;
  /** It was opened by hand, until it is closed by hand. */
  held?: boolean;
}

export interface Breaker {
  readonly state: BreakerState;
  /** How often it has opened: tells one opening from the next. */
  readonly openings: number;
  /** Ms until it lets a probe through; 0 unless it is open, Infinity while it is held open by hand. */
  readonly waitMs: number;
  /** A ticket for one call, to be handed back by `succeeded`, `failed` or `released`; undefined: refused. */
  admit(): number | undefined;
  succeeded(ticket: number): void;
  failed(ticket: number, failure: Failure): void;
  /** The call ended without saying anything about the other side: the caller aborted it. */
  released(ticket: number): void;
  snapshot(): BreakerSnapshot;
  /** Opens it by hand: for this long, or until `close`. */
  open(duration?: Duration): void;
  /** Closes it by hand, and forgets what failed. */
  close(): void;
}

/** Stops calling what is down, and finds out by single probes when it is back. */
export function createBreaker(options: BreakerOptions = {}, saved?: BreakerSnapshot): Breaker {
  return new CircuitBreaker(options, saved);
}

class CircuitBreaker implements Breaker {
  openings = 0;
  readonly #settings: BreakerSettings;
  readonly #trips: (failure: Failure) => boolean;
  readonly #onChange: BreakerOptions['onChange'];
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #window: RateWindow | undefined;
  #state: BreakerState = 'closed';
  #failuresInARow = 0;
  #openingsInARow = 0;
  /** How long the last opening was. */
  #openedForMs: number | undefined;
  #openUntil = 0;
  #probing = 0;
  #probesWorked = 0;
  #probesFailed = 0;

  constructor(options: BreakerOptions, saved?: BreakerSnapshot) {
    checkObject('The breaker', options);
    const { trips = tripsByDefault, onChange, clock, random, ...data } = options;
    this.#settings = readBreakerOptions(data);
    this.#trips = trips;
    this.#onChange = onChange;
    this.#clock = clock ?? systemClock;
    this.#random = random ?? systemRandom;
    const { rate, window, windowCalls } = this.#settings;
    if (rate !== undefined) {
      this.#window = windowCalls
        ? new CallWindow(windowCalls)
        : new TimeWindow(window, this.#clock);
    }
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
      if (this.#state === 'open') this.#probesWorked = this.#probesFailed = 0;
      this.#openUntil = now + this.#openingMs();
      this.#change('half_open');
    }
    this.#probing += 1;
    return this.openings;
  }

  succeeded(ticket: number): void {
    // A call from before the last opening says nothing about now.
    if (ticket !== this.openings) return;
    this.#failuresInARow = 0;
    if (this.#state === 'closed') return this.#window?.add(false);
    this.#probing = Math.max(0, this.#probing - 1);
    this.#probesWorked += 1;
    if (this.#probesWorked >= this.#settings.successes) this.close();
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
    if (this.#state !== 'closed') {
      this.#probing = Math.max(0, this.#probing - 1);
      this.#probesFailed += 1;
      if (this.#probesFailed > this.#settings.probeFailures) this.#openOnceMore();
      return;
    }
    this.#window?.add(true);
    if (this.#failuresInARow >= this.#settings.failures || this.#rateReached()) {
      this.#openOnceMore();
    }
  }

  released(ticket: number): void {
    if (ticket === this.openings && this.#state === 'half_open')
      this.#probing = Math.max(0, this.#probing - 1);
  }

  snapshot(): BreakerSnapshot {
    const snapshot: BreakerSnapshot = { state: this.state, failures: this.#failuresInARow };
    if (this.#state === 'closed') return snapshot;
    if (typeof this.#settings.openFor !== 'number') {
      snapshot.openingsInARow = this.#openingsInARow;
    }
    if (this.waitMs === Infinity) snapshot.held = true;
    else snapshot.openUntilMs = Math.ceil(this.#clock.now() + this.waitMs);
    return snapshot;
  }

  open(duration?: Duration): void {
    const forMs = duration === undefined ? Infinity : durationMs(duration);
    if (Number.isNaN(forMs)) {
      const wanted = explainFault({ kind: 'duration', min: 0 }, duration);
      throw new ConfigError('INVALID_DURATION', `The breaker was not opened: ${wanted}`);
    }
    this.#open(forMs);
  }

  close(): void {
    this.#failuresInARow = this.#openingsInARow = 0;
    this.#openedForMs = undefined;
    this.#window?.clear();
    this.#change('closed');
  }

  #restore(saved: BreakerSnapshot): void {
    this.#failuresInARow = saved.failures > 0 ? saved.failures : 0;
    if (saved.state === 'closed') return;
    this.#openingsInARow = Math.floor(atLeast(saved.openingsInARow, 0));
    if (saved.held) return this.#open(Infinity);
    // The clock may have been changed meanwhile: never wait longer than the longest opening lasts.
    const { openFor } = this.#settings;
    const longestMs = typeof openFor === 'number' ? openFor : 2 * openFor.cap + openFor.jitterAdd;
    const leftMs = (saved.openUntilMs ?? 0) - this.#clock.now();
    this.#open(Math.min(Math.max(0, leftMs || 0), longestMs));
  }

  #openOnceMore(): void {
    this.#openingsInARow += 1;
    this.#openedForMs = this.#openingMs();
    this.#open(this.#openedForMs);
  }

  #open(forMs: number): void {
    this.openings += 1;
    this.#openUntil = this.#clock.monotonic() + forMs;
    this.#change('open');
  }

  /** How long an opening lasts: the first since it was closed, the second, and so on. */
  #openingMs(): number {
    const { openFor } = this.#settings;
    if (typeof openFor === 'number') return openFor;
    // A jitter that reaches down to 0 must not let every call through.
    return Math.max(1, delayOf(openFor, this.#openingsInARow, this.#random, this.#openedForMs));
  }

  #change(state: BreakerState): void {
    const before = this.#state;
    this.#state = state;
    if (before === state) return;
    if (this.#onChange) notify('a breaker listener', this.#onChange, state, before);
  }

  #rateReached(): boolean {
    const { rate, minimumCalls } = this.#settings;
    if (!this.#window || rate === undefined) return false;
    const { calls, failed } = this.#window;
    return calls >= minimumCalls && failed >= rate * calls;
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

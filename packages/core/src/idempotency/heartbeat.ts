import type { Clock } from '../clock.ts';

/** What is renewed from time to time. */
interface Beating {
  /** By the monotonic clock. Infinity: not now. */
  readonly beatAtMs: number;
  beat(): Promise<void>;
}

/** One timer for all leases by one clock: most work is over long before its first renewal, and pays for no timer. */
class Heartbeat {
  readonly #clock: Clock;
  readonly #leases = new Set<Beating>();
  #timer: unknown;
  #timerAtMs = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(lease: Beating): void {
    this.#leases.add(lease);
    this.watch(lease.beatAtMs);
  }

  delete(lease: Beating): void {
    this.#leases.delete(lease);
  }

  /** Somebody is to be renewed at this time. */
  watch(atMs: number): void {
    if (atMs >= this.#timerAtMs) return;
    const clock = this.#clock;
    clock.clearTimer(this.#timer);
    this.#timerAtMs = atMs;
    const inMs = Math.max(0, Math.ceil(atMs - clock.monotonic()));
    this.#timer = clock.setTimer(() => this.#tick(), inMs, true);
  }

  #tick(): void {
    const nowMs = this.#clock.monotonic();
    this.#timerAtMs = Infinity;
    for (const lease of this.#leases) {
      if (lease.beatAtMs <= nowMs) void lease.beat();
      else this.watch(lease.beatAtMs);
    }
  }
}

const heartbeats = new WeakMap<Clock, Heartbeat>();

export function heartbeatOf(clock: Clock): Heartbeat {
  let heartbeat = heartbeats.get(clock);
  if (!heartbeat) heartbeats.set(clock, (heartbeat = new Heartbeat(clock)));
  return heartbeat;
}

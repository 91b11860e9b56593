import type { Clock } from 'redrive';
import type { Entry } from './lanes.ts';

/**
 * A task whose worker was lost may have killed it. It runs alone in its instance, so that it cannot take others
 * along; the others get as much time again before the next one of its kind.
 */
export class Solo {
  readonly #clock: Clock;
  readonly #maxMs: number;
  /** Claimed, and not started before all is quiet. */
  waiting: Entry | undefined;
  #running: Entry | undefined;
  /** When the others may go on even if it still runs: it has not killed us in all that time. */
  until = Infinity;
  /** When the next one may be taken on. */
  freeAt = -Infinity;

  constructor(clock: Clock, maxMs: number) {
    this.#clock = clock;
    this.#maxMs = maxMs;
  }

  /** Only what runs in this process can kill it. */
  static concerns(lane: string): boolean {
    return lane.startsWith('handler:');
  }

  /** Nothing else may start or be claimed now. */
  get isAlone(): boolean {
    return this.waiting !== undefined || this.#running !== undefined;
  }

  /** Whether one more may be taken on. */
  isFree(now: number): boolean {
    return !this.isAlone && now >= this.freeAt;
  }

  wait(entry: Entry): void {
    this.waiting = entry;
  }

  begin(now: number): Entry | undefined {
    const entry = this.waiting;
    this.waiting = undefined;
    this.#running = entry;
    this.until = now + this.#maxMs;
    return entry;
  }

  step(now: number): void {
    if (now >= this.until && this.#running) this.ended(this.#running);
  }

  ended(entry: Entry): void {
    if (this.waiting === entry) this.waiting = undefined;
    if (this.#running !== entry) return;
    this.#running = undefined;
    this.until = Infinity;
    const now = this.#clock.monotonic();
    const ranMs = Number.isNaN(entry.startedAt) ? 0 : now - entry.startedAt;
    this.freeAt = now + Math.min(ranMs, this.#maxMs);
  }

  takeWaiting(): Entry | undefined {
    const entry = this.waiting;
    this.waiting = undefined;
    return entry;
  }
}

import type { Clock } from 'redrive';
import type { Entry } from '../lanes/lanes.ts';

/** Suspects that run together the first time: an ordinary crash leaves many, and seldom a killer among them. */
export const GROUP = 10;

/**
 * A task whose worker was lost may have killed it. On its second lease it runs apart from the others, in a small
 * group; from its third on alone, so that it takes nobody along. The others get as much time again before the next.
 */
export class Solo {
  readonly #clock: Clock;
  readonly #maxMs: number;
  /** Claimed, and not started before all is quiet. */
  readonly #waiting = new Set<Entry>();
  readonly #running = new Set<Entry>();
  #beganAt = NaN;
  /** When the others may go on whatever it does: it has not killed us, or all does not become quiet. */
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
    return this.#waiting.size > 0 || this.#running.size > 0;
  }

  get waiting(): readonly Entry[] {
    return [...this.#waiting];
  }

  /** Whether more may be taken on. */
  isFree(now: number): boolean {
    return !this.isAlone && now >= this.freeAt;
  }

  /** Whether this one may wait with those that do already. */
  admits({ task }: Entry): boolean {
    if (!this.isAlone) return true;
    const isYoung = (claims: number) => claims <= 2;
    const all = [...this.#waiting, ...this.#running];
    return (
      isYoung(task.claims) && all.every((one) => isYoung(one.task.claims)) && all.length < GROUP
    );
  }

  wait(entry: Entry): void {
    if (this.#waiting.size === 0) this.until = this.#clock.monotonic() + this.#maxMs;
    this.#waiting.add(entry);
  }

  /** All is quiet: those that waited may start. */
  begin(now: number): readonly Entry[] {
    const entries = this.waiting;
    this.#waiting.clear();
    for (const entry of entries) this.#running.add(entry);
    this.#beganAt = now;
    this.until = now + this.#maxMs;
    return entries;
  }

  /** Past its time: what still waits is handed back, what runs goes on beside the others. */
  expire(now: number): readonly Entry[] {
    if (now < this.until) return [];
    const entries = this.waiting;
    this.#waiting.clear();
    this.#running.clear();
    this.#rest(now);
    return entries;
  }

  ended(entry: Entry): void {
    this.#waiting.delete(entry);
    if (this.#running.delete(entry) && !this.isAlone) this.#rest(this.#clock.monotonic());
    if (!this.isAlone) this.until = Infinity;
  }

  takeWaiting(): readonly Entry[] {
    const entries = this.waiting;
    this.#waiting.clear();
    return entries;
  }

  #rest(now: number): void {
    const ranMs = Number.isNaN(this.#beganAt) ? this.#maxMs : now - this.#beganAt;
    this.freeAt = now + Math.min(ranMs, this.#maxMs);
    this.#beganAt = NaN;
    this.until = Infinity;
  }
}

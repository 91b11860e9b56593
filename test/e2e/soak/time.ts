/** How long the soak lasts, and how far it is. */
import { setTimeout as pause } from 'node:timers/promises';

export class Time {
  readonly lengthMs: number;
  readonly #startMs = performance.now();

  constructor(lengthMs: number) {
    this.lengthMs = lengthMs;
  }

  get elapsedMs(): number {
    return performance.now() - this.#startMs;
  }

  get leftMs(): number {
    return Math.max(0, this.lengthMs - this.elapsedMs);
  }

  /** How long ago the time was over; 0: it is not. */
  get overMs(): number {
    return Math.max(0, this.elapsedMs - this.lengthMs);
  }

  get isOver(): boolean {
    return this.leftMs === 0;
  }

  /** So long, or until the time is over. */
  sleep(ms: number): Promise<void> {
    return pause(Math.min(ms, this.leftMs));
  }

  /** Until so much of the time has passed. */
  until(share: number): Promise<void> {
    return pause(Math.max(0, this.lengthMs * share - this.elapsedMs));
  }
}

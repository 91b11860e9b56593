import { Agenda } from './agenda.ts';
import type { Lane } from './lanes.ts';

/**
 * Which lanes have something to claim, and from when on, in local monotonic time. A lane that only waits for its time
 * costs a name and a number here, so that there may be very many of them.
 */
export class DueLanes {
  readonly #waiting = new Agenda<string>();
  /** Something in them may be claimed now. */
  readonly #due = new Map<string, Lane>();
  /** The same, but they may not be served now. */
  readonly #heldBack = new Map<string, Lane>();
  readonly #get: (name: string) => Lane;

  constructor(get: (name: string) => Lane) {
    this.#get = get;
  }

  get due(): Iterable<Lane> {
    return this.#due.values();
  }

  /** Something in this lane may be visible from then on; Infinity: nothing. */
  expect(name: string, at: number): void {
    if (at === Infinity || this.#due.has(name) || this.#heldBack.has(name)) return;
    if (at < (this.#waiting.at(name) ?? Infinity)) this.#waiting.set(name, at);
  }

  /** The next one whose time has come. It is due from then on. */
  takeNext(now: number): Lane | undefined {
    const next = this.#waiting.first();
    if (!next || next.atMs > now) return undefined;
    this.#waiting.delete(next.id);
    return this.#makeDue(this.#get(next.id));
  }

  /** It is being claimed from, and the answer will say what is left there. */
  asked(name: string): void {
    this.#due.delete(name);
    this.#waiting.delete(name);
  }

  /** It may not be served before `until`, or before it is released. */
  holdBack(lane: Lane, until: number): void {
    this.#due.delete(lane.name);
    this.#heldBack.set(lane.name, lane);
    if (until < Infinity) this.#waiting.set(lane.name, until);
  }

  /** Perhaps it may be served now. */
  release(name: string): void {
    const lane = this.#heldBack.get(name);
    if (!lane) return;
    this.#waiting.delete(name);
    this.#makeDue(lane);
  }

  releaseAll(): void {
    for (const name of this.#heldBack.keys()) this.release(name);
  }

  /** Whether this lane is due or held back: then it must not be forgotten. */
  holds(name: string): boolean {
    return this.#due.has(name) || this.#heldBack.has(name);
  }

  isDue(now: number): boolean {
    return this.#due.size > 0 || (this.#waiting.first()?.atMs ?? Infinity) <= now;
  }

  /** When the next one becomes due; Infinity: none is known. Times that have passed count as well. */
  get nextAt(): number {
    return this.#waiting.first()?.atMs ?? Infinity;
  }

  #makeDue(lane: Lane): Lane {
    this.#heldBack.delete(lane.name);
    this.#due.set(lane.name, lane);
    return lane;
  }
}

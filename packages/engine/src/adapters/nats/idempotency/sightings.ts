/** When revisions were seen first. A server without a clock for leases leaves it to each reader to see how long one stays. */
export class Sightings {
  readonly #seen = new Map<string, { revision: number; atMs: number }>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * How long this revision has been there at least. `askedAtMs` is before the key was read, `answeredAtMs` after it: the
   * revision may be that young when it is seen first, and may be replaced right after it is seen again.
   */
  ageMs(key: string, revision: number, askedAtMs: number, answeredAtMs: number): number {
    let seen = this.#seen.get(key);
    if (seen?.revision !== revision) seen = { revision, atMs: answeredAtMs };
    // Those that are looked at stay. One that is forgotten counts anew: a lease ends late then, never early.
    this.#seen.delete(key);
    this.#seen.set(key, seen);
    if (this.#seen.size > this.#limit) this.forget(this.#seen.keys().next().value!);
    return Math.max(0, askedAtMs - seen.atMs);
  }

  has(key: string): boolean {
    return this.#seen.has(key);
  }

  forget(key: string): void {
    this.#seen.delete(key);
  }
}

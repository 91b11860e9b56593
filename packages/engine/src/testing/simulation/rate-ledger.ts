/** The starts of a lane whose rate is limited, over all instances. */
export class RateLedger {
  readonly #say: (violation: string) => void;
  #startsMs: number[] = [];

  constructor(say: (violation: string) => void) {
    this.#say = say;
  }

  /** In no window that ends now there are more than the burst and what the rate allows in it. */
  started(nowMs: number, { perSecond, burst }: { perSecond: number; burst: number }): void {
    this.#startsMs.push(nowMs);
    for (const [i, firstMs] of this.#startsMs.entries()) {
      const count = this.#startsMs.length - i;
      if (count <= burst + ((nowMs - firstMs) * perSecond) / 1000) continue;
      return this.#say(`${count} starts in ${nowMs - firstMs} ms are more than the rate allows`);
    }
  }

  /** The store's clock was set: by it another time has passed than really did. */
  forget(): void {
    this.#startsMs = [];
  }
}

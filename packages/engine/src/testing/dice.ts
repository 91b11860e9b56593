import type { Random } from 'redrive';

/** Nothing, or hours: what a real clock cannot blur. */
export type Span = 0 | 1 | 2;

/** Choices by chance. */
export class Dice {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  /** True one time in so many. */
  one(inHowMany: number): boolean {
    return this.below(inHowMany) === 0;
  }

  of<T>(...choices: readonly T[]): T {
    return pick(this.#random, choices);
  }

  span(): Span {
    return this.of<Span>(0, 1, 2);
  }

  some<T>(most: number, make: () => T): T[] {
    return Array.from({ length: 1 + this.below(most) }, make);
  }
}

function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)]!;
}

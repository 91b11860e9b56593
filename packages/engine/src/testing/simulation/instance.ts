import type { Engine } from '../../engine.ts';
import type { Being, World } from './world.ts';

/** One process with an engine in it. */
export class Instance implements Being {
  isAlive = true;
  readonly skew: { ms: number };
  engine: Engine | undefined;
  /** Clients who wait for an answer of it. */
  readonly dying = new Set<() => void>();
  readonly name: string;
  readonly #died: (instance: Instance) => void;

  constructor(name: string, world: World, died: (instance: Instance) => void) {
    this.name = name;
    this.skew = { ms: world.between(-5000, 5000) };
    this.#died = died;
  }

  die(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.#died(this);
    for (const tell of this.dying) tell();
    this.dying.clear();
  }
}

import type { Clock } from 'redrive';
import { seededRandom } from 'redrive/testing';
import type { MemoryStore } from '../../../adapters/memory/store.ts';
import type { Weather } from '../faults.ts';
import type { Ledger } from '../ledger.ts';
import type { World } from '../world.ts';
import { KeyWorld } from './key-world.ts';
import { OnceLedger } from './once-ledger.ts';

/** What a world has in which a handler is idempotent. */
export interface Once {
  /** Its effects and their records commit together. */
  isTransactional: boolean;
  ledger: OnceLedger;
  keys: KeyWorld;
}

/** In so many worlds a handler is idempotent. The salt spares the seeds of the mutants that were there before. */
const SHARE = 0.25;
const SALT = 111_000;

/** By dice of its own, so that the worlds of all other seeds stay as they are. */
export function makeOnce(
  seed: number,
  parts: {
    world: World;
    weather: Weather;
    clock: Clock;
    store: MemoryStore;
    ledger: Pick<Ledger, 'say' | 'tell'>;
  },
): Once | undefined {
  const random = seededRandom(seed + SALT);
  if (random() >= SHARE) return undefined;
  const { world, weather, clock, store } = parts;
  const isTransactional = random() < 0.5;
  const ledger = new OnceLedger(store, isTransactional, parts.ledger);
  return { isTransactional, ledger, keys: new KeyWorld(world, weather, clock, ledger) };
}

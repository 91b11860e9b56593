import type { IdempotencyStore } from 'redrive';
import { claimCases } from './idempotency-claim.ts';
import { effectCases } from './idempotency-effects.ts';
import { type KeyStage, leases } from './idempotency-stage.ts';
import { upkeepCases } from './idempotency-upkeep.ts';
import { casesOf, type ConformanceCase, patient } from '../suite.ts';

/** How the suite gets at the store that it examines. */
export interface IdempotencySetup {
  /** A store, for one case, that has no keys yet. */
  open(): Promise<OpenedIdempotency>;
  /** Whether other stores and other processes see the same keys. */
  shared?: boolean;
  /** Whether `prune` deletes what has expired. False where the server does that by itself. */
  pruning?: boolean;
}

export type IdempotencyNeed = 'shared' | 'pruning';

export interface OpenedIdempotency {
  store: IdempotencyStore;
  /** Another store on the same keys. It is closed with the first. */
  another?: () => Promise<IdempotencyStore>;
  /** How another process makes a store on the same keys: a module, and an expression of what it exports. */
  elsewhere?: { module: string; create: string };
  close(): Promise<void>;
}

/**
 * Every promise of the port `IdempotencyStore`, one by one. A store without a server's clock notices that a lease is over
 * only by looking twice: wherever a case waits for that, it looks again and again.
 */
export function idempotencySuite(setup: IdempotencySetup): ConformanceCase[] {
  const { shared = false, pruning = true } = setup;
  const tables = { claim: claimCases, upkeep: upkeepCases, effects: effectCases };
  return casesOf<KeyStage, IdempotencyNeed>(tables, { shared, pruning }, async (body) => {
    const opened = await setup.open();
    try {
      await body({ ...opened, until: patient(), ...leases(opened.store) });
    } finally {
      await opened.close();
    }
  });
}

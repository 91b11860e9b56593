import { isEngineError } from '../../../errors.ts';
import type { Hint, Lease, Renewed, Settled, Settlement } from '../../../ports/schedule.ts';
import { encodeArray } from '../arrays.ts';
import { Params } from '../batch.ts';
import type { Database } from '../connection/database.ts';
import { isLockTimeout } from '../connection/faults.ts';
import type { Names } from '../names.ts';
import { isTrue, numberOf } from '../rows.ts';
import { OrderedSettler, type Placed, type Read, settlePart } from './settle-lines.ts';
import { renewText, type SettledBatch } from './settle-text.ts';
import { Wake } from '../connection/wake.ts';

/** Ends and prolongs leases, a batch in one statement. */
export class Settler {
  readonly #database: Database;
  readonly #names: Names;
  readonly #ordered: OrderedSettler;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
    this.#ordered = new OrderedSettler(database, names);
  }

  /** Not sent again when its answer is lost: it would take what it had settled itself for lost. */
  async settle(settlements: readonly Settlement[]): Promise<{ results: Settled[]; hint?: Hint }> {
    const results = settlements.map((): Settled => 'lost');
    const wake = new Wake();
    const read: Read = (part, batch) => {
      for (const result of ['settled', 'rearmed', 'cancelled'] as const) {
        for (const n of batch[result]) results[part[n - 1]!.index] = result;
      }
      for (const lane of batch.waitingLanes) wake.add(lane, batch.visibleInMs);
    };
    const placed = placedOf(settlements);
    const isOrdered = placed.some(({ one }) => one.line);
    const alone = isOrdered ? placed.filter(({ one }) => !one.line) : placed;
    for (const part of partsOf(alone)) read(part, await this.#settlePart(part));
    if (isOrdered) {
      const ordered = placed.filter(({ one }) => one.line);
      for (const part of partsOf(ordered)) await this.#ordered.settle(part, read, wake);
    }
    await this.#markBusy(settlements, results);
    return { results, ...(wake.hint ? { hint: wake.hint } : {}) };
  }

  async #settlePart(part: readonly Placed<Settlement>[]): Promise<SettledBatch> {
    try {
      return await settlePart(this.#database, this.#names, part, 'wait');
    } catch (error) {
      if (!isEngineError(error) || !isLockTimeout(error.cause)) throw error;
      return settlePart(this.#database, this.#names, part, 'pass over');
    }
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<Renewed[]> {
    const results = leases.map((): Renewed => 'lost');
    for (const part of partsOf(placedOf(leases))) {
      const params = new Params();
      const rows = await this.#database.queryAgain(
        renewText(
          this.#names,
          part.map(({ one }) => one),
          leaseMs,
          params,
        ),
        params.values,
      );
      for (const [n, arrived] of rows) {
        results[part[numberOf(n) - 1]!.index] = isTrue(arrived) ? 'arrived' : 'held';
      }
    }
    await this.#markBusy(leases, results);
    return results;
  }

  /** Of those that were passed over: the ones that are still held, so that only a lock was in the way. */
  async #markBusy(leases: readonly Lease[], results: (Settled | Renewed)[]): Promise<void> {
    const missing = leases.filter((_, i) => results[i] === 'lost');
    if (missing.length === 0) return;
    const rows = await this.#database.queryAgain(
      `SELECT id, lease FROM ${this.#names.queue}
       WHERE id = ANY ($1::int8[]) AND status = 'pending' AND lease IS NOT NULL`,
      [
        encodeArray(
          'int8',
          missing.map(({ id }) => id),
        ),
      ],
    );
    const held = new Map(rows.map(([id, lease]) => [numberOf(id), numberOf(lease)]));
    for (const [i, { id, lease }] of leases.entries()) {
      if (results[i] === 'lost' && held.get(id) === lease) results[i] = 'busy';
    }
  }
}

function placedOf<T extends Lease>(leases: readonly T[]): Placed<T>[] {
  return leases.map((one, index) => ({ one, index }));
}

/**
 * Sorted by id, so that rows are locked in one order everywhere. No id twice in one part: a second settlement of a
 * task has to see what the first one did.
 */
function partsOf<T extends Lease>(placed: readonly Placed<T>[]): Placed<T>[][] {
  const parts: Placed<T>[][] = [];
  let rest = placed.toSorted((a, b) => a.one.id - b.one.id || a.index - b.index);
  while (rest.length > 0) {
    const all = rest;
    parts.push(all.filter(({ one }, i) => one.id !== all[i - 1]?.one.id));
    rest = all.filter(({ one }, i) => one.id === all[i - 1]?.one.id);
  }
  return parts;
}

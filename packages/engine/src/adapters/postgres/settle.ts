import { isEngineError } from '../../errors.ts';
import type { Hint, Lease, Renewed, Settled, Settlement } from '../../ports/schedule.ts';
import { encodeArray } from './arrays.ts';
import { Params } from './batch.ts';
import type { Database } from './database.ts';
import { isLockTimeout } from './faults.ts';
import type { Names } from './names.ts';
import { isTrue, numberOf, type Row } from './rows.ts';
import { type OnLocked, renewText, settleText } from './settle-text.ts';

/** Ends and prolongs leases, a batch in one statement. */
export class Settler {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  /** Not sent again when its answer is lost: it would take what it had settled itself for lost. */
  async settle(settlements: readonly Settlement[]): Promise<{ results: Settled[]; hint?: Hint }> {
    const results = settlements.map((): Settled => 'lost');
    let hint: Hint | undefined;
    for (const part of partsOf(settlements)) {
      const [numbers, lanes, waitMs] = await this.#settlePart(part);
      for (const n of JSON.parse((numbers as string | null) ?? '[]') as number[]) {
        results[part[Math.abs(n) - 1]!.index] = n > 0 ? 'settled' : 'rearmed';
      }
      if (lanes != null) {
        hint = {
          lanes: JSON.parse(lanes as string) as string[],
          inMs: Math.max(0, numberOf(waitMs)),
        };
      }
    }
    await this.#markBusy(settlements, results);
    return { results, ...(hint ? { hint } : {}) };
  }

  async #settlePart(part: readonly Placed<Settlement>[]): Promise<Row> {
    const batch = part.map(({ one }) => one);
    const places = part.map(({ index }) => index);
    const settle = async (locked: OnLocked) => {
      const params = new Params();
      const text = settleText(this.#names, batch, places, locked, params);
      const [row] = await this.#database.query(text, params.values);
      return row!;
    };
    try {
      return await settle('wait');
    } catch (error) {
      if (!isEngineError(error) || !isLockTimeout(error.cause)) throw error;
      return settle('pass over');
    }
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<Renewed[]> {
    const results = leases.map((): Renewed => 'lost');
    for (const part of partsOf(leases)) {
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

interface Placed<T> {
  one: T;
  index: number;
}

/**
 * Sorted by id, so that rows are locked in one order everywhere. No id twice in one part: a second settlement of a
 * task has to see what the first one did.
 */
function partsOf<T extends Lease>(leases: readonly T[]): Placed<T>[][] {
  const parts: Placed<T>[][] = [];
  let rest = leases.map((one, index) => ({ one, index }));
  rest.sort((a, b) => a.one.id - b.one.id || a.index - b.index);
  while (rest.length > 0) {
    const all = rest;
    parts.push(all.filter(({ one }, i) => one.id !== all[i - 1]?.one.id));
    rest = all.filter(({ one }, i) => one.id === all[i - 1]?.one.id);
  }
  return parts;
}

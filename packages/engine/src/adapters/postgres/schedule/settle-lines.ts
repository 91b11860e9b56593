import { isEngineError } from '../../../errors.ts';
import type { Line } from '../../../model/line.ts';
import type { Settlement } from '../../../ports/schedule.ts';
import { Params } from '../batch.ts';
import type { Database, Session } from '../connection/database.ts';
import { isLockTimeout } from '../connection/faults.ts';
import { addLines, HeldLines, LineSet } from './lines.ts';
import type { Names } from '../names.ts';
import {
  LOCK_TIMEOUT_MS,
  type OnLocked,
  settledBatch,
  type SettledBatch,
  settleText,
} from './settle-text.ts';
import { Wake } from '../connection/wake.ts';

/** One of a batch, and its place in what was given. */
export interface Placed<T> {
  one: T;
  index: number;
}

/** Takes what became of a part of a batch. */
export type Read = (part: readonly Placed<Settlement>[], batch: SettledBatch) => void;

/** Settles what is sorted by id, each there once. */
export async function settlePart(
  session: Session,
  names: Names,
  part: readonly Placed<Settlement>[],
  locked: OnLocked,
): Promise<SettledBatch> {
  const params = new Params();
  const batch = part.map(({ one }) => one);
  const places = part.map(({ index }) => index);
  const [row] = await session.query(
    settleText(names, batch, places, locked, params),
    params.values,
  );
  return settledBatch(row!);
}

const patience = `WHERE (SELECT set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true)) IS NOT NULL`;

/** Settlements of ordered tasks: in the same commit their lines go on. */
export class OrderedSettler {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  /** What somebody keeps locked for long is left out, and so is all of its line: it is still held then. */
  async settle(part: readonly Placed<Settlement>[], read: Read, wake: Wake): Promise<void> {
    if (await this.#try(part, 'wait', read, wake)) return;
    try {
      await this.#database.transaction(async (session) => {
        await session.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await addLines(session, this.#names, linesOf(part));
      });
    } catch (error) {
      // Somebody is just adding one of them: it is his.
      if (!isLocked(error)) throw error;
    }
    await this.#passOver(part, read, wake);
  }

  /** Half by half, where the row of a follower is locked without its line, as only a hand in the database does. */
  async #passOver(part: readonly Placed<Settlement>[], read: Read, wake: Wake): Promise<void> {
    if (await this.#try(part, 'pass over', read, wake)) return;
    const lines = [...linesOf(part)];
    if (lines.length === 1) return;
    const first = new LineSet(lines.slice(0, lines.length >> 1));
    const isFirst = ({ one }: Placed<Settlement>) => one.line && first.has(one.line);
    await this.#passOver(part.filter(isFirst), read, wake);
    await this.#passOver(
      part.filter((placed) => !isFirst(placed)),
      read,
      wake,
    );
  }

  /** False: something is locked, and nothing was written. */
  async #try(
    part: readonly Placed<Settlement>[],
    locked: OnLocked,
    read: Read,
    wake: Wake,
  ): Promise<boolean> {
    try {
      const { mine, batch, woken } = await this.#database.transaction(async (session) => {
        const held = new HeldLines(this.#names, session);
        if (locked === 'wait') await held.lock(linesOf(part), patience);
        else {
          await session.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
          await held.take(linesOf(part));
        }
        const free = part.filter(({ one }) => held.holds(one.line));
        const fresh = new Wake();
        if (free.length === 0) return { mine: free, woken: fresh };
        const answer = await settlePart(session, this.#names, free, locked);
        await held.advance(fresh);
        return { mine: free, batch: answer, woken: fresh };
      });
      if (batch) read(mine, batch);
      for (const lane of woken.hint?.lanes ?? []) wake.add(lane, woken.hint?.inMs ?? 0);
      return true;
    } catch (error) {
      if (!isLocked(error)) throw error;
      return false;
    }
  }
}

function isLocked(error: unknown): boolean {
  return isEngineError(error) && isLockTimeout(error.cause);
}

function linesOf(part: readonly Placed<Settlement>[]): LineSet {
  return new LineSet(part.map(({ one }): Line | undefined => one.line));
}

import type { Line } from '../../../model/line.ts';
import { encodeArray } from '../arrays.ts';
import { Params } from '../batch.ts';
import type { Database, Session } from '../connection/database.ts';
import {
  addLinesText,
  advanceText,
  dropLinesText,
  lockLinesText,
  sweepText,
  takeLinesText,
} from './lines-text.ts';
import type { Names } from '../names.ts';
import { isTrue, numberOf } from '../rows.ts';
import type { Wake } from '../connection/wake.ts';

/** Lines, each once. By lane and then by key: no text is put together for each. */
export class LineSet implements Iterable<Line> {
  readonly #lanes = new Map<string, Map<string, Line>>();

  constructor(lines: Iterable<Line | undefined> = []) {
    for (const line of lines) this.add(line);
  }

  get isEmpty(): boolean {
    return this.#lanes.size === 0;
  }

  add(line: Line | undefined): void {
    if (!line) return;
    const keys = this.#lanes.get(line.lane);
    if (keys) keys.set(line.key, line);
    else this.#lanes.set(line.lane, new Map([[line.key, line]]));
  }

  has({ lane, key }: Line): boolean {
    return this.#lanes.get(lane)?.has(key) ?? false;
  }

  *[Symbol.iterator](): IterableIterator<Line> {
    for (const keys of this.#lanes.values()) yield* keys.values();
  }
}

/**
 * The lines that one transaction has locked. Everybody locks them before any of their tasks, in one order, and lets them
 * go on before the commit.
 */
export class HeldLines {
  readonly #names: Names;
  readonly #session: Session;
  readonly #held = new LineSet();

  constructor(names: Names, session: Session) {
    this.#names = names;
    this.#session = session;
  }

  holds(line: Line | undefined): boolean {
    return !line || this.#held.has(line);
  }

  get isEmpty(): boolean {
    return this.#held.isEmpty;
  }

  /** A condition on `lane` and `ordering_key`: of an ordered task whose line is not locked. */
  notHeld(params: Params): string {
    const isOrdered = 'ordering_key IS NOT NULL';
    if (this.isEmpty) return isOrdered;
    const held = [...this.#held];
    const lanes = params.add(
      encodeArray(
        'text',
        held.map(({ lane }) => lane),
      ),
    );
    const keys = params.add(
      encodeArray(
        'text',
        held.map(({ key }) => key),
      ),
    );
    return `${isOrdered} AND (lane, ordering_key) NOT IN (SELECT * FROM unnest(${lanes}::text[], ${keys}::text[]))`;
  }

  /** `patience`: a condition that sets how long to wait; the transaction's own limit unless given. */
  async lock(lines: Iterable<Line>, patience = ''): Promise<void> {
    const wanted = sorted(lines).filter((line) => !this.#held.has(line));
    if (wanted.length === 0) return;
    const params = new Params();
    await this.#session.query(lockLinesText(this.#names, wanted, params, patience), params.values);
    for (const line of wanted) this.#held.add(line);
  }

  /** Locks what it can get without waiting. */
  async take(lines: Iterable<Line>): Promise<void> {
    const wanted = sorted(lines);
    if (wanted.length === 0) return;
    const params = new Params();
    const rows = await this.#session.query(
      takeLinesText(this.#names, wanted, params),
      params.values,
    );
    for (const [n] of rows) this.#held.add(wanted[numberOf(n) - 1]);
  }

  /** Gives the turn to whom it belongs, in all that are held. */
  async advance(wake: Wake): Promise<void> {
    if (this.#held.isEmpty) return;
    const params = new Params();
    const rows = await this.#session.query(
      advanceText(this.#names, [...this.#held], params),
      params.values,
    );
    for (const [lane, inMs] of rows) wake.add(lane as string, Math.ceil(numberOf(inMs)));
  }

  /** Deletes those of them that nobody stands in. */
  async dropEmpty(): Promise<void> {
    if (this.#held.isEmpty) return;
    const params = new Params();
    const text = dropLinesText(this.#names, [...this.#held], params);
    await this.#session.query(text, params.values);
  }
}

/** How many lines a look at them takes at once. */
const SWEEP = 1000;

/** Housekeeping: a line that nobody needs is deleted, and one whose turn was forgotten goes on. */
export class LineKeeper {
  readonly #database: Database;
  readonly #names: Names;
  /** Where the next look begins. */
  #after: Line | undefined;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  /** Goes on where the last call has ended. */
  async sweep(looks: number, wake: Wake): Promise<void> {
    for (let look = 0; look < looks; look++) {
      const { lane = '', key = '' } = this.#after ?? {};
      const rows = await this.#database.queryAgain(sweepText(this.#names), [lane, key, SWEEP]);
      const lines = rows.map(([name, orderingKey, isOld, isEmpty, isForgotten]) => ({
        line: { lane: name as string, key: orderingKey as string },
        isUnused: isTrue(isOld) && isTrue(isEmpty),
        isForgotten: isTrue(isForgotten),
      }));
      await this.#drop(lines.flatMap(({ line, isUnused }) => (isUnused ? [line] : [])));
      const forgotten = lines.flatMap(({ line, isForgotten }) => (isForgotten ? [line] : []));
      await this.#letGoOn(forgotten, wake);
      this.#after = lines.length < SWEEP ? undefined : lines.at(-1)?.line;
      if (!this.#after) return;
    }
  }

  async #drop(lines: readonly Line[]): Promise<void> {
    if (lines.length === 0) return;
    await this.#database.transaction(async (session) => {
      const params = new Params();
      const taken = takeLinesText(this.#names, lines, params);
      const rows = await session.query(taken, params.values);
      const free = rows.map(([n]) => lines[numberOf(n) - 1]!);
      if (free.length === 0) return;
      // In a second statement: it sees whoever took a place before the lock was had.
      const dropParams = new Params();
      const text = dropLinesText(this.#names, free, dropParams);
      await session.query(text, dropParams.values);
    });
  }

  async #letGoOn(lines: readonly Line[], wake: Wake): Promise<void> {
    if (lines.length === 0) return;
    await this.#database.transaction(async (session) => {
      const held = new HeldLines(this.#names, session);
      await held.take(lines);
      await held.advance(wake);
    });
  }
}

/** Rows for lines that have none. They are not locked by it. */
export async function addLines(session: Session, names: Names, lines: Iterable<Line>) {
  const params = new Params();
  await session.query(addLinesText(names, sorted(lines), params), params.values);
}

function sorted(lines: Iterable<Line>): Line[] {
  const each = lines instanceof LineSet ? lines : new LineSet(lines);
  return [...each].sort((a, b) => compare(a.lane, b.lane) || compare(a.key, b.key));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

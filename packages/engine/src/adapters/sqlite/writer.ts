import type { Clock } from 'redrive';
import type { Hint } from '../../ports/schedule.ts';
import type { Database } from './database.ts';
import { Aftermath } from './schedule/lines.ts';
import type { Statements } from './statements.ts';
import type { Watchers } from './watch.ts';

/** Writes tasks: what was touched goes on in the same commit, and who waits for it is told after. */
export class Writer {
  readonly #database: Database<Statements>;
  readonly #clock: Clock;
  readonly #watchers: Watchers;

  constructor(database: Database<Statements>, clock: Clock, watchers: Watchers) {
    this.#database = database;
    this.#clock = clock;
    this.#watchers = watchers;
  }

  /** The time is that of the lock, not of the call. `work` may be called again. */
  write<R>(work: Work<R>): Promise<R> {
    return this.#told(this.#database.write(this.#whole(work)));
  }

  /** The same for what ends work that was begun before: see `Database.writeEnd`. */
  writeEnd<R>(work: Work<R>): Promise<R> {
    return this.#told(this.#database.writeEnd(this.#whole(work)));
  }

  #whole<R>(work: Work<R>): (statements: Statements) => Written<R> {
    return (statements) => {
      const nowMs = this.#clock.now();
      const after = new Aftermath();
      const done = work(statements, nowMs, after);
      statements.turns.advance(after);
      return { result: done, hint: after.wake.hint(nowMs) };
    };
  }

  async #told<R>(written: Promise<Written<R>>): Promise<R> {
    const { result, hint } = await written;
    if (hint) this.#watchers.tell(hint);
    return result;
  }
}

type Work<R> = (statements: Statements, nowMs: number, after: Aftermath) => R;

interface Written<R> {
  result: R;
  hint: Hint | undefined;
}

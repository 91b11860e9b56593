import { setTimeout } from 'node:timers/promises';
import type { VirtualClock } from 'redrive/testing';

/** One promise of a port, for any test runner: `for (const one of suite) test(one.name, one.run)`. */
export interface ConformanceCase {
  /** A sentence about behaviour, after the method that it is about. */
  readonly name: string;
  /** The capability without which it says nothing. */
  readonly needs?: string;
  /** Why it must be left out: what it needs is declared to be missing. */
  readonly skip?: string;
  /** Rejects where the promise is broken. Each run is on its own: nothing is shared with other cases. */
  readonly run: () => Promise<void>;
}

type Body<Stage> = (stage: Stage) => Promise<void>;

/** The cases of one method, by their sentences. */
export type CaseTable<Stage, Need extends string> = Readonly<
  Record<string, Body<Stage> | { needs: Need; run: Body<Stage> }>
>;

/** Cases that can be run, from tables by method. */
export function casesOf<Stage, Need extends string>(
  tables: Readonly<Record<string, CaseTable<Stage, Need>>>,
  capabilities: Readonly<Record<Need, boolean>>,
  perform: (body: Body<Stage>) => Promise<void>,
): ConformanceCase[] {
  return Object.entries(tables).flatMap(([method, table]) =>
    Object.entries(table).map(([sentence, entry]) => {
      const body = typeof entry === 'function' ? entry : entry.run;
      const name = `${method}: ${sentence}`;
      const run = () => perform(body);
      if (typeof entry === 'function') return { name, run };
      const { needs } = entry;
      return capabilities[needs]
        ? { name, needs, run }
        : { name, needs, run, skip: `declared as not ${needs}` };
    }),
  );
}

/** One case for each of several names. */
export function each<Name extends string, Stage>(
  names: readonly Name[],
  sentence: (name: Name) => string,
  body: (name: Name, stage: Stage) => Promise<void>,
): Record<string, Body<Stage>> {
  return Object.fromEntries(
    names.map((name) => [sentence(name), (stage: Stage) => body(name, stage)]),
  );
}

/** Cases that all need the same capability. */
export function needing<Stage, Need extends string>(
  needs: Need,
  table: Readonly<Record<string, Body<Stage>>>,
): Record<string, { needs: Need; run: Body<Stage> }> {
  return Object.fromEntries(Object.entries(table).map(([name, run]) => [name, { needs, run }]));
}

/** Waits for something to become true; `what` is the subject of the sentence when it does not. */
export type Until = (what: string, condition: () => boolean | Promise<boolean>) => Promise<void>;

/** Below what test runners allow a test, so that the sentence of the failure is heard. */
const PATIENCE_MS = 25_000;
const POLL_MS = 2;

/** As long as a busy machine may take, and no longer. A virtual clock is moved on meanwhile. */
export function patient(patienceMs = PATIENCE_MS, clock?: VirtualClock): Until {
  return async (what, condition) => {
    const startMs = performance.now();
    while (!(await condition())) {
      if (performance.now() - startMs > patienceMs) {
        throw new Error(`${what} did not come within ${patienceMs} ms.`);
      }
      await clock?.advance(POLL_MS);
      await setTimeout(POLL_MS);
    }
  };
}

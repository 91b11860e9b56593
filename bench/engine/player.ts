/** One contestant: a queue at its best settings, in a process of its own. Every figure comes from its own clock. */
export interface Player {
  /** Makes its tables in an empty place: the URL of a server, or the path of a file. */
  open(place: string): Promise<void>;
  /** Stores tasks that are due now, in batches of 1000. The ms until the last of them was safe. */
  schedule(tasks: number): Promise<number>;
  /** Does what `schedule` stored. The ms from the start of the first to the durable completion of the last. */
  execute(tasks: number): Promise<number>;
  /** Stores tasks that are due evenly over a span, and does them. How many ms after its due time each was started. */
  drift?(tasks: number, spanMs: number): Promise<number[]>;
  close(): Promise<void>;
}

/** What every task carries: 256 bytes as JSON. */
export interface Work {
  n: number;
  dueAtMs: number;
  text: string;
}

export const BATCH = 1000;
/** For everybody: with fewer the server waits for batches, with more it gains nothing. */
export const BATCHES_AT_ONCE = 4;
const PAYLOAD_BYTES = 256;
/** Time to store what is due later, before the first of it is. */
export const LEAD_MS = 1000;

export function workOf(n: number, dueAtMs = 0): Work {
  const bare = JSON.stringify({ n, dueAtMs, text: '' }).length;
  return { n, dueAtMs, text: 'x'.repeat(PAYLOAD_BYTES - bare) };
}

/** The work of a case in batches, made beforehand: to make it is nobody's job. */
export function batchesOf<T>(tasks: number, make: (n: number) => T): T[][] {
  const batches: T[][] = [];
  for (let n = 0; n < tasks; n++) {
    if (n % BATCH === 0) batches.push([]);
    batches.at(-1)?.push(make(n));
  }
  return batches;
}

/** When each of so many tasks is due. */
export function dueTimes(tasks: number, spanMs: number): (n: number) => number {
  const startMs = Date.now() + LEAD_MS;
  return (n) => startMs + Math.floor((n * spanMs) / tasks);
}

/** Does the work for each, some at once, and resolves to the ms that took. */
export async function timed<T>(
  list: readonly T[],
  work: (one: T) => Promise<unknown>,
  atOnce = BATCHES_AT_ONCE,
): Promise<number> {
  const startMs = performance.now();
  let next = 0;
  const line = async () => {
    while (next < list.length) await work(list[next++] as T);
  };
  await Promise.all(Array.from({ length: atOnce }, line));
  return performance.now() - startMs;
}

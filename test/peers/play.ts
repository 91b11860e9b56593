/** A call that is watched for an hour, for libraries to be compared by. */
import { advance, watch } from './lab.ts';

export interface Outcome {
  /** When it was called, in ms. */
  calls: number[];
  state: string;
  /** The result, or the message of the error. */
  end: unknown;
  atMs: number;
}

/** What a call does over an hour. The n-th attempt does `script(n)`. */
export async function play(
  call: (fn: (attempt: number) => Promise<unknown>) => Promise<unknown>,
  script: (attempt: number) => unknown,
): Promise<Outcome> {
  const startedAt = Date.now();
  const calls: number[] = [];
  const outcome = watch(
    call(async () => {
      calls.push(Date.now() - startedAt);
      return script(calls.length);
    }),
  );
  await advance(3_600_000);
  const { state, value, error, atMs } = outcome;
  return { calls, state, end: state === 'resolved' ? value : messageOf(error), atMs };
}

function messageOf(error: unknown): unknown {
  return error instanceof Error ? `${error.name}: ${error.message}` : error;
}

export const down = () => {
  throw new Error('down');
};
export const failTwice = (attempt: number) => (attempt < 3 ? down() : 'done');
export const throwing = (error: unknown) => () => {
  throw error;
};

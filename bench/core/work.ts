/** The work that every contestant is given: one and the same function, which counts its executions. */

export const ANSWER = 42;

export type Work = () => Promise<number>;

const nothing: unknown = undefined;
let executions = 0;
let heard = 0;

/** The usual work: it truly waits for something once. */
export async function work(): Promise<number> {
  executions += 1;
  await nothing;
  return ANSWER;
}

/** Work that waits for nothing. */
export async function trivialWork(): Promise<number> {
  executions += 1;
  return ANSWER;
}

/** Work with a look at its own signal, as a call of `fetch` would take. */
export async function signalledWork(signal: AbortSignal): Promise<number> {
  executions += 1;
  await nothing;
  return signal.aborted ? -1 : ANSWER;
}

/** Made once: the cost of a stack trace would be all that is measured. No library knows what it means. */
export const plainError = new Error('the service had a hiccup');

/** One that names its reason by a code. */
export const codedError = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** Work whose every third execution succeeds: for calls that follow one another. */
export function failingWork(error: Error): Work {
  let turn = 0;
  return async () => {
    executions += 1;
    await nothing;
    turn += 1;
    if (turn % 3 !== 0) throw error;
    return ANSWER;
  };
}

export function listener(): void {
  heard += 1;
}

/** Throws unless there was exactly so much work for so many calls since it was last asked. */
export function checker(executionsPerCall: number, heardPerCall = 0): (calls: number) => void {
  return (calls) => {
    const counted = [executions, heard];
    executions = heard = 0;
    const wanted = [calls * executionsPerCall, calls * heardPerCall];
    if (String(counted) === String(wanted)) return;
    throw new Error(
      `${calls} calls made ${counted.join(' executions and ')} events instead of ${wanted.join(' and ')}`,
    );
  };
}

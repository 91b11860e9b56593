import { collectGarbage, type Contestant, type Effort } from '../harness.ts';
import { loop } from '../loop.ts';
import type { Case, Result } from '../result.ts';
import { fullContestants } from './full.ts';
import { patientCallers } from './plain.ts';
import { crowds } from './two-failures.ts';
import { ANSWER, checker, work } from './work.ts';

/** What compiled code and the heap's own bookkeeping come to when spread over the calls. */
const NOISE_BYTES = 1;

export const memory: Case = {
  name: 'memory',
  about: 'bytes of heap left behind per call, over a million calls that work at once',
  run: (effort) => weigh(plainContestants(), effort),
};

export const memoryFull: Case = {
  name: 'memory-full',
  about: 'the same with timeout, deadline, listener, and one signal for all of the calls',
  run: (effort) => weigh(fullContestants(true), effort),
};

export const memoryFailures: Case = {
  name: 'memory-failures',
  about: 'the same with two failures before success, a thousand calls at once',
  run: (effort) => weigh(crowds(), effort),
};

function plainContestants(): Contestant[] {
  return Object.entries(patientCallers()).map(([name, caller]) => {
    return { name, call: caller(work), expected: ANSWER, check: checker(1) };
  });
}

async function weigh(contestants: readonly Contestant[], effort: Effort): Promise<Result> {
  const { memoryCalls } = effort;
  // What is made once, compiled code among it, is there before the count begins.
  for (const contestant of contestants) await callTimes(contestant, memoryCalls / 5);
  const peers: Record<string, number> = {};
  for (const contestant of contestants) {
    const before = await heapBytes();
    await callTimes(contestant, memoryCalls);
    peers[contestant.name] = ((await heapBytes()) - before) / memoryCalls;
  }
  const { redrive = Number.NaN, ...others } = peers;
  return {
    metric: 'bytes',
    redrive,
    peers: others,
    verdicts: [
      {
        target: `nothing retained per call (less than ${NOISE_BYTES} byte)`,
        measured: `${redrive.toFixed(3)} bytes`,
        met: redrive < NOISE_BYTES,
      },
    ],
  };
}

async function callTimes(contestant: Contestant, ops: number): Promise<void> {
  const { call, expected, opsPerCall = 1, check } = contestant;
  await loop(call, ops / opsPerCall, expected);
  check?.(ops);
}

async function heapBytes(): Promise<number> {
  // The most thorough kind: others keep unused code for a while, and letting go of it later looks like a gain.
  for (let i = 0; i < 4; i++) await collectGarbage('last-resort');
  return process.memoryUsage().heapUsed;
}

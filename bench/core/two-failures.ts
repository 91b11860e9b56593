import type { Contestant } from '../harness.ts';
import { race } from '../race.ts';
import { type Case, type Result, smallest, times, type Verdict } from '../result.ts';
import { eagerCallers, waitFloors, waitingCallers } from './plain.ts';
import { ANSWER, checker, codedError, failingWork, plainError } from './work.ts';

export const twoFailures: Case = {
  name: 'two-failures',
  about: 'two failures with a plain Error, then success, without delay; one call after another',
  async run(effort) {
    const result = await race(oneByOne(plainError), effort);
    return { ...result, verdicts: judge(result), notes: waitFloors, waitingCallers };
  },
};

export const twoFailuresCoded: Case = {
  name: 'two-failures-coded',
  about: 'the same with an error that has a code, ECONNRESET',
  async run(effort) {
    const result = await race(oneByOne(codedError), effort);
    return { ...result, verdicts: judge(result), notes: waitFloors, waitingCallers };
  },
};

const CROWD = 1000;

export const twoFailuresCrowd: Case = {
  name: 'two-failures-crowd',
  about: `the same with ${CROWD} calls at once: the CPU time of each, waiting left out`,
  async run(effort) {
    const result = await race(crowds(), effort);
    return { ...result, verdicts: judge(result), notes: waitFloors, waitingCallers };
  },
};

function oneByOne(error: Error): Contestant[] {
  const check = checker(3);
  return Object.entries(eagerCallers()).map(([name, caller]) => {
    const waits = waitingCallers.has(name);
    return { name, call: caller(failingWork(error)), expected: ANSWER, waits, check };
  });
}

/** Every call has work of its own, for each must fail twice by itself. */
export function crowds(): Contestant[] {
  const check = checker(3);
  return Object.entries(eagerCallers()).map(([name, caller]) => {
    const call = async (): Promise<number> => {
      const calls: Promise<number>[] = [];
      for (let i = 0; i < CROWD; i++) calls.push(caller(failingWork(plainError))());
      return (await Promise.all(calls)).reduce((total, one) => total + one, 0);
    };
    return { name, call, expected: ANSWER * CROWD, opsPerCall: CROWD, check };
  });
}

function judge({ redrive, peers }: Result): Verdict[] {
  const fastest = smallest(peers);
  const lead = Number(peers[fastest]) / redrive;
  return [
    {
      target: `faster than every peer; the fastest is ${fastest}`,
      measured: times(lead),
      met: lead > 1,
    },
  ];
}

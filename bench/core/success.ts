import { type Contestant, type Effort } from '../harness.ts';
import { race } from '../race.ts';
import { type Case, type Result, smallest, times, type Verdict } from '../result.ts';
import { patientCallers } from './plain.ts';
import { ANSWER, checker, trivialWork, type Work, work } from './work.ts';

export const success: Case = {
  name: 'success',
  about: 'a first attempt that works; the work awaits once',
  async run(effort) {
    const result = await race(contestants(work), effort);
    return { ...result, verdicts: judge(result) };
  },
};

export const successTrivial: Case = {
  name: 'success-trivial',
  about: 'the same; the work awaits nothing, so that overhead shows most',
  run: (effort: Effort) => race(contestants(trivialWork), effort),
};

function contestants(given: Work): Contestant[] {
  const check = checker(1);
  const calls = Object.entries(patientCallers()).map(([name, caller]): Contestant => {
    return { name, call: caller(given), expected: ANSWER, check };
  });
  return [{ name: 'bare', call: given, expected: ANSWER, check }, ...calls];
}

function judge({ redrive, peers }: Result): Verdict[] {
  const { bare = Number.NaN, ...others } = peers;
  const fastest = smallest(others);
  const overhead = redrive / bare;
  const lead = Number(others[fastest]) / redrive;
  return [
    { target: 'at most 1.5 × a bare await', measured: times(overhead), met: overhead <= 1.5 },
    {
      target: `at least 1.3 × faster than the fastest peer, ${fastest}`,
      measured: times(lead),
      met: lead >= 1.3,
    },
  ];
}

import { decideRoute, type RouteContext } from 'redrive';
import type { Contestant } from '../harness.ts';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { benchPolicy, MIX, questions } from './policy.ts';

const TARGET = 500_000;

export const deciding: Case = {
  name: 'decide',
  about: `one routing decision with its explanation, 10 providers and 10 rules; ${MIX}`,
  async run(effort) {
    const result = await race(
      [contestant('redrive', 10), contestant('100 rules', 100), contestant('1000 rules', 1000)],
      effort,
      'ops/s',
    );
    const { '100 rules': hundred = Number.NaN, '1000 rules': thousand = Number.NaN } = result.peers;
    // Per rule: the cost that grows with the rules, from 100 to 1000, against that from 10 to 100.
    const small = (1 / hundred - 1 / result.redrive) / 90;
    const large = (1 / thousand - 1 / hundred) / 900;
    return {
      ...result,
      verdicts: [
        {
          target: 'at least 500 000/s on one core',
          measured: `${Math.round(result.redrive / 1000)} 000/s`,
          met: result.redrive >= TARGET,
        },
        {
          target: 'linear to 1000 rules: a rule costs at most 1.5 × what it costs among 100',
          measured: `${(large * 1e9).toFixed(1)} ns after ${(small * 1e9).toFixed(1)} ns a rule`,
          met: large <= small * 1.5,
        },
      ],
      notes: ['100 and 1000 rules: the same questions, whose rules stand at the end of the list'],
    };
  },
};

function contestant(name: string, rules: number): Contestant {
  const policy = benchPolicy(rules);
  const asked = questions(policy);
  const options = { seed: 1234567, nowMs: 1_800_000_000_000 };
  let turn = 0;
  return {
    name,
    call() {
      turn = turn === 99 ? 0 : turn + 1;
      return decideRoute(policy, asked[turn] as RouteContext, options).result === 'error';
    },
    expected: false,
    sync: true,
  };
}

import { definePolicy, type Policy, simulate, type World } from 'redrive';
import { describe, expect, it } from 'vitest';
import { advise } from './advice.ts';
import { compare } from './compare.ts';

const world: World = { clients: 200, outage: '5s', capacity: 40, spread: 100 };

describe('the advice', () => {
  it('names a number of attempts that is enough, as a simulation with it shows', () => {
    const policy: Policy = { maxAttempts: 4, base: 500 };
    const [sentence] = advice(policy);
    const enough = Number(
      /^\d+ clients ran out of attempts\. With maxAttempts (\d+)/.exec(sentence!)![1],
    );
    expect(simulate({ ...policy, maxAttempts: enough }, world).gaveUp).toEqual({});
    expect(simulate({ ...policy, maxAttempts: enough - 1 }, world).gaveUp).not.toEqual({});
  });

  it('says so when more attempts alone do not help', () => {
    const [sentence] = advice({ strategy: 'fixed', base: 1 }, { ...world, outage: '1h' });
    expect(sentence).toBe(
      '200 clients ran out of attempts. More attempts alone do not help: let them wait longer (base, multiplier, cap).',
    );
  });

  it('names a jitter that is kinder to the service', () => {
    const policy: Policy = { jitter: 'none', maxAttempts: 30, base: 500, cap: 5000 };
    const sentence = advice(policy).find((each) => each.includes('jitter'));
    expect(sentence).toMatch(
      /^With jitter '(full|equal|decorrelated)' instead of 'none' .* not 200/,
    );
  });

  it('is content with a policy that brings everybody through gently', () => {
    expect(advice({ jitter: 'full', maxAttempts: 20, base: 500, cap: 8000 })).toEqual([
      'Everybody got through, and no other jitter would be clearly kinder to the service.',
    ]);
  });

  it('points at work that was done in vain', () => {
    const impatient: Policy = { attemptTimeout: 100, maxAttempts: 3 };
    const text = advice(impatient, { ...world, queue: '1s', outage: 0 }).join('\n');
    expect(text).toMatch(/attempts ended by attemptTimeout or deadline/);
  });
});

function advice(policy: Policy, changed = world): string[] {
  return advise(compare(definePolicy(policy), changed));
}

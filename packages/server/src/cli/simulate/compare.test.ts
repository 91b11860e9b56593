import { definePolicy, simulate } from 'redrive';
import { describe, expect, it } from 'vitest';
import { compare, jitters } from './compare.ts';

const world = { clients: 50, outage: 300 } as const;

describe('the comparison', () => {
  it('plays the same policy and world with each jitter', () => {
    const policy = definePolicy({ base: 100, deadline: '3s' });
    const { simulations, own } = compare(policy, world);
    expect([...simulations.keys()]).toEqual(jitters);
    expect(own).toEqual(simulate(policy, world));
    expect(simulations.get('none')).toEqual(
      simulate({ base: 100, deadline: '3s', jitter: 'none' }, world),
    );
  });

  it('leaves out a jitter that does not go with the policy', () => {
    const { simulations } = compare(definePolicy({ strategy: 'linear' }), world);
    expect([...simulations.keys()]).toEqual(jitters.filter((name) => name !== 'decorrelated'));
  });

  it('has the jitter of the policy in any case', () => {
    const { simulations } = compare(definePolicy({ jitter: 'equal' }), world, ['none', 'full']);
    expect([...simulations.keys()]).toEqual(['equal', 'none', 'full']);
  });

  it('changes the jitter of what a policy overrides too', () => {
    const overrides = { ECONNREFUSED: { base: 300, jitter: 'full' } } as const;
    const { simulations } = compare(definePolicy({ overrides }), world, ['none']);
    const none = {
      jitter: 'none',
      overrides: { ECONNREFUSED: { base: 300, jitter: 'none' } },
    } as const;
    expect(simulations.get('none')).toEqual(simulate(none, world));
  });
});

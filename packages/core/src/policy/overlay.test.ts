import { describe, expect, it } from 'vitest';
import { overlay } from './overlay.ts';
import { type DefinedPolicy, definePolicy } from './policy.ts';
import type { Policy } from './policy-fields.ts';
import { presets } from './presets.ts';

const usual = { policy: presets.scheduler, origin: 'the default' };

/** Laid over the scheduler's, in this order. */
function laid(...policies: Policy[]): DefinedPolicy {
  return overlay([
    usual,
    ...policies.map((policy, i) => ({ policy, origin: `the policy of layer ${i + 1}` })),
  ]);
}

describe('policies laid over each other', () => {
  it('change the fields that they write, the nearest last', () => {
    const policy = laid({ base: '5s', maxAttempts: 9 }, { maxAttempts: 4 }, {});
    expect(policy).toMatchObject({ maxAttempts: 4, base: 5000, cap: 60_000, jitter: 'add' });
    expect(policy).toMatchObject({ jitterAdd: 1000, retryOn: ['transient'] });
    expect(laid().fingerprint).toBe(presets.scheduler.fingerprint);
  });

  it('are defined policies: complete, frozen, and the same as when written at once', () => {
    const policy = laid({ maxAttempts: 7 }, { deadline: '1h' });
    const atOnce = definePolicy({
      ...(Object.fromEntries(Object.entries(presets.scheduler)) as Policy),
      maxAttempts: 7,
      deadline: '1h',
    });
    expect(policy.fingerprint).toBe(atOnce.fingerprint);
    expect(Object.isFrozen(policy)).toBe(true);
  });

  it('leave out what is undefined', () => {
    expect(laid({ base: undefined }).base).toBe(2000);
  });

  it('begin with the last one that says everything', () => {
    const whole = definePolicy({ maxAttempts: 2, base: '7s' });
    expect(laid({ deadline: '1m' }, whole)).toBe(whole);
    const wire = JSON.parse(JSON.stringify(whole)) as Policy;
    expect(laid({ deadline: '1m' }, wire).fingerprint).toBe(whole.fingerprint);
    expect(laid({ deadline: '1m' }, whole, { maxAttempts: 3 })).toMatchObject({
      maxAttempts: 3,
      base: 7000,
      deadline: undefined,
      jitter: 'full',
    });
    const { hardCap: _, ...almost } = wire;
    expect(laid({ deadline: '1m' }, almost).deadline).toBe(60_000);
  });

  it('are the defaults where there are none', () => {
    expect(overlay([]).fingerprint).toBe(definePolicy().fingerprint);
    const one = { policy: { maxAttempts: 2 }, origin: 'here' };
    expect(overlay([one, one]).fingerprint).toBe(definePolicy({ maxAttempts: 2 }).fingerprint);
  });

  it('replace lists and overrides as a whole', () => {
    const policy = laid(
      { retryOn: ['any'], overrides: { 429: { base: '9s' }, 503: { maxAttempts: 2 } } },
      { retryOn: ['E1'], overrides: { 429: { cap: '2m' } } },
    );
    expect(policy.retryOn).toEqual(['E1']);
    expect(policy.for('429')).toMatchObject({ base: 2000, cap: 120_000 });
    expect(policy.for('503')).toBeUndefined();
  });

  it('keep overrides of a wider one, over the numbers of the nearer', () => {
    const policy = laid({ cap: '30s', overrides: { 429: { cap: '30s' } } }, { cap: '5m' });
    expect(policy.cap).toBe(300_000);
    expect(policy.for('429')).toMatchObject({ cap: 30_000, base: 2000 });
  });
});

describe('fields that belong together', () => {
  it('are replaced together: a schedule and its strategy', () => {
    const policy = laid({ schedule: ['1s', '2m'] });
    expect(policy).toMatchObject({ strategy: 'schedule', schedule: [1000, 120_000], cap: 120_000 });
    expect(laid({ schedule: ['1s'] }, { strategy: 'fixed' })).toMatchObject({
      strategy: 'fixed',
      schedule: undefined,
    });
    expect(laid({ strategy: 'linear' }, { schedule: ['3s'] })).toMatchObject({
      strategy: 'schedule',
      schedule: [3000],
    });
    expect(laid({ schedule: ['1s'] }, { strategy: 'schedule' }).schedule).toEqual([1000]);
  });

  it('are replaced together: longer delays are not cut by a cap of a wider policy', () => {
    expect(laid({ base: '10m' })).toMatchObject({ base: 600_000, cap: 600_000 });
    expect(laid({ base: '10m', cap: '1m' })).toMatchObject({ base: 600_000, cap: 60_000 });
  });

  it('and do not fit are refused, with where each was written', () => {
    const why = (...policies: Policy[]) => {
      try {
        return laid(...policies);
      } catch (error) {
        return error;
      }
    };
    expect(why({ jitter: 'decorrelated' }, { strategy: 'fixed' })).toMatchObject({
      code: 'INVALID_POLICY',
      faults: [
        {
          path: 'jitter',
          message:
            "the jitter 'decorrelated' goes with the strategy 'exponential' only, not with 'fixed'. Here: strategy from the policy of layer 2, jitter from the policy of layer 1.",
        },
      ],
    });
    expect(why({ schedule: ['1s'] }, { jitter: 'decorrelated' })).toMatchObject({
      faults: [
        {
          message: expect.stringContaining(
            'Here: strategy from the policy of layer 1, jitter from the policy of layer 2.',
          ),
        },
      ],
    });
    expect(why({ base: '1s' }, { strategy: 'schedule' })).toMatchObject({
      faults: [
        {
          path: 'schedule',
          message: expect.stringContaining('Here: strategy from the policy of layer 2.'),
        },
      ],
    });
    expect(
      why({ overrides: { 429: { strategy: 'fixed' } } }, { jitter: 'decorrelated' }),
    ).toMatchObject({
      faults: [
        {
          path: 'overrides.429.jitter',
          message: expect.stringContaining(
            'overrides from the policy of layer 1, strategy from the default, jitter from the policy of layer 2',
          ),
        },
      ],
    });
  });
});

it('lists every fault of every layer', () => {
  const layers = [{ retries: 3 }, { base: 'soon', cap: -1 }] as object[];
  expect(() => laid(...layers)).toThrow(
    expect.objectContaining({
      code: 'INVALID_POLICY',
      faults: [
        expect.objectContaining({ path: 'retries' }),
        expect.objectContaining({ path: 'base' }),
        expect.objectContaining({ path: 'cap' }),
      ],
    }),
  );
  expect(() => laid(5 as Policy)).toThrow(
    '5 is not an object of options such as { maxAttempts: 3 }.',
  );
  expect(() => laid(null as unknown as Policy)).toThrow(
    'null is not an object of options such as { maxAttempts: 3 }.',
  );
});

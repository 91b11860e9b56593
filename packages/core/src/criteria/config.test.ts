import { describe, expect, it } from 'vitest';
import { criterionConfig, criterionDefaults, criterionSettings, layerConfig } from './config.ts';
import type { CriterionChoice, CriterionSettings } from './config.ts';
import { ConfigError } from '../errors.ts';

const faultsOf = (settings: unknown, choice?: CriterionChoice): ConfigError => {
  try {
    criterionConfig(settings as CriterionSettings, choice);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('the settings were accepted');
};

describe('criterionConfig', () => {
  it('gives the documented defaults', () => {
    expect(criterionConfig()).toEqual({
      defaultRetryDelaySeconds: 60,
      defaultBackoffMultiplier: 2,
      defaultMaxDelaySeconds: 3600,
      enableExponentialBackoff: true,
      enableJitter: true,
      jitterPercentage: 0.1,
      responseTimeoutMs: 2000,
      calculationNodesTags: 'retry-timing',
      context: 'retry-delay-check',
      attachEntity: true,
    });
  });

  it('gives the defaults in production and shorter delays in development', () => {
    expect(criterionConfig({ profile: 'production' })).toEqual(criterionDefaults);
    expect(criterionConfig({ profile: 'development' })).toEqual({
      ...criterionDefaults,
      defaultRetryDelaySeconds: 5,
      defaultMaxDelaySeconds: 60,
    });
  });

  it('lets the choice of profile outrank that of the settings', () => {
    const config = criterionConfig({ profile: 'development' }, { profile: 'production' });
    expect(config).toEqual(criterionDefaults);
  });

  it('lays the settings over the profile and the named set over the settings', () => {
    const settings: CriterionSettings = {
      profile: 'development',
      defaultRetryDelaySeconds: 10,
      jitterPercentage: 0.2,
      sets: { payment: { jitterPercentage: 0.5 } },
    };
    const config = criterionConfig(settings, { operationType: 'payment' });
    expect(config).toEqual({
      ...criterionDefaults,
      defaultRetryDelaySeconds: 10,
      defaultMaxDelaySeconds: 60,
      jitterPercentage: 0.5,
    });
  });

  it('chooses the set by operation type, else by context, else none', () => {
    const sets = { payment: { responseTimeoutMs: 1 }, nightly: { responseTimeoutMs: 2 } };
    const timeoutFor = (choice: CriterionChoice): number =>
      criterionConfig({ sets }, choice).responseTimeoutMs;
    expect(timeoutFor({ operationType: 'payment', context: 'nightly' })).toBe(1);
    expect(timeoutFor({ operationType: 'refund', context: 'nightly' })).toBe(2);
    expect(timeoutFor({ context: 'nightly' })).toBe(2);
    expect(timeoutFor({ operationType: 'refund', context: 'weekly' })).toBe(2000);
    expect(timeoutFor({ operationType: ['payment'] })).toBe(2000);
    expect(timeoutFor({ operationType: 'constructor', context: '__proto__' })).toBe(2000);
    expect(criterionConfig({}, { operationType: 'payment' }).responseTimeoutMs).toBe(2000);
  });

  it('takes a field that is there but undefined for absent', () => {
    const settings = { profile: undefined, sets: undefined, jitterPercentage: undefined };
    expect(criterionConfig(settings as object)).toEqual(criterionDefaults);
  });

  it('cannot be changed afterwards, and given again is the same', () => {
    const config = criterionConfig({ jitterPercentage: 0.3 });
    expect(Object.isFrozen(config)).toBe(true);
    expect(criterionConfig(config, { profile: 'development' })).toBe(config);
  });

  it('does not change the settings it was given', () => {
    const settings = Object.freeze({ jitterPercentage: 0.3, sets: Object.freeze({}) });
    expect(criterionConfig(settings).jitterPercentage).toBe(0.3);
    expect(criterionDefaults.jitterPercentage).toBe(0.1);
  });

  it('lists every fault at once, with its path and a suggestion', () => {
    const error = faultsOf(
      {
        defaultRetryDelaySeconds: '60',
        enableJiter: true,
        profil: 'development',
        profile: 'developmnt',
        sets: { payment: { jitterPercentage: 10, contxt: 'x' }, refund: 5 },
        zzz: 1,
      },
      { profile: 'staging' as 'production' },
    );
    expect(error.code).toBe('INVALID_CONFIG');
    expect(error.faults.map(({ path, code, message }) => [path, code, message])).toEqual([
      ['defaultRetryDelaySeconds', 'INVALID_VALUE', "'60' is not a whole number, 0 or more."],
      ['enableJiter', 'UNKNOWN_FIELD', "there is no such setting. Did you mean 'enableJitter'?"],
      ['profil', 'UNKNOWN_FIELD', "there is no such setting. Did you mean 'profile'?"],
      ['zzz', 'UNKNOWN_FIELD', 'there is no such setting.'],
      [
        'profile',
        'INVALID_VALUE',
        "'developmnt' is not development or production. Did you mean 'development'?",
      ],
      ['sets.payment.jitterPercentage', 'INVALID_VALUE', '10 is not a share from 0 to 1.'],
      ['sets.payment.contxt', 'UNKNOWN_FIELD', "there is no such setting. Did you mean 'context'?"],
      ['sets.refund', 'INVALID_VALUE', '5 is not an object.'],
      ['choice.profile', 'INVALID_VALUE', "'staging' is not development or production."],
    ]);
    expect(error.message).toContain('The criterion has faults in its settings:');
    expect(error.message).toContain('sets.payment.contxt');
  });

  it('refuses a profile or a set within a set', () => {
    const error = faultsOf({ sets: { a: { profile: 'development', sets: {} } } });
    expect(error.faults.map((fault) => fault.path)).toEqual(['sets.a.profile', 'sets.a.sets']);
  });

  it('lists a hundred faults and no more, of fields and of sets', () => {
    const fields = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`f${n}`, 1]));
    expect(faultsOf(fields).faults).toHaveLength(100);
    const sets = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`s${n}`, 1]));
    expect(faultsOf({ sets }).faults).toHaveLength(100);
    expect(faultsOf({ sets: { a: fields, b: fields } }).faults).toHaveLength(100);
  });

  it.each([
    [null, 'null'],
    [5, '5'],
    ['x', "'x'"],
    [[], 'a list of 0'],
  ])('refuses %j as settings, as sets and as a set', (value, shown) => {
    const fault = { code: 'INVALID_VALUE', message: `${shown} is not an object.` };
    expect(faultsOf(value).faults).toEqual([{ path: '', ...fault }]);
    expect(faultsOf({ sets: value }).faults).toEqual([{ path: 'sets', ...fault }]);
    expect(faultsOf({ sets: { a: value } }).faults).toMatchObject([{ path: 'sets.a' }]);
  });

  it('refuses a profile that is no text', () => {
    expect(faultsOf({ profile: 5 }).faults).toMatchObject([
      { path: 'profile', message: '5 is not development or production.' },
    ]);
    expect(faultsOf({ profile: 'toString' }).faults).toMatchObject([{ path: 'profile' }]);
  });

  it.each([
    ['defaultRetryDelaySeconds', 'a whole number, 0 or more', [0, 5, 1e9], [-1, 0.5, Infinity]],
    ['defaultBackoffMultiplier', 'a positive number', [0.5, 1, 3], [0, -1, Infinity]],
    ['defaultMaxDelaySeconds', 'a whole number, 1 or more', [1, 60], [0, 0.5, -1, Infinity]],
    ['enableExponentialBackoff', 'true or false', [true, false], [0]],
    ['enableJitter', 'true or false', [true, false], [0]],
    ['jitterPercentage', 'a share from 0 to 1', [0, 0.5, 1], [-0.1, 1.1]],
    ['responseTimeoutMs', 'a positive number', [1, 0.5], [0, -1, Infinity]],
    ['calculationNodesTags', 'a text of 1 or more characters', ['a,b'], ['', 5]],
    ['context', 'a text of 1 or more characters', ['c'], ['', 5]],
    ['attachEntity', 'true or false', [true, false], [0]],
  ])('wants for %s %s', (name, expected, good, bad) => {
    for (const value of good) {
      expect(criterionConfig({ [name]: value })).toHaveProperty(name, value);
    }
    const wrongType = typeof good[0] === 'string' ? true : 'true';
    for (const value of [...bad, wrongType, null, Number.NaN, {}]) {
      const { faults } = faultsOf({ [name]: value });
      expect(faults).toMatchObject([{ path: name, code: 'INVALID_VALUE' }]);
      expect(faults[0]?.message).toMatch(new RegExp(` is not ${expected}\\.$`));
    }
  });
});

describe('criterionSettings', () => {
  const settings: CriterionSettings = {
    profile: 'development',
    jitterPercentage: 0.2,
    sets: { payment: { defaultRetryDelaySeconds: 300 }, nightly: { enableJitter: false } },
  };

  it('makes no difference to what an evaluation uses', () => {
    const checked = criterionSettings(settings);
    const choices: CriterionChoice[] = [
      {},
      { operationType: 'payment' },
      { operationType: 'refund', context: 'nightly' },
      { operationType: 'payment', context: 'nightly' },
      { operationType: '__proto__', context: 'constructor' },
      { operationType: ['payment'] },
    ];
    for (const choice of choices) {
      expect(layerConfig(checked, choice)).toEqual(layerConfig(settings, choice));
      expect(layerConfig({ ...checked }, choice)).toEqual(layerConfig(settings, choice));
    }
    expect(criterionConfig(checked, { operationType: 'payment' })).toEqual(
      criterionConfig(settings, { operationType: 'payment' }),
    );
  });

  it('does not follow what is changed in the settings afterwards', () => {
    const sets = { payment: { defaultRetryDelaySeconds: 300 } };
    const checked = criterionSettings({ sets });
    sets.payment.defaultRetryDelaySeconds = 1;
    expect(layerConfig(checked, { operationType: 'payment' }).defaultRetryDelaySeconds).toBe(300);
    expect(checked.sets).toEqual({ payment: { defaultRetryDelaySeconds: 300 } });
    expect([checked, checked.sets, checked.sets?.['payment']].every(Object.isFrozen)).toBe(true);
  });

  it('looks at each set a few times, however many there are', () => {
    let reads = 0;
    const set = Object.defineProperty({}, 'jitterPercentage', {
      enumerable: true,
      get: () => (reads += 1) && 0.1,
    });
    const names = Array.from({ length: 200 }, (_, n) => `s${n}`);
    criterionSettings({ sets: Object.fromEntries(names.map((name) => [name, set])) });
    expect(reads).toBeLessThan(200 * 10);
  });

  it('refuses what criterionConfig refuses', () => {
    expect(() => criterionSettings({ sets: { a: { jitterPercentage: 5 } } })).toThrow(ConfigError);
    expect(() => criterionSettings(null as never)).toThrow(ConfigError);
    expect(criterionSettings()).toEqual({ ...criterionDefaults, sets: {} });
  });
});

describe('layerConfig', () => {
  it('takes settings as they are, faults and all', () => {
    const settings = { jitterPercentage: 'much', sets: 5, profile: 'none' } as object;
    const config = layerConfig(settings, { operationType: 'payment' });
    expect(config).toEqual({ ...criterionDefaults, jitterPercentage: 'much' });
    expect(layerConfig(5 as never, {})).toEqual(criterionDefaults);
  });
});

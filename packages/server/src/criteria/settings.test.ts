import { criterionConfig, type CriterionSettings } from 'redrive';
import { describe, expect, it } from 'vitest';
import { settingsFaults, SettingsInForce } from './settings.ts';

const configured: CriterionSettings = {
  defaultRetryDelaySeconds: 10,
  sets: { payment: { defaultRetryDelaySeconds: 300, jitterPercentage: 0.5 } },
};

function delayOf(given: CriterionSettings | undefined, operationType?: string): number {
  const settings = new SettingsInForce(configured).of(given);
  return criterionConfig(settings, { operationType }).defaultRetryDelaySeconds;
}

it.each([
  ['the configured field', undefined, undefined, 10],
  ['the configured set', undefined, 'payment', 300],
  ['a field of the request', { defaultRetryDelaySeconds: 5 }, undefined, 5],
  ['a field of the request, before a set', { defaultRetryDelaySeconds: 5 }, 'payment', 5],
  ['a new set', { sets: { refund: { defaultRetryDelaySeconds: 7 } } }, 'refund', 7],
  ['a set of the request', { sets: { payment: { defaultRetryDelaySeconds: 7 } } }, 'payment', 7],
  [
    'what a set of the request leaves',
    { sets: { payment: { enableJitter: false } } },
    'payment',
    300,
  ],
  [
    'a set with the name of a prototype',
    { sets: { constructor: { defaultRetryDelaySeconds: 7 } } },
    'constructor',
    7,
  ],
] as const)('takes %s', (_, given, operationType, seconds) => {
  expect(delayOf(given, operationType)).toBe(seconds);
});

it('gives the same object for settings that read the same', () => {
  const settings = new SettingsInForce(configured);
  const given = { enableJitter: false };
  expect(settings.of(given)).toBe(settings.of({ ...given }));
  expect(settings.of(given)).not.toBe(settings.of({ enableJitter: true }));
});

it('counts settings with faults as none', () => {
  const settings = new SettingsInForce(configured);
  expect(settings.of({ jitterPercentage: 7 })).toBe(settings.usual);
});

describe('the settings of a request', () => {
  it('lay over a configured set of any name', () => {
    const sets = JSON.parse('{"__proto__": {"defaultRetryDelaySeconds": 7}}') as object;
    const used = new SettingsInForce({ sets: { ...sets } }).of({ enableJitter: false });
    expect(Object.entries(used.sets ?? {})).toEqual([
      ['__proto__', { defaultRetryDelaySeconds: 7, enableJitter: false }],
    ]);
  });

  it('hold a thousand sets and no more', () => {
    const setsOf = (length: number) =>
      Object.fromEntries(Array.from({ length }, (_, n) => [`s${n}`, {}]));
    expect(settingsFaults({ sets: setsOf(1000) })).toEqual([]);
    const message = 'has 1001 sets; 1000 are allowed. Send those that the entities need.';
    expect(settingsFaults({ sets: setsOf(1001) })).toEqual([
      { path: 'sets', code: 'INVALID_VALUE', message },
    ]);
  });
});

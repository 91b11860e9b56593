import { describe, expect, it } from 'vitest';
import { settingsFaults, SettingsInForce } from './settings.ts';

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

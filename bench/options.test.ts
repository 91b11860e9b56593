import { describe, expect, it } from 'vitest';
import { readOptions } from './options.ts';
import { suiteNames } from './suites.ts';

describe('readOptions', () => {
  it('reads suites, cases in a list or one by one, and flags', () => {
    const args = ['core', '--json', '--case', 'success,full', '--case', 'decide', '--quick'];
    expect(readOptions(args)).toEqual({
      suites: ['core'],
      cases: ['success', 'full', 'decide'],
      json: true,
      quick: true,
      strict: false,
      help: false,
      faults: [],
    });
  });

  it('names a suite that does not exist, and those that do', () => {
    expect(readOptions(['cores']).faults).toEqual([
      `no suite cores; there are: ${suiteNames.join(', ')}`,
    ]);
  });

  it('names an option that does not exist', () => {
    expect(readOptions(['core', '--fast']).faults[0]).toContain('--fast');
  });
});

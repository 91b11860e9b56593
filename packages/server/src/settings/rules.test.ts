import type { Fault } from 'redrive';
import { describe, expect, it } from 'vitest';
import { readRules } from './rules.ts';

function faultsOf(rule: object): string[] {
  const faults: Fault[] = [];
  readRules([{ class: 'business', ...rule }], faults);
  return faults.map(({ path, message }) => `${path} ${message}`);
}

describe('a rule', () => {
  it.each([
    { words: ['out of stock'] },
    { codes: ['E1'] },
    { names: ['CardError'] },
    { statuses: [409] },
    { words: ['x'], codes: ['E1'] },
  ])('is fine with %j', (rule) => {
    expect(faultsOf(rule)).toEqual([]);
  });

  // It would never match, and its author would never learn that.
  it.each(['words', 'codes', 'names', 'statuses'])('has a fault where %s is empty', (name) => {
    const fault = [expect.stringMatching(new RegExp(`^rules\\.0\\.${name} is not a list of 1 to`))];
    expect(faultsOf({ [name]: [] })).toEqual(fault);
    expect(faultsOf({ codes: ['E1'], words: ['x'], [name]: [] })).toEqual(fault);
  });

  it.each([
    { words: [' '] },
    { words: ['x', ''] },
    { words: 'x' },
    { codes: [7] },
    { statuses: ['409'] },
  ])('has a fault with %j', (rule) => {
    expect(faultsOf(rule)).toHaveLength(1);
  });

  it('has a fault without any condition', () => {
    expect(faultsOf({})).toEqual(['rules.0 matches nothing: give codes, names, statuses, words.']);
  });
});

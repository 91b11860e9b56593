import { describe, expect, it } from 'vitest';
import { line, tally } from './tally.ts';

const clean = {
  numPassedTests: 7,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  testResults: [{ status: 'passed', assertionResults: [{ status: 'passed' }] }],
};

const count = (report: object, exitCode = 0) => line(tally(JSON.stringify(report), exitCode));

describe('the last line of a CI run', () => {
  it('counts what passed and failed', () => {
    expect(count(clean)).toBe('7 passed, 0 failed');
    expect(count({ ...clean, numFailedTests: 2 }, 1)).toBe('7 passed, 2 failed');
  });

  it('counts skipped tests apart from both', () => {
    const report = { ...clean, numPendingTests: 2, numTodoTests: 1 };
    expect(tally(JSON.stringify(report), 0)).toEqual({
      passed: 7,
      failed: 0,
      skipped: 3,
      failures: [],
    });
    expect(count(report)).toBe('7 passed, 0 failed');
  });

  it('counts a file that could not be loaded as one failure', () => {
    const broken = { status: 'failed', assertionResults: [] };
    expect(count({ ...clean, testResults: [broken, broken] }, 1)).toBe('7 passed, 2 failed');
  });

  it('does not count a file twice when its failure is a test', () => {
    const file = { status: 'failed', assertionResults: [{ status: 'failed' }] };
    expect(count({ ...clean, numFailedTests: 1, testResults: [file] }, 1)).toBe(
      '7 passed, 1 failed',
    );
  });

  it('fails when the runner failed for a reason that no test shows', () => {
    expect(count(clean, 1)).toBe('7 passed, 1 failed');
  });

  it('names what failed and why, since the output of the run may be cut off', () => {
    const test = { status: 'failed', fullName: 'a b', failureMessages: ['Error: no\n at x'] };
    const files = [
      { name: 'one.test.ts', status: 'failed', assertionResults: [test] },
      { name: 'two.test.ts', status: 'failed', message: 'cannot load', assertionResults: [] },
    ];
    const report = { ...clean, numFailedTests: 1, testResults: files };
    expect(tally(JSON.stringify(report), 1).failures).toEqual([
      'one.test.ts: a b\n    Error: no\n     at x',
      'two.test.ts\n    cannot load',
    ]);
    expect(tally(JSON.stringify(clean), 3).failures).toEqual([
      'the runner ended with 3, though no test failed',
    ]);
    expect(tally(undefined, 1).failures).toEqual(['the runner left no report']);
  });

  it('fails when the runner crashed before it could report', () => {
    expect(line(tally(undefined, 1))).toBe('0 passed, 1 failed');
    expect(line(tally(undefined, 0))).toBe('0 passed, 1 failed');
    expect(line(tally('{"numPassed', 1))).toBe('0 passed, 1 failed');
  });
});

import { describe, expect, it } from 'vitest';
import { checker, failingWork, listener, plainError, work } from './work.ts';

describe('the work of the contestants', () => {
  it('is counted, and a contestant that executes too little or too much is found out', async () => {
    const check = checker(1, 1);
    await work();
    listener();
    expect(() => check(1)).not.toThrow();
    await work();
    await work();
    listener();
    expect(() => check(1)).toThrow('1 calls made 2 executions and 1 events instead of 1 and 1');
    // What was found out is not held against the next one.
    expect(() => check(0)).not.toThrow();
  });

  it('fails twice before it succeeds, again and again', async () => {
    const failing = failingWork(plainError);
    for (let i = 0; i < 2; i++) {
      await expect(failing()).rejects.toBe(plainError);
      await expect(failing()).rejects.toBe(plainError);
      await expect(failing()).resolves.toBe(42);
    }
  });
});

import { memorySticky } from 'redrive';
import { describe, test } from 'vitest';
import { stickySuite } from '../../testing/sticky-suite.ts';

describe('sticky sessions in memory', () => {
  const cases = stickySuite({
    open: async (now) => ({ store: memorySticky({ now }), close: async () => undefined }),
  });
  for (const { name, skip, run: assertCase } of cases) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }
});

import { defineConfig } from 'vitest/config';

/** For `npm run mutation`: the tests of the pure modules only, and fewer runs of each property. */
export default defineConfig({
  test: {
    testTimeout: 60_000,
    include: [
      'packages/core/src/{decide*,policy/*,options/*}.test.ts',
      'packages/core/src/failure/*.test.ts',
      'packages/core/src/criteria/*.test.ts',
    ],
    // The oracle asks 100 000 times, which is too long for each mutant. The tests beside it must find them.
    exclude: ['packages/core/src/criteria/oracle.test.ts'],
  },
});

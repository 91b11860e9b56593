import { defineConfig } from 'vitest/config';

/** For `npm run mutation`: the tests of the pure modules only, and fewer runs of each property. */
export default defineConfig({
  test: {
    testTimeout: 60_000,
    include: [
      'packages/core/src/{backoff,decide,policy,policy-faults,fields,duration,random}*.test.ts',
      'packages/core/src/{evidence,classify,retry-after}*.test.ts',
      'packages/core/src/criteria/*.test.ts',
    ],
  },
});

/** `npm run mutation`: changes the pure modules line by line, and looks whether a test notices. */
export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  mutate: [
    'packages/core/src/{decide,policy/{backoff,policy,duration,random},options/fields,failure/retry-after}.ts',
    'packages/core/src/failure/{evidence,classify,classify-text}.ts',
    'packages/core/src/criteria/{config,time,entity,delay,elapsed,next,limits,evaluate}.ts',
  ],
  vitest: { configFile: 'vitest.mutation.config.ts' },
  // Stryker reads a tsconfig with the compiler's old API, which TypeScript 7 no longer has, and needs none here.
  tsconfigFile: 'none',
  coverageAnalysis: 'perTest',
  ignoreStatic: true,
  concurrency: 2,
  reporters: ['clear-text', 'progress', 'json'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: 'reports/mutation.json' },
};

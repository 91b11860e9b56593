import { gzipSync } from 'node:zlib';
import { build, type Plugin } from 'rolldown';
import type { Case, Result } from '../result.ts';

/** What a bundle with nothing but the library's plain retry imports. */
const entries: Record<string, string> = {
  redrive: `export { retry } from 'redrive';`,
  'p-retry': `export { default } from 'p-retry';`,
  cockatiel: `export { handleAll, retry } from 'cockatiel';`,
  'exponential-backoff': `export { backOff } from 'exponential-backoff';`,
  'async-retry': `export { default } from 'async-retry';`,
  // Its parts are no functions by themselves, so this is the least that makes one.
  effect: `import { retry, runPromise, tryPromise } from 'effect/Effect';
    export default (fn, options) => runPromise(retry(tryPromise(fn), options));`,
};

export const bundle: Case = {
  name: 'bundle',
  about: 'the plain retry alone, bundled, minified and gzipped at level 9',
  run: () => weigh(5000, 'with policy checks and classification'),
};

export const bundleSmall: Case = {
  name: 'bundle-small',
  about: 'everything of redrive/small: the same loop without policy checks and classification',
  run: () => weigh(5500, 'without checks and classification', `export * from 'redrive/small';`),
};

async function weigh(limit: number, what: string, own = entries['redrive'] ?? ''): Promise<Result> {
  const sizes: Record<string, number> = {};
  for (const [name, code] of Object.entries({ ...entries, redrive: own })) {
    sizes[name] = await size(code);
  }
  const { redrive = Number.NaN, ...peers } = sizes;
  return {
    metric: 'bytes',
    redrive,
    peers,
    verdicts: [
      {
        target: `under ${limit / 1000} kB ${what}`,
        measured: `${redrive} bytes`,
        met: redrive < limit,
      },
    ],
  };
}

async function size(code: string): Promise<number> {
  const { output } = await build({
    input: 'entry',
    cwd: import.meta.dirname,
    platform: 'browser',
    write: false,
    logLevel: 'silent',
    plugins: [entry(code)],
    output: { format: 'esm', minify: true, comments: false },
  });
  return output.reduce(
    (total, part) => total + (part.type === 'chunk' ? gzipSync(part.code, { level: 9 }).length : 0),
    0,
  );
}

function entry(code: string): Plugin {
  return {
    name: 'entry',
    resolveId: (id) => (id === 'entry' ? `${import.meta.dirname}/entry.js` : undefined),
    load: (id) => (id.endsWith('/bench/core/entry.js') ? code : undefined),
  };
}

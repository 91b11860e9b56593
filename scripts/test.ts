/**
 * `npm test -- [filters and vitest options]`: one run of every test, vitest's own summary last.
 * `npm run test:long` runs those of whole processes instead (test/e2e) and those of PostgreSQL on its oldest version, `npm run test:storm` those that take a minute and
 * more each.
 * With REDRIVE_TEST_REPORT=<file> the run also leaves vitest's JSON report there.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const vitest = fileURLToPath(new URL('./vitest.mjs', import.meta.resolve('vitest/package.json')));
const report = process.env['REDRIVE_TEST_REPORT'];
const reporters = report
  ? [
      '--reporter=default',
      '--reporter=./test/services/reporter.ts',
      '--reporter=json',
      `--outputFile.json=${report}`,
    ]
  : [];

const { kind, args } = options(process.argv.slice(2));
const run = spawnSync(process.execPath, [vitest, 'run', ...reporters, ...args], {
  stdio: 'inherit',
  env: {
    // The many processes of a run load the same source: compiled once, a start takes a third of the time.
    NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)),
    ...process.env,
    ...(kind === undefined ? {} : { REDRIVE_TESTS: kind }),
  },
});
// A run that was killed has no status: that is a failure too.
process.exitCode = run.status ?? 1;

function options(given: string[]): { kind: string | undefined; args: string[] } {
  const asked = ['long', 'storm'].find((name) => given.includes(`--${name}`));
  return { kind: asked, args: given.filter((arg) => arg !== `--${asked}`) };
}

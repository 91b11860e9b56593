/**
 * `npm test -- [filters and vitest options]`: one run of every test, vitest's own summary last.
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

const run = spawnSync(process.execPath, [vitest, 'run', ...reporters, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
// A run that was killed has no status: that is a failure too.
process.exitCode = run.status ?? 1;

/**
 * `node scripts/tally.ts <report.json> <exit code> [<report.json> <exit code> ...]`: the last line of a
 * CI run, `N passed, N failed`, from vitest's own JSON reports.
 */
import { readFileSync } from 'node:fs';

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

interface Report {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: { status: string; assertionResults: { status: string }[] }[];
}

/**
 * Counts what the runner reported. The report alone can look better than the run was: a file that
 * does not load has no failed tests, an unhandled error belongs to none, a crash leaves no report.
 */
export function tally(reportText: string | undefined, exitCode: number): Tally {
  const report = parse(reportText);
  if (!report) return { passed: 0, failed: 1, skipped: 0 };
  const brokenFiles = report.testResults.filter(
    (file) =>
      file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  );
  const failed = report.numFailedTests + brokenFiles.length;
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

export function line({ passed, failed }: Tally): string {
  return `${passed} passed, ${failed} failed`;
}

function parse(text: string | undefined): Report | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Report);
  } catch {
    return undefined;
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  const result = { passed: 0, failed: 0, skipped: 0 };
  for (let i = 0; i < args.length || i === 0; i += 2) {
    const one = tally(read(args[i] ?? ''), Number(args[i + 1] ?? '1'));
    result.passed += one.passed;
    result.failed += one.failed;
    result.skipped += one.skipped;
  }
  if (result.skipped > 0) console.log(`${result.skipped} skipped`);
  console.log(line(result));
  process.exitCode = result.failed > 0 ? 1 : 0;
}

/**
 * `node scripts/tally.ts <report.json> <exit code> [<report.json> <exit code> ...]`: the last line of a
 * CI run, `N passed, N failed`, from vitest's own JSON reports.
 */
import { readFileSync } from 'node:fs';

const REASON_LINES = 12;

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  /** What failed, by name. */
  failures: string[];
}

interface Report {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: FileResult[];
}

interface FileResult {
  name: string;
  status: string;
  message?: string;
  assertionResults: { status: string; fullName: string; failureMessages?: string[] }[];
}

/**
 * Counts what the runner reported. The report alone can look better than the run was: a file that
 * does not load has no failed tests, an unhandled error belongs to none, a crash leaves no report.
 */
export function tally(reportText: string | undefined, exitCode: number): Tally {
  const report = parse(reportText);
  if (!report) {
    return { passed: 0, failed: 1, skipped: 0, failures: ['the runner left no report'] };
  }
  const brokenFiles = report.testResults.filter(
    (file) =>
      file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  );
  const failed = report.numFailedTests + brokenFiles.length;
  const isUnexplained = failed === 0 && exitCode !== 0;
  return {
    passed: report.numPassedTests,
    failed: isUnexplained ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
    failures: [
      ...report.testResults.flatMap(failedTests),
      ...brokenFiles.map(({ name, message }) => withReason(name, message)),
      ...(isUnexplained ? [`the runner ended with ${exitCode}, though no test failed`] : []),
    ],
  };
}

function failedTests({ name, assertionResults }: FileResult): string[] {
  return assertionResults
    .filter(({ status }) => status === 'failed')
    .map((test) => withReason(`${name}: ${test.fullName}`, test.failureMessages?.[0]));
}

/** With the first lines of why: the run's own output may be long gone. */
function withReason(name: string, reason = ''): string {
  return [name, ...reason.split('\n').slice(0, REASON_LINES)].join('\n    ').trimEnd();
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
  const result: Tally = { passed: 0, failed: 0, skipped: 0, failures: [] };
  for (let i = 0; i < args.length || i === 0; i += 2) {
    const one = tally(read(args[i] ?? ''), Number(args[i + 1] ?? '1'));
    result.passed += one.passed;
    result.failed += one.failed;
    result.skipped += one.skipped;
    result.failures.push(...one.failures);
  }
  for (const failure of result.failures) console.log(`✗ ${failure}`);
  if (result.skipped > 0) console.log(`${result.skipped} skipped`);
  console.log(line(result));
  process.exitCode = result.failed > 0 ? 1 : 0;
}

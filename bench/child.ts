/** One case in a process of its own, so that no case runs on what an earlier one left compiled. */
import { quickEffort, usualEffort } from './harness.ts';
import { MissingServer } from './missing.ts';
import type { NotRun, Result } from './result.ts';
import { loadSuite } from './suites.ts';

const [suiteName = '', caseName = '', effort = ''] = process.argv.slice(2);
const suite = await loadSuite(suiteName);
const found = suite.cases.find(({ name }) => name === caseName);
if (!found) throw new Error(`no case ${caseName} in ${suiteName}`);
const outcome: Result | NotRun = await found
  .run(effort === 'quick' ? quickEffort : usualEffort)
  .catch((error: unknown) => {
    if (!(error instanceof MissingServer)) throw error;
    return { notRun: error.message };
  });
process.send?.(outcome, () => {
  // Not only disconnected: a peer may go on connecting to a server that has ended.
  process.exit();
});

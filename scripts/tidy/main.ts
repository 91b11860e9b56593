/** `npm run tidy`: the repository's own rules, each with a test that shows it can fail. */
import { join } from 'node:path';
import { deadExports } from './rules/dead-exports.ts';
import { brokenLinks, lostPages } from './rules/docs.ts';
import { errorCodes } from './rules/error-codes.ts';
import { focusedTests } from './rules/focused-tests.ts';
import { layering } from './rules/layering.ts';
import { fileLength, lockfileHosts, machinePaths, markers } from './rules/leftovers.ts';
import { purity } from './rules/purity.ts';
import { readTree, type Rule } from './tree.ts';

const rules: Rule[] = [
  layering,
  purity,
  deadExports,
  errorCodes,
  fileLength,
  markers,
  focusedTests,
  machinePaths,
  lockfileHosts,
  brokenLinks,
  lostPages,
];

const tree = readTree(join(import.meta.dirname, '..', '..'));
const findings = rules.flatMap((rule) => rule(tree));
for (const { path, line, rule, message } of findings) {
  console.log(`${path}:${line}  ${rule}  ${message}`);
}
console.log(
  findings.length === 0
    ? `tidy: ${rules.length} rules, ${tree.paths.length} files`
    : `\ntidy: ${findings.length} broken`,
);
process.exitCode = findings.length === 0 ? 0 : 1;

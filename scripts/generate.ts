/**
 * Writes what is derived from the source: the JSON Schema of a policy and the table of its reference page.
 * `--check` only compares, and fails when something is out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format } from 'node:util';
import { peersTable } from '../test/peers/table.ts';
import { describeFields, policySchema, policyTable } from './policy-reference.ts';

const root = new URL('../', import.meta.url);
const source = readFileSync(new URL('packages/core/src/policy-fields.ts', root), 'utf8');
const descriptions = describeFields(source);

const outputs: Record<string, (before: string) => string> = {
  'packages/core/retry-policy.schema.json': () =>
    `${JSON.stringify(policySchema(descriptions), null, 2)}\n`,
  'README.md': (before) =>
    between(before, '<!-- peers -->', '<!-- /peers -->', `${peersTable()}\n`),
  'docs/reference/policy.md': (before) =>
    between(before, '<!-- fields -->', '<!-- /fields -->', policyTable(descriptions)),
};

let stale = 0;
for (const [path, make] of Object.entries(outputs)) {
  const file = fileURLToPath(new URL(path, root));
  const before = read(file);
  const after = make(before);
  if (after === before) continue;
  if (process.argv.includes('--check')) {
    stale += 1;
    console.error(format('%s is out of date: run `npm run generate`.', path));
  } else {
    writeFileSync(file, after);
    console.log(format('wrote %s', path));
  }
}
process.exitCode = stale > 0 ? 1 : 0;

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

function between(text: string, start: string, end: string, content: string): string {
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${start} ... ${end} not found`);
  return `${text.slice(0, from + start.length)}\n\n${content}\n${text.slice(to)}`;
}

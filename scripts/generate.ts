/**
 * Writes what is derived from the source: the JSON Schemas of policies, the tables of reference pages, and the example of
 * a configuration.
 * `--check` only compares, and fails when something is out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format } from 'node:util';
import { httpReference } from '../packages/server/src/http/reference.ts';
import { metricsTable } from '../packages/server/src/observe/metrics/metrics-page.ts';
import { peersTable } from '../test/peers/table.ts';
import { auditSchema, auditTables } from './audit-reference.ts';
import { configurationTables, dotenvExample, otherTable } from './configuration-reference.ts';
import { cliReference } from './cli-reference.ts';
import { describeFields, policySchema, policyTable } from './policy-reference.ts';
import { describeRoutingFields, routingSchema, routingTables } from './routing-reference.ts';

const root = new URL('../', import.meta.url);
const [cli, api] = await Promise.all([cliReference(), httpReference()]);
const source = readFileSync(new URL('packages/core/src/policy/policy-fields.ts', root), 'utf8');
const descriptions = describeFields(source);
const routing = describeRoutingFields(
  readFileSync(new URL('packages/core/src/routing/routing-fields.ts', root), 'utf8'),
);

const outputs: Record<string, (before: string) => string> = {
  'packages/core/retry-policy.schema.json': () =>
    `${JSON.stringify(policySchema(descriptions), null, 2)}\n`,
  'packages/core/policy.schema.json': () => `${JSON.stringify(routingSchema(routing), null, 2)}\n`,
  'packages/core/audit-event.schema.json': () => `${JSON.stringify(auditSchema(), null, 2)}\n`,
  'docs/reference/audit-events.md': (before) =>
    between(before, '<!-- events -->', '<!-- /events -->', auditTables()),
  'docs/reference/routing-policy.md': (before) =>
    between(before, '<!-- fields -->', '<!-- /fields -->', routingTables(routing)),
  'README.md': (before) =>
    between(before, '<!-- peers -->', '<!-- /peers -->', `${peersTable()}\n`),
  'docs/reference/policy.md': (before) =>
    between(before, '<!-- fields -->', '<!-- /fields -->', policyTable(descriptions)),
  'docs/reference/configuration.md': (before) =>
    between(
      between(before, '<!-- variables -->', '<!-- /variables -->', configurationTables()),
      ...(['<!-- others -->', '<!-- /others -->', otherTable()] as const),
    ),
  'packages/server/.env.example': () => dotenvExample(),
  'docs/reference/metrics.md': (before) =>
    between(before, '<!-- metrics -->', '<!-- /metrics -->', metricsTable()),
  'docs/reference/cli.md': () => cli,
  'docs/reference/http-api.md': () => api,
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

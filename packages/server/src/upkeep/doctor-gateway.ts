import { guardedConnections } from '@redrive/engine/http';
import { ProviderRegistry } from '../gateway/provider-registry.ts';
import {
  listPolicyFiles,
  parsePolicyText,
  PROVIDERS_FILE,
  readPolicyFile,
} from '../routing/policy-file.ts';
import { allowOf } from '../settings/join.ts';
import type { Settings } from '../settings/settings.ts';
import { countOf, type Finding, findingsAbout } from './finding.ts';

const finding = findingsAbout('gateway');
const MAX_FINDINGS = 20;
const silent = { info: () => undefined, warn: () => undefined };

/** The providers of the gateway as their file is now, and the policies that miss one. */
export async function examineGateway(settings: Settings): Promise<Finding[]> {
  const { routingDir: dir, routingGateway, variables: env } = settings;
  if (dir === undefined || routingGateway === 'off') return [];
  const connections = guardedConnections({ allow: allowOf(settings) });
  const book = new ProviderRegistry({
    read: (known) => readPolicyFile(dir, PROVIDERS_FILE, known),
    env,
    idleMs: settings.routingGatewayIdleMs,
    connections,
    log: silent,
  });
  await book.reload();
  connections.close();
  const { fault } = book;
  if (fault) {
    const each = fault.faults.map(({ path, code, message }) => `${path}: ${code}: ${message}`);
    const whats = each.length > 0 ? each : [`${fault.code}: ${fault.message}`];
    return whats
      .slice(0, MAX_FINDINGS)
      .map((what) => finding('broken', `${PROVIDERS_FILE}: ${what}`, 'Correct the file.'));
  }
  const missing = await policiesWithout(book, dir);
  const findings = [
    ...missing.slice(0, MAX_FINDINGS),
    finding('fine', `${countOf(book.names.length, 'provider')} in ${PROVIDERS_FILE}.`),
  ];
  const { unrepeated } = book;
  if (unrepeated) findings.push(finding('note', unrepeated.what, unrepeated.advice));
  return findings;
}

async function policiesWithout(book: ProviderRegistry, dir: string): Promise<Finding[]> {
  const found: Finding[] = [];
  // A folder that cannot be read is told by the look at the policies.
  const { names } = await listPolicyFiles(dir).catch(() => ({ names: [] }));
  for (const name of names) {
    const file = await readPolicyFile(dir, name);
    if (file === undefined || file === 'same' || 'fault' in file) continue;
    const parsed = parsePolicyText(file.text, file.id);
    if ('fault' in parsed) continue;
    const missing = parsed.policy.providers.filter((one) => !book.names.includes(one.name));
    for (const one of missing) {
      const what = `${name}: the provider '${one.name}' is not in ${PROVIDERS_FILE}.`;
      found.push(finding('broken', what, 'Add it, or take it out of the policy.'));
    }
  }
  return found;
}

import { listPolicyFiles, parsePolicyText, readPolicyFile } from '../routing/policy-file.ts';
import type { Settings } from '../settings/settings.ts';
import { countOf, type Finding, findingsAbout } from './finding.ts';

const finding = findingsAbout('routing');
const MAX_FINDINGS = 20;

/** The policies of ROUTING_DIR as their files are now. */
export async function examineRouting({ routingDir }: Settings): Promise<Finding[]> {
  if (routingDir === undefined) return [];
  let listed: Awaited<ReturnType<typeof listPolicyFiles>>;
  try {
    listed = await listPolicyFiles(routingDir);
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    const what = `The folder ${routingDir} cannot be read (${code}).`;
    return [finding('broken', what, 'Check ROUTING_DIR, and who may read the folder.')];
  }
  const { names, left } = listed;
  const bad: Finding[] = [];
  for (const name of names) {
    const file = await readPolicyFile(routingDir, name);
    if (file === undefined || file === 'same') continue;
    const parsed = 'fault' in file ? file : parsePolicyText(file.text, file.id);
    if (!('fault' in parsed)) continue;
    const { code, message } = parsed.fault;
    bad.push(
      finding(
        'broken',
        `${name}: ${code}: ${message}`,
        'Correct the file: redrive route lint lists all faults. A server that runs goes on with the last good policy.',
      ),
    );
  }
  const shown = bad.slice(0, MAX_FINDINGS);
  if (bad.length > MAX_FINDINGS) {
    shown.push(finding('broken', `${bad.length - MAX_FINDINGS} more policies have faults.`));
  }
  if (left > 0) {
    const what = `${routingDir} has more policies than are used: ${left} of them are left out.`;
    shown.push(finding('broken', what, 'Remove some.'));
  }
  const good = names.length - bad.length;
  if (good > 0) shown.push(finding('fine', `${countOf(good, 'good file')} in ${routingDir}.`));
  if (names.length === 0) {
    const advice = 'Put a policy there: <policy_id>.json.';
    shown.push(finding('warning', `${routingDir} has no policies.`, advice));
  }
  return shown;
}

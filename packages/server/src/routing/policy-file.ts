/** Reads the policies of a folder. What cannot be used is a fault, never an exception. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isConfigError, parseRoutingPolicy, type RoutingPolicy } from 'redrive';
import { faultPlace } from '../http/reading/json-place.ts';
import { tooDeepAt } from '../json-depth.ts';

/** The gateway's file in the same folder. It is no policy. */
export const PROVIDERS_FILE = 'providers.json';

export const MAX_POLICIES = 200;
const MAX_FILE_BYTES = 256 * 1024;
const MAX_FAULTS = 100;
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** What is wrong with a file, or with the folder. */
export interface PolicyFileFault {
  code: string;
  message: string;
  /** Every fault of the policy with its path in the JSON, at most 100. */
  faults: readonly { path: string; code: string; message: string }[];
}

/** A file as it is now. `signature` differs whenever the content may differ. */
export type PolicyFile = { id: string; signature: string } & (
  | { text: string }
  | { fault: PolicyFileFault }
);

/** The names of the policies' files, sorted; and how many were left out. */
export async function listPolicyFiles(dir: string): Promise<{ names: string[]; left: number }> {
  const all = await readdir(dir);
  const names = all.filter(isPolicyFile).sort();
  return { names: names.slice(0, MAX_POLICIES), left: Math.max(0, names.length - MAX_POLICIES) };
}

/** Hidden names are those of editors and of Kubernetes (`..data`). */
function isPolicyFile(name: string): boolean {
  return name.endsWith('.json') && !name.startsWith('.') && name !== PROVIDERS_FILE;
}

/**
 * The file; undefined where it is gone. A file whose signature is `known` is not read again. The signature is that of the
 * file behind a symbolic link, and is taken before the content: a change in between shows at the next look.
 */
export async function readPolicyFile(
  dir: string,
  name: string,
  known?: string,
): Promise<PolicyFile | 'same' | undefined> {
  const id = name.slice(0, -'.json'.length);
  if (!idPattern.test(id)) {
    const message = `The name of the file is the id of its policy: up to 100 letters, digits, dots, dashes and underscores. Rename ${name.slice(0, 200)}.`;
    return { id, signature: 'name', fault: fault('INVALID_VALUE', message) };
  }
  const path = join(dir, name);
  try {
    const { dev, ino, size, mtimeNs, ctimeNs, ...kind } = await stat(path, { bigint: true });
    const signature = [dev, ino, size, mtimeNs, ctimeNs].join(':');
    if (signature === known) return 'same';
    const isFile = (kind.mode & 0o170000n) === 0o100000n;
    if (!isFile) return { id, signature, fault: fault('UNREADABLE_FILE', 'It is not a file.') };
    if (size > MAX_FILE_BYTES) {
      const message = `The file has ${size} bytes. A policy has at most ${MAX_FILE_BYTES}.`;
      return { id, signature, fault: fault('TOO_LARGE', message) };
    }
    return { id, signature, text: await readFile(path, 'utf8') };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    const message = `The file cannot be read (${code}).`;
    return { id, signature: code, fault: fault('UNREADABLE_FILE', message) };
  }
}

/** The policy in a text, or what is wrong with it. */
export function parsePolicyText(
  text: string,
  id: string,
): { policy: RoutingPolicy } | { fault: PolicyFileFault } {
  if (tooDeepAt(text) !== undefined) {
    return { fault: fault('JSON_TOO_DEEP', 'The JSON is nested more than 512 levels deep.') };
  }
  let data: unknown;
  try {
    data = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return { fault: fault('INVALID_JSON', `The file is not JSON: ${placeOf(text)}.`) };
  }
  try {
    return { policy: parseRoutingPolicy(data, { id }) };
  } catch (error) {
    return { fault: faultOf(error) };
  }
}

/** What an error of a policy or of its options says. Others are bugs. */
export function faultOf(error: unknown): PolicyFileFault {
  if (!isConfigError(error)) throw error;
  const { code, message, faults } = error;
  const [sentence = message] = message.split('\n');
  const [first] = faults;
  const at = first ? ` ${first.path || '(all)'}: ${first.message}` : '';
  const more = faults.length > 1 ? ` And ${faults.length - 1} more.` : '';
  return { code, message: `${sentence}${at}${more}`, faults: faults.slice(0, MAX_FAULTS) };
}

export function fault(code: string, message: string): PolicyFileFault {
  return { code, message, faults: [] };
}

function placeOf(text: string): string {
  const at = faultPlace(text) ?? text.length;
  const before = text.slice(0, at).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}

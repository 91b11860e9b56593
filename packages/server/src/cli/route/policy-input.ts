/** Policies and contexts as somebody names them: a file, JSON on the command line, or `-` for the standard input. */
import { readFileSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import type { RouteContext, RoutingPolicy } from 'redrive';
import { fault, parsePolicyText, type PolicyFileFault } from '../../routing/policy-file.ts';
import { CommandError, exits, type Io } from '../command.ts';
import { readJson, usageError } from '../inputs.ts';
import { unreadable } from '../terminal/lines.ts';
import { shown } from '../terminal/safe-text.ts';

const MAX_BYTES = 1024 * 1024;

/** What a policy was read from, and the policy or what is wrong with it. */
export type ReadPolicy = { name: string } & (
  | { policy: RoutingPolicy }
  | { fault: PolicyFileFault }
);

/** The id of the policy is the name of its file, as in ROUTING_DIR. */
export async function readPolicy(source: string, io: Io): Promise<ReadPolicy> {
  const { name, text } = await readSource(source, io);
  if (text === undefined) {
    const message = `It has more than ${MAX_BYTES} bytes.`;
    return { name, fault: fault('TOO_LARGE', message) };
  }
  const id = isFile(source) ? basename(source).replace(/\.json$/, '') : undefined;
  return { name, ...parsePolicyText(text, id ?? 'default') };
}

/** A policy that can be used; what is wrong with another ends the command. */
export async function usablePolicy(source: string, io: Io): Promise<RoutingPolicy> {
  const read = await readPolicy(source, io);
  if ('policy' in read) return read.policy;
  const { code, message, faults } = read.fault;
  const lines = faults.map(
    ({ path, message: why }) => `\n  ${shown(path || 'policy')}: ${shown(why)}`,
  );
  const what = lines.length > 0 ? `It has faults:${lines.join('')}` : shown(message);
  throw new CommandError(`${shown(read.name)}: ${what}`, { exit: exits.usage, code });
}

export async function readContext(source: string | undefined, io: Io): Promise<RouteContext> {
  if (source === undefined) return {};
  const { name, text } = await readSource(source, io);
  if (text === undefined)
    throw usageError(`--context: ${shown(name)} has more than ${MAX_BYTES} bytes.`);
  const data = readJson(`--context ${shown(name)}`, text.replace(/^\uFEFF/, ''));
  if (typeof data === 'object' && data !== null && !Array.isArray(data))
    return data as RouteContext;
  throw usageError(`--context: ${shown(name)} is not an object such as {"request_id": "r-1"}.`);
}

/** The text; undefined where it is too large. */
async function readSource(source: string, io: Io): Promise<{ name: string; text?: string }> {
  if (source === '-') {
    const bytes = await io.input();
    const name = 'the standard input';
    return bytes.length > MAX_BYTES ? { name } : { name, text: Buffer.from(bytes).toString() };
  }
  if (!isFile(source)) return { name: 'the JSON given', text: source };
  const path = resolve(io.cwd, source);
  try {
    // Of a pipe, such as one that a shell makes, the size is 0.
    if (statSync(path).size > MAX_BYTES) return { name: source };
    return { name: source, text: readFileSync(path, 'utf8') };
  } catch (error) {
    throw unreadable(source, error);
  }
}

function isFile(source: string): boolean {
  return source !== '-' && !/^\s*[{[]/.test(source);
}

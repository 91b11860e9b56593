/** Where a policy comes from: a file, a preset, JSON on the command line, or nowhere. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type DefinedPolicy, isConfigError, parsePolicy, presets } from 'redrive';
import { nearest } from 'redrive/internal';
import { CommandError, exits } from '../command.ts';

interface PolicySource {
  name: string;
  policy: DefinedPolicy;
}

const { categories, ...plain } = presets;
const named: Readonly<Record<string, DefinedPolicy>> = {
  ...plain,
  ...categories,
  ...Object.fromEntries(
    Object.entries(categories).map(([name, policy]) => [`categories.${name}`, policy]),
  ),
};

export function readPolicy(source: string | undefined, folder: string): PolicySource {
  if (source === undefined) {
    return { name: 'the default policy, since no file was given', policy: presets.default };
  }
  if (source.trimStart().startsWith('{')) return parse(source, 'the policy given');
  const preset = Object.hasOwn(named, source) ? named[source] : undefined;
  if (preset) return { name: `preset ${source}`, policy: preset };
  return parse(readFile(source, folder), source);
}

/** By its name alone: a file of that name is not looked for. */
export function readPreset(preset: string, source: string | undefined): PolicySource {
  if (source !== undefined) {
    throw refused(`There is a policy (${source}) and --preset ${preset}. Give one of them.`);
  }
  const policy = Object.hasOwn(named, preset) ? named[preset] : undefined;
  if (policy) return { name: `preset ${preset}`, policy };
  const near = nearest(preset, Object.keys(named));
  const meant = near === undefined ? '' : ` Did you mean ${near}?`;
  throw refused(
    `--preset: there is no preset '${preset}'.${meant}\nThere are ${Object.keys(plain).join(', ')}, and the categories.`,
  );
}

function readFile(path: string, folder: string): string {
  try {
    return readFileSync(resolve(folder, path), 'utf8');
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'ENOENT') {
      const near = nearest(path, Object.keys(named));
      const meant = near ? ` Did you mean the preset ${near}?` : '';
      throw refused(
        `There is no file ${path}, and no preset of that name.${meant}\n` +
          `Write a policy into it, for example: { "maxAttempts": 8, "base": "500ms", "cap": "20s" }`,
      );
    }
    const reason = code === 'EISDIR' ? 'it is a folder' : String(code);
    throw refused(`${path} cannot be read: ${reason}. Name a file with a policy in JSON.`);
  }
}

function parse(text: string, name: string): PolicySource {
  let data: unknown;
  try {
    // A byte order mark is how some editors begin a file; JSON knows none.
    data = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    const { message } = error as Error;
    throw refused(
      `${capital(name)} is not JSON: ${message.replace(/\.?$/, '.')}\n` +
        'Names and texts stand in double quotes; comments and commas at the end are not allowed.',
    );
  }
  try {
    return { name, policy: parsePolicy(data) };
  } catch (error) {
    if (!isConfigError(error)) throw error;
    const faults = error.faults.map(({ path, message }) => `\n  ${path || 'policy'}: ${message}`);
    throw refused(`${capital(name)} has faults:${faults.join('')}`);
  }
}

function refused(message: string): CommandError {
  return new CommandError(message, { exit: exits.usage, code: 'INVALID_POLICY' });
}

function capital(name: string): string {
  return name.startsWith('the ') ? `T${name.slice(1)}` : name;
}

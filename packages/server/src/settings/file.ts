/** The optional file for what does not fit into variables. */
import { access, readFile } from 'node:fs/promises';
import { basename, extname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { LaneOptions } from '@redrive/engine';
import type { Secret } from '@redrive/engine/http';
import type { ClassifyRule, CriterionSettings, Policy } from 'redrive';
import type { Values } from './settings.ts';

/** What `redrive.config` may say. A variable of the environment goes before the setting of the same name. */
export interface Config extends Partial<Omit<Values, 'tokens' | `criteria.${string}`>> {
  /** As in `REDRIVE_TOKENS`: `name:role:sha256`. */
  tokens?: readonly string[];
  /** The policy of what names none: the fields in which it differs from the scheduler's. */
  policy?: Policy;
  /** Policies that a request may name. */
  policies?: Readonly<Record<string, Policy>>;
  /** Limits of all lanes, and of some: `queue:orders`, `https://api.example.com`. */
  lane?: LaneOptions;
  lanes?: Readonly<Record<string, LaneOptions>>;
  /** Asked before what is built in, for the text of dead letters. */
  rules?: readonly ClassifyRule[];
  /** The settings of the criteria, with named sets of them per operation type. */
  criteria?: CriterionSettings;
  /** Credentials by the names that tasks give, or a function that finds them. */
  secrets?: Readonly<Record<string, Secret | Referring<Secret>>> | SecretFunction;
}

type SecretFunction = (
  name: string,
  origin: string,
) => Secret | undefined | Promise<Secret | undefined>;

/** A text that stands in the environment instead of in the file. */
export interface FromEnvironment {
  env: string;
}

/** The same, with texts that may stand in the environment. */
type Referring<T> = T extends string
  ? string | FromEnvironment
  : { readonly [Key in keyof T]: Key extends 'origins' ? T[Key] : Referring<T[Key]> };

/** Gives an editor the types of the file. */
export function defineConfig(config: Config): Config {
  return config;
}

type LoadedFile =
  | { type: 'none' }
  | { type: 'loaded'; name: string; config: Record<string, unknown>; warning?: string }
  | { type: 'fault'; name: string; message: string };

const names = ['redrive.config.ts', 'redrive.config.js', 'redrive.config.json'] as const;

/** The file that is named, or the first there is in the folder. */
export async function loadFile(folder: string, named: string | undefined): Promise<LoadedFile> {
  if (named !== undefined) return load(resolve(folder, named), named);
  const found: string[] = [];
  for (const name of names) if (await exists(join(folder, name))) found.push(name);
  const [first, ...others] = found;
  if (first === undefined) return { type: 'none' };
  const loaded = await load(join(folder, first), first);
  if (loaded.type !== 'loaded' || others.length === 0) return loaded;
  return { ...loaded, warning: `${first} is used, ${others.join(' and ')} is not.` };
}

async function load(path: string, name: string): Promise<LoadedFile> {
  try {
    const value =
      extname(path) === '.json' ? await readJson(path) : await importDefault(path, basename(path));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      const message = 'has no object of settings as its default export (`export default { ... }`).';
      return { type: 'fault', name, message };
    }
    return { type: 'loaded', name, config: value as Record<string, unknown> };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { type: 'fault', name, message: 'does not exist.' };
    return { type: 'fault', name, message: `cannot be used: ${message}` };
  }
}

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, 'utf8')) as unknown;
}

async function importDefault(path: string, name: string): Promise<unknown> {
  if (!(await exists(path)))
    throw Object.assign(new Error(`${name} is missing`), { code: 'ENOENT' });
  const module = (await import(pathToFileURL(path).href)) as { default?: unknown };
  return module.default;
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}

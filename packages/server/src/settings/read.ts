/** Environment, `.env` and file become settings, or every fault at once. */
import { resolve } from 'node:path';
import type { Fault } from 'redrive';
import { didYouMean, nearest } from 'redrive/internal';
import { readDotenv } from './dotenv.ts';
import { exposures } from './exposure.ts';
import { loadFile } from './file.ts';
import { joinSettings, parts } from './join.ts';
import type { Part, Settings, Values } from './settings.ts';
import { readText, readValue, type Value } from './values.ts';
import { otherNames, type Variable, type VariableName, variables } from './variables.ts';

export interface SettingsInput {
  env: Readonly<Record<string, string | undefined>>;
  /** Where `.env` and the file are looked for, and where relative paths begin. */
  cwd: string;
  /** A person looks at the log. */
  isTty?: boolean;
  /** What was said on the command line: it goes before everything else. */
  flags?: Partial<Record<VariableName, string | number>>;
  config?: string;
  only?: Part;
}

export type SettingsReading =
  | { ok: true; settings: Settings; origins: Origin[]; warnings: string[] }
  | { ok: false; faults: SettingFault[]; warnings: string[] };

/** Where a value came from: the command line, the environment, `.env`, the file, or nobody. */
export interface Origin {
  name: string;
  /** Without anything secret. */
  value: string;
  from: string;
}

export interface SettingFault {
  /** As the one who wrote it knows it: `HTTP_PORT`, `--port`, `lanes.queue:orders.concurrency`. */
  name: string;
  from: string;
  code: Fault['code'];
  message: string;
}

const COMMAND_LINE = 'the command line';
const ENVIRONMENT = 'the environment';
const NOBODY = 'default';

export async function readSettings(input: SettingsInput): Promise<SettingsReading> {
  const warnings: string[] = [];
  const faults: SettingFault[] = [];
  const dotenv = await readDotenv(input.cwd);
  if (dotenv.fault !== undefined) addFault('.env', '.env', dotenv.fault);
  const env = { ...given(dotenv.variables), ...given(input.env) };
  const file = await loadFile(input.cwd, input.config ?? env['REDRIVE_CONFIG']);
  if (file.type === 'fault') addFault(file.name, 'the configuration file', file.message);
  const config = file.type === 'loaded' ? file.config : {};
  const fileName = file.type === 'none' ? '' : file.name;
  warnings.push(...(await exposures(input.cwd, fileName === '' ? ['.env'] : ['.env', fileName])));
  if (file.type === 'loaded' && file.warning !== undefined) warnings.push(file.warning);
  warnings.push(...unknownVariables(env));
  for (const name of Object.keys(config)) {
    if (!isKnown(name)) addFault(name, fileName, unknownKey(name), 'UNKNOWN_FIELD');
  }

  const values: Record<string, unknown> = {};
  const origins: Origin[] = [];
  const faulty: string[] = [];
  for (const [name, variable] of Object.entries(variables) as [VariableName, Variable][]) {
    const written = find(name, variable);
    const usual = 'default' in variable ? variable.default : undefined;
    // Also where it is faulty, so that the rest can be looked at.
    if (usual !== undefined) values[name] = usual;
    if (written === undefined) {
      const shown = usual === undefined ? '' : [usual].flat().join(',');
      origins.push({ name: variable.env, value: shown, from: NOBODY });
    } else if (written.value.ok) {
      values[name] = written.value.value;
      origins.push({ name: variable.env, value: written.value.shown, from: written.from });
    } else {
      faulty.push(variable.env);
      addFault(written.name, written.from, written.value.message);
    }
  }

  const joined = await joinSettings({
    values: values as unknown as Values,
    written: new Set(origins.filter(({ from }) => from !== NOBODY).map(({ name }) => name)),
    config,
    env,
    cwd: input.cwd,
    isTty: input.isTty ?? false,
  });
  // One that is set wrongly has been told, and is not missing.
  const isOfFaulty = (text: string) => faulty.some((name) => text.startsWith(`${name} is not set`));
  warnings.push(...joined.warnings.filter((text) => !isOfFaulty(text)));
  for (const { path, message, code } of joined.faults) {
    // A setting that is faulty by itself has been told already, and faulty tokens are not none.
    const isHost = path === variables.host.env;
    const told = isHost ? [path, variables.tokens.env, 'tokens'] : [path];
    if (faults.some(({ name }) => told.includes(name))) continue;
    const from = origins.find(({ name }) => name === path)?.from ?? fileName;
    addFault(from === COMMAND_LINE ? flagOf(path) : path, from, message, code);
  }
  if (faults.length > 0) return { ok: false, faults, warnings };
  for (const name of parts) {
    if (config[name] !== undefined) origins.push({ name, value: shownPart(name), from: fileName });
  }
  const { settings } = joined;
  const dataDir = resolve(input.cwd, settings.dataDir);
  const files = Object.fromEntries(
    fileNames.flatMap((name) => {
      const path = settings[name];
      return path === undefined ? [] : [[name, resolve(input.cwd, path)]];
    }),
  );
  const only = input.only === undefined ? {} : { only: input.only };
  return { ok: true, settings: { ...settings, dataDir, ...files, ...only }, origins, warnings };

  function addFault(
    name: string,
    from: string,
    message: string,
    code: Fault['code'] = 'INVALID_VALUE',
  ): void {
    faults.push({ name, from, code, message });
  }

  function find(
    name: VariableName,
    variable: Variable,
  ): { name: string; from: string; value: Value } | undefined {
    const flag = input.flags?.[name];
    if (flag !== undefined) {
      const value = readText(variable, String(flag));
      return { name: `--${kebab(name)}`, from: COMMAND_LINE, value };
    }
    const text = env[variable.env];
    if (text !== undefined) {
      const from = given(input.env)[variable.env] === undefined ? '.env' : ENVIRONMENT;
      return { name: variable.env, from, value: readText(variable, text) };
    }
    const value = inFile(config, name);
    if (value === undefined) return undefined;
    return { name, from: fileName, value: readValue(variable, value) };
  }

  function shownPart(name: string): string {
    const value = config[name];
    if (typeof value === 'function') return 'a function';
    const count = Object.keys(Object(value) as object).length;
    return ['policy', 'lane', 'criteria'].includes(name) ? 'given' : `${count}`;
  }
}

/** Settings that are paths. */
const fileNames = [
  'routingDir',
  'cyodaTokenFile',
  'natsCredsFile',
  'natsTlsCaFile',
  'natsTlsCertFile',
  'natsTlsKeyFile',
  'kafkaTlsCaFile',
  'kafkaTlsCertFile',
  'kafkaTlsKeyFile',
] as const;

/** The flag of a setting, by the setting's name in the environment. */
function flagOf(env: string): string {
  const [name] = Object.entries(variables).find(([, variable]) => variable.env === env)!;
  return `--${kebab(name)}`;
}

/** An empty variable is how compose files and shells say that there is none. */
function given(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && entry[1].trim() !== '',
    ),
  );
}

const envNames: readonly string[] = [
  ...Object.values(variables).map(({ env }) => env),
  ...Object.keys(otherNames),
];

/** Settings without the prefix, by the names with it: `REDRIVE_DATABASE_URL`. And what elsewhere is called so. */
const otherwiseNamed: ReadonlyMap<string, string> = new Map([
  ...envNames
    .filter((name) => !name.startsWith('REDRIVE_'))
    .map((name) => [`REDRIVE_${name}`, name] as const),
  ['REDRIVE_PORT', variables.port.env],
]);

/** Ours by their prefix, and those that look like a slip of a setting that is not set: the environment is full of others' names. */
function unknownVariables(env: Readonly<Record<string, string>>): string[] {
  return Object.keys(env)
    .filter((name) => !envNames.includes(name))
    .flatMap((name) => {
      const isOurs = /^(REDRIVE|CRITERION)_/.test(name);
      const near = nearestName(name, isOurs ? [...envNames, ...otherwiseNamed.keys()] : envNames);
      const meant = near === undefined ? undefined : (otherwiseNamed.get(near) ?? near);
      const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
      const isSlip = meant !== undefined && env[meant] === undefined;
      return isOurs || isSlip
        ? [`${name} is not a setting of Redrive, and is ignored.${hint}`]
        : [];
    });
}

const knownKeys: readonly string[] = [
  ...Object.keys(variables).filter((name) => !name.includes('.')),
  ...parts,
];

function isKnown(name: string): boolean {
  return knownKeys.includes(name) || name === '$schema';
}

function unknownKey(name: string): string {
  const byEnv = Object.entries(variables).find(([, { env }]) => env === name)?.[0];
  const near = byEnv ?? nearest(name, knownKeys);
  return `there is no such setting.${didYouMean(near)}`;
}

/** A name with a dot stands inside an object of the file. */
function inFile(config: Readonly<Record<string, unknown>>, name: string): unknown {
  const [first = '', second] = name.split('.');
  const value = config[first];
  return second === undefined ? value : (Object(value) as Record<string, unknown>)[second];
}

/** `nearest` for names of several words, in which underscores get lost or doubled. */
function nearestName(name: string, names: readonly string[]): string | undefined {
  const bare = (text: string) => text.toLowerCase().replaceAll('_', '');
  const near = nearest(bare(name), names.map(bare));
  return names.find((one) => bare(one) === near);
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

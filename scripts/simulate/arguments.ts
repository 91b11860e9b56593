/** The command line of `npm run simulate`, as data. Every fault is found at once. */
import { parseArgs } from 'node:util';
import { isConfigError } from 'redrive';
import { nearest } from '../../packages/core/src/faults.ts';
import { defineWorld, type World, worldFields } from '../../packages/core/src/simulate-world.ts';
import { type Jitter, jitters } from './compare.ts';

export interface Options {
  help: boolean;
  json: boolean;
  /** A file, the name of a preset, or a policy in JSON. */
  policy?: string;
  svg?: string;
  title?: string;
  jitters: readonly Jitter[];
  world: World;
}

type WorldField = keyof typeof worldFields;

const worldOptions = new Map<string, WorldField>(
  (Object.keys(worldFields) as WorldField[]).map((name) => [kebab(name), name]),
);
const texts = ['svg', 'title', 'jitters', ...worldOptions.keys()];
const switches = ['json', 'help'];

/** What was asked for, or what is wrong with it, sentence by sentence. */
export function readArguments(args: readonly string[]): Options | { faults: string[] } {
  const faults: string[] = [];
  const options: Options = { help: false, json: false, jitters, world: {} };
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    allowPositionals: true,
    options: {
      ...Object.fromEntries(texts.map((name) => [name, { type: 'string' as const }])),
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    else if (token.kind === 'option') {
      const fault = readOption(options, token.name, token.value);
      if (fault) faults.push(`${token.rawName}: ${fault}`);
    }
  }
  const [policy, second] = positionals;
  if (policy !== undefined) options.policy = policy;
  // After a faulty option it may be that option's value, and nothing to complain about.
  if (second !== undefined && faults.length === 0) {
    faults.push(`${second}: one policy at a time; ${policy} is there already.`);
  }
  faults.push(...worldFaults(options.world));
  return faults.length > 0 && !options.help ? { faults } : options;
}

function readOption(options: Options, name: string, value: string | undefined): string | undefined {
  if (name === 'json' || name === 'help') {
    options[name] = true;
    return value === undefined ? undefined : 'takes no value.';
  }
  if (!texts.includes(name)) {
    const near = nearest(name, [...texts, ...switches]);
    return `there is no such option.${near ? ` Did you mean --${near}?` : ''}`;
  }
  if (!value || value.startsWith('--')) return 'needs a value.';
  if (name === 'svg' || name === 'title') options[name] = value;
  else if (name === 'jitters') return readJitters(options, value);
  else {
    const field = worldOptions.get(name)!;
    const isNumber = /^-?\d+(\.\d+)?$/.test(value);
    // Nobody means 30 ms by an outage of 30.
    if (worldFields[field].kind === 'duration' && isNumber) {
      return `${value} what? Write ${value}s or ${value}ms.`;
    }
    (options.world as Record<string, unknown>)[field] = isNumber ? Number(value) : value;
  }
  return undefined;
}

function readJitters(options: Options, value: string): string | undefined {
  const names = value.split(',').map((name) => name.trim());
  for (const name of names) {
    if (jitters.includes(name as Jitter)) continue;
    const near = nearest(name, jitters);
    return `'${name}' is not one of ${jitters.join(', ')}.${near ? ` Did you mean ${near}?` : ''}`;
  }
  options.jitters = [...new Set(names as Jitter[])];
  return undefined;
}

function worldFaults(world: World): string[] {
  try {
    defineWorld(world);
    return [];
  } catch (error) {
    if (!isConfigError(error)) throw error;
    return error.faults.map(({ path, message }) => `--${kebab(path)}: ${message}`);
  }
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

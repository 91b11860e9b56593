/** How a command is declared. Options, their checks, the help and the faults all come from the declaration. */
import { parseArgs } from 'node:util';
import { durationMs, nearest } from 'redrive/internal';

export interface Command<Options extends OptionTable = OptionTable> {
  /** `list`, or `review list`. */
  name: string;
  /** One line for the list of commands. */
  summary: string;
  /** What follows `redrive`: `show <message_id>`, `cancel <message_id>...`, `submit <destination> [payload]`. It also says how many are taken. */
  usage: string;
  /** Beside `--json` and `--help`, which every command has. */
  options: Options;
  /** Whole lines to copy, with what they are for after ` # `. */
  examples: readonly string[];
  /** More than the summary says, for its own help. */
  about?: string;
  /** The exit code, one of `exits`. It may throw a `CommandError`. */
  run(args: Parsed<Options>, io: Io): Promise<number>;
}

/** Where a command reads and writes, so that tests can look on. */
export interface Io {
  /** Writes as it is: whole lines end with a line break. */
  out(text: string): void;
  err(text: string): void;
  /** For a command that goes on where nobody can read what it writes: a service. Others end then. */
  outliveOutput?(): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder that paths are meant from. */
  readonly cwd: string;
  /** A person looks at `out`, so that lines may be drawn again and coloured. */
  readonly isTty: boolean;
  readonly columns: number;
  /** All of the standard input. */
  input(): Promise<Uint8Array>;
}

export type OptionTable = Readonly<Record<string, Option>>;

/** `value` is what stands for the value in the help: `--limit <n>`. A duration is written with its unit and read as ms. */
export type Option = { summary: string; short?: string } & (
  | { kind: 'flag' }
  | { kind: 'text'; value: string; default?: string }
  | { kind: 'texts'; value: string }
  | { kind: 'number'; value: string; min: number; max: number; whole?: boolean; default?: number }
  | { kind: 'duration'; value: string; default?: number }
  | { kind: 'choice'; of: readonly string[]; default?: string }
);

interface Parsed<Options extends OptionTable = OptionTable> {
  positionals: readonly string[];
  options: { readonly [Name in keyof Options]: ValueOf<Options[Name]> };
  /** Answer with JSON instead of with words. */
  json: boolean;
}

type ValueOf<One extends Option> = One extends { kind: 'flag' }
  ? boolean
  : One extends { kind: 'texts' }
    ? readonly string[]
    : One extends { kind: 'choice'; of: readonly (infer Word)[] }
      ? Word | Absent<One>
      : One extends { kind: 'text' }
        ? string | Absent<One>
        : number | Absent<One>;
type Absent<One> = One extends { default: string | number } ? never : undefined;

/** As in sysexits.h where it has a word for it. */
export const exits = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** The server or the store cannot be reached. */
  unavailable: 69,
  /** No token, or one whose role does not allow it. */
  notAllowed: 77,
  configuration: 78,
} as const;

/** Ends a command with a sentence and an exit code. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exit: number;
  /** For `--json`. */
  readonly code: string;

  constructor(message: string, options: { exit?: number; code?: string; cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : {});
    this.exit = options.exit ?? exits.failed;
    this.code = options.code ?? 'FAILED';
  }
}

/** The command as it is, with the types of its options known to `run`. */
export function command<const Options extends OptionTable>(
  declared: Command<Options>,
): Command<Options> {
  return declared;
}

type Reading<Options extends OptionTable> =
  | { type: 'run'; args: Parsed<Options> }
  | { type: 'help' }
  | { type: 'faults'; faults: string[] };

/** What was asked for, or everything that is wrong with it. `args` is what follows the command's name. */
export function readArguments<Options extends OptionTable>(
  { usage, name, options }: Command<Options>,
  args: readonly string[],
): Reading<Options> {
  const table: OptionTable = { ...options, ...common };
  const faults: string[] = [];
  const positionals: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(table)) values[key] = valueUnlessGiven(option);
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    allowPositionals: true,
    options: Object.fromEntries(Object.entries(table).map(([key, one]) => [key, nodeOption(one)])),
  });
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const fault = readOption(table, token.name, token.value, values);
    if (fault !== undefined) faults.push(`${token.rawName}: ${fault}`);
  }
  if (values['help'] === true) return { type: 'help' };
  // After a faulty option a word may be that option's value, and nothing to complain about.
  if (faults.length === 0) faults.push(...countFaults(usage.slice(name.length), positionals));
  if (faults.length > 0) return { type: 'faults', faults };
  const { json, help: _, ...given } = values;
  const read = given as Parsed<Options>['options'];
  return { type: 'run', args: { positionals, options: read, json: json === true } };
}

/** What every command takes. */
export const common = {
  json: { kind: 'flag', summary: 'Answer with JSON instead of with words.' },
  help: { kind: 'flag', short: 'h', summary: 'Show this.' },
} as const satisfies OptionTable;

function valueUnlessGiven(option: Option): unknown {
  if (option.kind === 'flag') return false;
  if (option.kind === 'texts') return [];
  return option.default;
}

function nodeOption(option: Option): { type: 'boolean' | 'string'; short?: string } {
  const type = option.kind === 'flag' ? 'boolean' : 'string';
  return option.short === undefined ? { type } : { type, short: option.short };
}

/** Writes the value where it makes sense; otherwise says why it does not. */
function readOption(
  table: OptionTable,
  name: string,
  value: string | undefined,
  values: Record<string, unknown>,
): string | undefined {
  const option = Object.hasOwn(table, name) ? table[name] : undefined;
  if (option === undefined) {
    const near = nearest(name, Object.keys(table));
    return `there is no such option.${near === undefined ? '' : ` Did you mean --${near}?`}`;
  }
  if (option.kind === 'flag') {
    values[name] = true;
    return value === undefined ? undefined : 'takes no value.';
  }
  if (value === undefined || value === '') return 'needs a value.';
  switch (option.kind) {
    case 'text':
      values[name] = value;
      return undefined;
    case 'texts':
      values[name] = [...(values[name] as string[]), value];
      return undefined;
    case 'choice': {
      values[name] = value;
      if (option.of.includes(value)) return undefined;
      const near = nearest(value, option.of);
      return `'${value}' is not one of ${option.of.join(', ')}.${near === undefined ? '' : ` Did you mean ${near}?`}`;
    }
    case 'number': {
      const number = Number(value);
      values[name] = number;
      const { min, max, whole } = option;
      if (number >= min && number <= max && (whole !== true || Number.isInteger(number))) {
        return undefined;
      }
      return `'${value}' is not a ${whole === true ? 'whole ' : ''}number from ${min} to ${max}.`;
    }
    case 'duration': {
      // Nobody means 30 ms by a wait of 30.
      if (/^\d+(\.\d+)?$/.test(value)) return `${value} what? Write ${value}s or ${value}ms.`;
      const ms = durationMs(value);
      values[name] = ms;
      return Number.isNaN(ms) ? `'${value}' is not a duration such as 500ms, 2s or 1h.` : undefined;
    }
  }
}

/** Too few or too many words, by what the usage names. */
function countFaults(usage: string, positionals: readonly string[]): string[] {
  const words = usage.split(' ').filter((word) => /^[<[]/.test(word));
  const needed = words.filter((word) => word.startsWith('<'));
  const missing = needed.slice(positionals.length);
  if (missing.length > 0) {
    return [`${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing.`];
  }
  if (words.some((word) => word.includes('...'))) return [];
  return positionals.slice(words.length).map((word) => `'${word}' is one too many.`);
}

/** Help that teaches: what there is, how it is written, what to try. */
import { type Command, common, exits, type Option, type OptionTable } from './command.ts';
import { commandsOf, directory } from './directory.ts';
import { wrap } from './terminal/terminal.ts';

const MAX_COLUMNS = 100;

/** `redrive --help`. */
export async function overview(version: string, columns: number): Promise<string> {
  const lines = [
    `Redrive ${version}: what failed is tried again, and nothing gets lost.`,
    '',
    '  redrive <command> [options]',
  ];
  for (const [heading, part] of Object.entries(directory)) {
    const rows: [string, string][] = [];
    for (const word of Object.keys(part)) rows.push(rowOf(word, (await commandsOf(word)) ?? []));
    lines.push('', heading, ...columnsOf(rows, columns));
  }
  lines.push(
    '',
    'Begin with',
    '  redrive serve                  starts everything, with nothing to configure',
    '  redrive help <command>         options and examples of one command',
    '',
    ...paragraph(
      'Notifications have no command. Create and read them with POST and GET /api/v1/notifications: see docs/guides/notifications.md.',
      columns,
    ),
    '',
    ...paragraph(
      'Every command answers with JSON to --json. It ends with 0 when it worked, 1 when it did not, ' +
        `2 when it was not understood, ${exits.unavailable} when the server or the store cannot be reached, ` +
        `${exits.notAllowed} when it is not allowed, ${exits.configuration} when the configuration has faults.`,
      columns,
    ),
  );
  return `${lines.join('\n')}\n`;
}

/** `redrive help review`, where that is a family of commands. */
export function familyHelp(word: string, commands: readonly Command[], columns: number): string {
  const rows = commands.map(({ usage, summary }): [string, string] => [usage, summary]);
  const lines = [
    `  redrive ${word} <command> [options]`,
    '',
    ...columnsOf(rows, columns),
    '',
    'For example',
    ...examplesOf(commands[0]!.examples.slice(0, 2)),
    '',
    `redrive help ${commands[0]!.name} shows options and examples of one.`,
  ];
  return `${lines.join('\n')}\n`;
}

/** `redrive help serve`. */
export function commandHelp(command: Command, columns: number): string {
  const { summary, usage, about, options, examples } = command;
  const lines = [summary, '', `  redrive ${usage} [options]`];
  if (about !== undefined) {
    lines.push('', ...about.split('\n').flatMap((text) => paragraph(text, columns)));
  }
  if (examples.length > 0) lines.push('', 'Examples', ...examplesOf(examples));
  const all: OptionTable = { ...options, ...common };
  const rows = Object.entries(all).map(([name, option]): [string, string] => [
    `${option.short === undefined ? '' : `-${option.short}, `}--${name}${valueOf(option)}`,
    `${option.summary}${usualOf(option)}`,
  ]);
  lines.push('', 'Options', ...columnsOf(rows, columns));
  return `${lines.join('\n')}\n`;
}

function rowOf(word: string, commands: readonly Command[]): [string, string] {
  const [first] = commands;
  if (commands.length === 1 && first?.name === word) return [first.usage, first.summary];
  const names = commands.map(({ name }) => name.slice(word.length + 1)).filter(Boolean);
  const summary = first?.name === word ? first.summary : `${first?.summary ?? ''}`;
  return names.length === 1
    ? [`${word} ${names[0]}`, summary]
    : [word, `${names.join(', ')}: see redrive help ${word}.`];
}

function examplesOf(examples: readonly string[]): string[] {
  const parts = examples.map((example) => example.split(' # ') as [string, string?]);
  const width = Math.max(...parts.map(([line]) => line.length));
  return parts.map(([line, why]) =>
    why === undefined ? `  ${line}` : `  ${line.padEnd(width)}   # ${why}`,
  );
}

/** Names on the left, what they are on the right, in lines that fit. */
function columnsOf(rows: readonly (readonly [string, string])[], columns: number): string[] {
  const room = Math.min(columns, MAX_COLUMNS);
  const left = Math.min(34, Math.max(...rows.map(([name]) => name.length)));
  return rows.flatMap(([name, text]) => {
    const lines = wrap(text, Math.max(20, room - left - 5));
    const [first = '', ...more] = lines.map((line) => line.trim());
    const head =
      name.length > left
        ? [`  ${name}`, `  ${' '.repeat(left)}  ${first}`]
        : [`  ${name.padEnd(left)}  ${first}`];
    return [...head, ...more.map((line) => `  ${' '.repeat(left)}  ${line}`)];
  });
}

function paragraph(text: string, columns: number): string[] {
  return wrap(text, Math.min(columns, MAX_COLUMNS));
}

function valueOf(option: Option): string {
  if (option.kind === 'flag') return '';
  return option.kind === 'choice' ? ` <${option.of.join('|')}>` : ` <${option.value}>`;
}

function usualOf(option: Option): string {
  if (option.kind === 'flag' || option.kind === 'texts' || option.default === undefined) return '';
  const usual = option.kind === 'duration' ? `${option.default / 1000}s` : option.default;
  return ` (${usual})`;
}

/** The reference page of the command line, from the declarations of the commands. */
import { connection } from '../packages/server/src/cli/client.ts';
import { type Command, common, type Option } from '../packages/server/src/cli/command.ts';
import { commandsOf, directory } from '../packages/server/src/cli/directory.ts';

const intro = `# Reference: the command line

\`redrive <command> [options]\`. Made from the commands themselves by \`npm run generate\`: \`redrive help <command>\` says the same.
In a checkout it is \`npx redrive\`.

- \`redrive serve\`, \`config\`, \`token\`, \`migrate\`, \`move\` and \`doctor\` read the configuration of the folder they are called in.
- The others ask a server that runs, over its API. \`simulate\`, \`route\`, \`criteria\`, \`demo\` and \`audit verify <file>\` need nothing.
- Every command answers with JSON to \`--json\`: one object, or for lists and for what goes on for a while one per line. Nothing else
  is on the standard output then. Errors go to the standard error, with \`--json\` as \`{"error": {"code", "message"}}\`.
- Colours and lines that are drawn again are for terminals; \`NO_COLOR\` takes the colours away. What others wrote (payloads, headers,
  answers) never reaches a terminal as it is: control characters and marks of direction are spelled out.

| exit code | what it says |
|---|---|
| 0 | It worked. |
| 1 | It did not, or not all of it; or the server refused it. |
| 2 | The command was not understood. |
| 69 | The server or the store cannot be reached. |
| 77 | Not allowed: no token, or one whose role does not allow it. |
| 78 | The configuration has faults. |
`;

export async function cliReference(): Promise<string> {
  const parts = [intro, everywhere()];
  for (const [heading, words] of Object.entries(directory)) {
    parts.push(`## ${heading}\n`);
    for (const word of Object.keys(words)) {
      for (const command of (await commandsOf(word)) ?? []) parts.push(commandPart(command));
    }
  }
  return `${parts.join('\n').trimEnd()}\n`;
}

function everywhere(): string {
  return [
    '## Options that are not repeated below',
    '',
    'Of every command:',
    '',
    ...optionTable(Object.entries(common)),
    '',
    'Of every command that asks a server:',
    '',
    ...optionTable(Object.entries(connection)),
    '',
  ].join('\n');
}

function commandPart({ name, summary, usage, about, options, examples }: Command): string {
  const own = Object.entries(options).filter(([key, option]) => !isRepeated(key, option));
  return [
    `### redrive ${name}`,
    '',
    escaped(summary),
    '',
    '```sh',
    `redrive ${usage}${Object.keys(options).length > 0 ? ' [options]' : ''}`,
    '```',
    '',
    ...(about === undefined ? [] : about.split(/\n+/).flatMap((text) => [escaped(text), ''])),
    ...(own.length > 0 ? [...optionTable(own), ''] : []),
    ...(examples.length > 0 ? ['```sh', ...exampleLines(examples), '```', ''] : []),
  ].join('\n');
}

/** The connection to a server has its table above, unless a command changes something about it. */
function isRepeated(name: string, option: Option): boolean {
  const known: Readonly<Record<string, Option>> = connection;
  return Object.hasOwn(known, name) && JSON.stringify(known[name]) === JSON.stringify(option);
}

function optionTable(options: readonly (readonly [string, Option])[]): string[] {
  return [
    '| option | what it says | default |',
    '|---|---|---|',
    ...options.map(([name, option]) => {
      const short = option.short === undefined ? '' : `\`-${option.short}\`, `;
      return `| ${short}\`--${name}${valueOf(option)}\` | ${escaped(option.summary)} | ${usualOf(option)} |`;
    }),
  ];
}

function valueOf(option: Option): string {
  if (option.kind === 'flag') return '';
  // A bar would end the cell of the table, also within code.
  return option.kind === 'choice' ? ` <${option.of.join(', ')}>` : ` <${option.value}>`;
}

function usualOf(option: Option): string {
  if (option.kind === 'flag' || option.kind === 'texts' || option.default === undefined) return '';
  return `\`${option.kind === 'duration' ? durationText(option.default) : option.default}\``;
}

function durationText(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

function exampleLines(examples: readonly string[]): string[] {
  return examples.flatMap((example) => {
    const [line = '', why] = example.split(' # ');
    return why === undefined ? [line] : [`# ${why}`, line];
  });
}

/** What would be taken for a tag, or for the end of a cell. */
function escaped(text: string): string {
  return text.replaceAll('<', '&lt;').replaceAll('|', '\\|');
}

/** One call of `redrive`: finds the command, reads its arguments, runs it. The answer is the exit code. */
import { isConfigError } from 'redrive';
import { nearest } from 'redrive/internal';
import { type Command, CommandError, exits, type Io, readArguments } from './command.ts';
import { commandsOf, firstWords } from './directory.ts';
import { commandHelp, familyHelp, overview } from './help.ts';
import { version } from './version.ts';

export async function run(args: readonly string[], io: Io): Promise<number> {
  const [word, ...rest] = args;
  if (word === undefined) {
    io.err(await overview(await version(), io.columns));
    return exits.usage;
  }
  if (word === '--version' || word === '-v' || word === 'version') {
    io.out(`${await version()}\n`);
    return exits.ok;
  }
  if (word === '--help' || word === '-h' || word === 'help') return help(rest, io);
  const commands = await commandsOf(word);
  if (!commands) return refuse(io, unknown(word), 'redrive --help');
  const command = find(commands, args);
  if (command) return execute(command, args.slice(command.name.split(' ').length), io);
  // `redrive lanes` alone, or with options only, lists.
  const list = commands.find(({ name }) => name === `${word} list`);
  const isBare = rest[0] === undefined || /^-(?!h$|-help$)/.test(rest[0]);
  if (list && isBare) return execute(list, rest, io);
  return family(word, commands, rest, io);
}

async function execute(command: Command, args: readonly string[], io: Io): Promise<number> {
  const reading = readArguments(command, args);
  switch (reading.type) {
    case 'help':
      io.out(commandHelp(command, io.columns));
      return exits.ok;
    case 'faults': {
      const message = reading.faults.join('\n');
      if (!args.includes('--json')) return refuse(io, message, `redrive help ${command.name}`);
      return fail(new CommandError(message, { exit: exits.usage, code: 'USAGE' }), io, true);
    }
    case 'run':
      try {
        return await command.run(reading.args, io);
      } catch (error) {
        return fail(error, io, reading.args.json);
      }
  }
}

async function help(words: readonly string[], io: Io): Promise<number> {
  const [word] = words;
  if (word === undefined || word.startsWith('-')) {
    io.out(await overview(await version(), io.columns));
    return exits.ok;
  }
  const commands = await commandsOf(word);
  if (!commands) return refuse(io, unknown(word), 'redrive --help');
  const command = find(commands, words) ?? (commands.length === 1 ? commands[0] : undefined);
  io.out(command ? commandHelp(command, io.columns) : familyHelp(word, commands, io.columns));
  return exits.ok;
}

/** A first word that is no command by itself: `redrive review`. */
function family(
  word: string,
  commands: readonly Command[],
  rest: readonly string[],
  io: Io,
): number {
  const [second] = rest;
  if (second === undefined || second === '--help' || second === '-h') {
    const isAsked = second !== undefined;
    const text = familyHelp(word, commands, io.columns);
    if (isAsked) io.out(text);
    else io.err(text);
    return isAsked ? exits.ok : exits.usage;
  }
  const near = nearest(
    second,
    commands.map(({ name }) => name.slice(word.length + 1)),
  );
  const hint = near === undefined ? '' : ` Did you mean redrive ${word} ${near}?`;
  return refuse(io, `There is no command '${word} ${second}'.${hint}`, `redrive help ${word}`);
}

/** The one with the longest name that the words begin with. */
function find(commands: readonly Command[], words: readonly string[]): Command | undefined {
  return commands
    .filter(({ name }) => name.split(' ').every((part, i) => words[i] === part))
    .sort((a, b) => b.name.length - a.name.length)[0];
}

/** What people look for by another word. */
const elsewhere: Readonly<Record<string, string>> = {
  notifications:
    'With NOTIFICATIONS=on, create and read notifications with POST and GET /api/v1/notifications: see docs/guides/notifications.md. redrive review list shows those that failed for good.',
  inbox: 'The inbox is redrive review.',
  start: 'redrive serve starts the service.',
  send: 'redrive submit submits a task.',
  status: 'redrive doctor looks at everything, and redrive list shows the tasks.',
  health: 'redrive doctor looks at everything.',
  get: 'redrive show shows a task.',
  retry:
    'redrive expedite makes a waiting task due now, and redrive review replay sends again what failed.',
  pause: 'redrive lanes pause pauses a lane.',
  resume: 'redrive lanes resume resumes a lane.',
};

function unknown(word: string): string {
  const key = Object.keys(elsewhere).find((one) => one === word || one === `${word}s`);
  if (key !== undefined) return `There is no command '${word}'. ${elsewhere[key]}`;
  const near = nearest(word, [...firstWords, 'help']);
  return `There is no command '${word}'.${near === undefined ? '' : ` Did you mean redrive ${near}?`}`;
}

function refuse(io: Io, message: string, hint: string): number {
  io.err(`${message}\n\n${hint} shows how it is used.\n`);
  return exits.usage;
}

/** What a command could not do: a sentence, or with `--json` an object. A fault of our own shows where it is. */
function fail(error: unknown, io: Io, json: boolean): number {
  const isOurs = error instanceof CommandError;
  const isConfig = isConfigError(error);
  const { name } = Object(error) as { name?: string };
  const isKnown = isOurs || isConfig || name === 'EngineError' || name === 'ServiceError';
  const { message, stack, code } = error as { message?: string; stack?: string; code?: string };
  const said = isKnown ? message : (stack ?? String(error));
  if (json) {
    const problem = isOurs && 'problem' in error ? { problem: error.problem } : {};
    io.err(`${JSON.stringify({ error: { code: code ?? 'FAILED', message, ...problem } })}\n`);
  } else io.err(`${said}\n`);
  if (isOurs) return error.exit;
  return isConfig ? exits.configuration : exits.failed;
}
